//! Mutation tests: `cargo-mutants` changes the code in one place, and the package's own tests must notice.
//!
//! A run takes a sample of the mutants of each package. Seed and count determine the sample: a mutant is
//! identified without its line, so edits elsewhere in a file do not change it. A mutant that no test notices
//! is missed. The task fails for a missed mutant that `accepted.txt` does not list with a reason, and for a
//! listed one that is caught.

mod accepted;
mod options;
mod report;
mod sample;
#[cfg(test)]
mod tests;

use crate::Outcome;
use crate::check::nextest_is_installed;
use crate::process::{cargo, read, root, target};
use options::Options;
use report::Report;
use sample::Mutant;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// Packages, and how many of the sample's mutants each one gets.
const SHARES: [(&str, usize); 2] = [("tandem-engine", 220), ("tandem-runtime", 80)];

/// Tests that take this many times as long as without a mutation do not end. Less is not enough on a busy machine.
const TIMEOUT_MULTIPLIER: &str = "5";

/// Exit codes of `cargo-mutants` after it tested every mutant: all caught, some missed, some timed out.
const COMPLETED: [i32; 3] = [0, 2, 3];

pub(crate) fn mutants(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments)?;
    if !is_installed() {
        let message =
            "cargo-mutants is not installed; `cargo install cargo-mutants --locked` installs it";
        return Err(message.to_owned());
    }
    let accepted = accepted::read()?;
    let directory = target()?.join("mutants");
    let mut report = Report::default();
    for (package, count) in options.counts(&SHARES) {
        let mut chosen = sample::choose(list(package)?, options.seed, count);
        chosen.retain(|mutant| options.admits(mutant));
        if chosen.is_empty() {
            continue;
        }
        println!("{package}: {} mutants", chosen.len());
        report.add(&chosen, &test(package, &chosen, &directory)?)?;
    }
    report.conclude(&accepted)
}

fn is_installed() -> bool {
    let mut version = cargo(&["mutants", "--version"]);
    version.stdin(Stdio::null()).stdout(Stdio::null());
    let status = version.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// All mutants of a package.
fn list(package: &str) -> Result<Vec<Mutant>, String> {
    let listed = ["mutants", "--list", "--json", "--no-config", "--package"];
    let text = read(cargo(&listed).arg(package))?;
    let listed = parse(&text, "the list of mutants")?;
    let listed = listed.as_array().into_iter().flatten();
    sample::identify(listed.filter_map(|mutant| mutant["name"].as_str()))
}

/// Tests the chosen mutants. Returns what `cargo-mutants` reports about each.
fn test(package: &str, chosen: &[Mutant], directory: &Path) -> Result<Value, String> {
    let output = directory.join(package);
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", output.display());
    std::fs::create_dir_all(&output).map_err(failed)?;
    let (config, diff) = (output.join("chosen.toml"), output.join("chosen.diff"));
    std::fs::write(&config, sample::config(chosen)).map_err(failed)?;
    std::fs::write(&diff, sample::diff(chosen, read_source)?).map_err(failed)?;
    let mut command = cargo(&["mutants", "--package", package, "--profile", "mutants"]);
    command.arg("--config").arg(&config);
    command.arg("--in-diff").arg(&diff);
    command.arg("--output").arg(&output);
    command.args(["--jobs", "1", "--colors", "never", "--annotations", "none"]);
    command.args(["--timeout-multiplier", TIMEOUT_MULTIPLIER]);
    if nextest_is_installed() {
        // It stops at the first test that fails.
        command.args(["--test-tool", "nextest"]);
    }
    // No documentation tests.
    command.args(["--", "--lib", "--tests"]);
    // Dependencies are built once for all runs.
    command.env("CARGO_TARGET_DIR", directory.join("build"));
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start cargo mutants: {error}"))?;
    if !status.code().is_some_and(|code| COMPLETED.contains(&code)) {
        return Err(format!(
            "cargo mutants ended with {status} before it had tested {package}"
        ));
    }
    let outcomes = output.join("mutants.out").join("outcomes.json");
    let text = std::fs::read_to_string(&outcomes);
    let text = text.map_err(|error| format!("cannot read {}: {error}", outcomes.display()))?;
    parse(&text, "the outcomes")
}

fn read_source(file: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(file))
        .map_err(|error| format!("cannot read {file}: {error}"))
}

fn parse(text: &str, what: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("{what} of cargo mutants is not JSON: {error}"))
}
