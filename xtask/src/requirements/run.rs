//! Runs only the cited tests, with one build: its test binaries are started with the names of the
//! tests, and the Python scripts with the server binary.

use super::Test;
use super::rust::{Binary, places};
use crate::process::{cargo, python, read, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a test; of several executions the worst counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TestResult {
    Passed,
    /// What is needed to run it is not available here.
    NotRun,
    /// No test of this name ran.
    #[default]
    Missing,
    Failed,
}

impl TestResult {
    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::Missing | Self::Failed)
    }
}

impl fmt::Display for TestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::NotRun => "not run",
            Self::Missing => "missing",
            Self::Failed => "failed",
        })
    }
}

pub(super) type TestResults = BTreeMap<Test, TestResult>;

pub(super) fn run(tests: &BTreeSet<&Test>) -> Result<TestResults, String> {
    let built = Built::read()?;
    let mut results = TestResults::new();
    rust(tests, &built, &mut results)?;
    scripts(tests, &built, &mut results);
    Ok(results)
}

/// Today, in UTC.
pub(super) fn today() -> Result<String, String> {
    let day = read(Command::new("date").args(["-u", "+%F"]))?;
    Ok(day.trim().to_owned())
}

/// The products of the build.
struct Built {
    /// By package folder.
    tests: BTreeMap<(String, Binary), PathBuf>,
    server: Option<PathBuf>,
}

impl Built {
    fn read() -> Result<Self, String> {
        // The same arguments as `cargo xtask test`, so that both use one build.
        let arguments = [
            "test",
            "--workspace",
            "--no-run",
            "--message-format",
            "json",
        ];
        let messages = read(&mut cargo(&arguments))?;
        let mut built = Self {
            tests: BTreeMap::new(),
            server: None,
        };
        for line in messages.lines() {
            let message: Value = serde_json::from_str(line).unwrap_or_default();
            built.note(&message);
        }
        Ok(built)
    }

    fn note(&mut self, message: &Value) -> Option<()> {
        let executable = PathBuf::from(message["executable"].as_str()?);
        let manifest = Path::new(message["manifest_path"].as_str()?);
        let folder = manifest.parent()?.strip_prefix(root()).ok()?;
        let target = &message["target"];
        let name = target["name"].as_str()?;
        match (
            target["kind"][0].as_str()?,
            message["profile"]["test"].as_bool()?,
        ) {
            ("test", true) => {
                let binary = Binary::Integration(name.to_owned());
                let place = (folder.to_str()?.to_owned(), binary);
                self.tests.insert(place, executable);
            }
            ("lib" | "bin", true) => {
                let place = (folder.to_str()?.to_owned(), Binary::Unit);
                self.tests.insert(place, executable);
            }
            ("bin", false) if name == "tandem" => self.server = Some(executable),
            _ => {}
        }
        Some(())
    }
}

fn rust(tests: &BTreeSet<&Test>, built: &Built, results: &mut TestResults) -> Result<(), String> {
    let mut by_binary: BTreeMap<(String, Binary), Vec<(String, &Test)>> = BTreeMap::new();
    for test in tests {
        if let Test::Rust { file, name } = test {
            for (package, binary, full) in places(file, name) {
                by_binary
                    .entry((package, binary))
                    .or_default()
                    .push((full, test));
            }
        }
    }
    for ((package, binary), tests) in by_binary {
        let Some(executable) = built.tests.get(&(package.clone(), binary)) else {
            continue;
        };
        println!("{package}: {} tests", tests.len());
        let mut command = Command::new(executable);
        command.current_dir(root().join(&package));
        command.env("CARGO_MANIFEST_DIR", root().join(&package));
        command
            .arg("--exact")
            .args(tests.iter().map(|(full, _)| full));
        let printed = printed(&mut command)?;
        for (full, test) in tests {
            note(results, test, parse_rust_result(&printed, &full));
        }
        explain(&printed);
    }
    Ok(())
}

/// Prints the output of failed tests and checks only.
fn explain(printed: &str) {
    for failed in printed.lines().filter(|line| line.starts_with("FAIL ")) {
        println!("{failed}");
    }
    if let Some((_, failures)) = printed.split_once("\nfailures:\n") {
        println!("{failures}");
    }
}

fn scripts(tests: &BTreeSet<&Test>, built: &Built, results: &mut TestResults) {
    let mut by_binary: BTreeMap<&str, Vec<(&str, &Test)>> = BTreeMap::new();
    for test in tests {
        if let Test::Python { file, label } = test {
            by_binary.entry(file).or_default().push((label, test));
        }
    }
    for (file, tests) in by_binary {
        println!("{file}: {} checks", tests.len());
        let printed = built.server.as_ref().and_then(|server| {
            let mut command = python(&root().join(file), &[]);
            printed(command.arg("--binary").arg(server)).ok()
        });
        explain(printed.as_deref().unwrap_or_default());
        for (label, test) in tests {
            let result = match &printed {
                Some(printed) => parse_script_result(printed, label),
                None => TestResult::NotRun,
            };
            note(results, test, result);
        }
    }
}

fn note(results: &mut TestResults, test: &Test, result: TestResult) {
    let worst = results.entry(test.clone()).or_insert(result);
    *worst = result.max(*worst);
}

/// The output of a program, whatever its exit code.
fn printed(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// libtest prints `test NAME ... ok`.
pub(super) fn parse_rust_result(printed: &str, full: &str) -> TestResult {
    let line = printed.lines().find_map(|line| {
        let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
        (name.trim_end_matches(" - should panic") == full).then_some(outcome)
    });
    match line {
        Some("ok") => TestResult::Passed,
        Some(text) if text.starts_with("ignored") => TestResult::NotRun,
        Some(_) => TestResult::Failed,
        None => TestResult::Missing,
    }
}

/// The scripts print `ok    NAME` or `FAIL  NAME: WHY`.
pub(super) fn parse_script_result(printed: &str, label: &str) -> TestResult {
    let mut result = None;
    for line in printed.lines() {
        let found = match line.split_once(' ') {
            Some(("ok", name)) if name.trim_start() == label => TestResult::Passed,
            Some(("FAIL", name)) if name.trim_start().starts_with(label) => TestResult::Failed,
            _ => continue,
        };
        result = result.max(Some(found));
    }
    result.unwrap_or_default()
}
