//! Mutation tests: `cargo-mutants` changes the code in one place, and a test must notice.
//!
//! A run takes a sample of the mutants of each package. Seed and count determine the sample: a mutant is
//! identified without its line, so edits elsewhere in a file do not change it. Each is tested with the quick
//! tests of its package. What these miss is tested again with all tests of the package and of the packages
//! that use it. A mutant that no test notices is missed. The task fails for a missed mutant that
//! `accepted.txt` does not list with a reason, and for a listed one that is caught.

mod accepted;
mod options;
mod report;
mod sample;
#[cfg(test)]
mod tests;

use crate::Outcome;
use crate::process::{cargo, read, root, target};
use options::Options;
use report::Report;
use sample::Mutant;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// A package whose code is changed.
struct MutatedPackage {
    name: &'static str,
    /// How many of 300 mutants it gets.
    share: usize,
    /// Parts of names of tests that take most of the time. Only mutants that the others miss are tested with them.
    slow_tests: &'static [&'static str],
    /// Packages whose tests prove behaviour of this one as well.
    users: &'static [&'static str],
}

const PACKAGES: [MutatedPackage; 2] = [
    MutatedPackage {
        name: "tandem-engine",
        share: 220,
        slow_tests: &[
            "any_order_of_answers_gives_the_same_result",
            "decision_over_the_soft_limit_needs_more_work",
            "decisions_and_runs_stay_within_their_budgets",
            "every_run_ends_exactly_once",
            "many_costly_conditions_are_decided_in_parts",
            "never_panics",
            "patterns_of_conditions_count_and_many_heavy_ones_are_refused",
            "work_follows_the_size_of_the_values_looked_at",
        ],
        users: &["tandem-runtime"],
    },
    MutatedPackage {
        name: "tandem-runtime",
        share: 80,
        slow_tests: &["memory_at_every_event_matches_the_model"],
        users: &["tandem-app", "tandem-api"],
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum TestSet {
    /// The package's own tests without the slow ones.
    Quick,
    /// All tests of the package and of its users.
    All,
}

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
    let counts = options.counts(PACKAGES.iter().map(|package| package.share).collect());
    for (package, count) in PACKAGES.iter().zip(counts) {
        let mut chosen = sample::choose(list(package.name)?, options.seed, count);
        chosen.retain(|mutant| options.admits(mutant));
        for tests in [TestSet::Quick, TestSet::All] {
            if chosen.is_empty() {
                break;
            }
            println!("{}: {} mutants", package.name, chosen.len());
            report.add(&chosen, &test(package, &chosen, tests, &directory)?)?;
            chosen.retain(|mutant| report.is_missed(mutant));
        }
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
fn test(
    package: &MutatedPackage,
    chosen: &[Mutant],
    tests: TestSet,
    directory: &Path,
) -> Result<Value, String> {
    let output = directory.join(package.name);
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", output.display());
    std::fs::create_dir_all(&output).map_err(failed)?;
    let (config, diff) = (output.join("chosen.toml"), output.join("chosen.diff"));
    std::fs::write(&config, sample::config(chosen)).map_err(failed)?;
    std::fs::write(&diff, sample::diff(chosen, read_source)?).map_err(failed)?;
    let mut command = cargo(&["mutants", "--package", package.name, "--profile", "mutants"]);
    command.arg("--config").arg(&config);
    command.arg("--in-diff").arg(&diff);
    command.arg("--output").arg(&output);
    command.args(["--jobs", "1", "--colors", "never", "--annotations", "none"]);
    command.args(["--timeout-multiplier", TIMEOUT_MULTIPLIER]);
    if tests == TestSet::All {
        for tested in package.users.iter().chain([&package.name]) {
            command.args(["--test-package", tested]);
        }
    }
    // No documentation tests. One process for each test binary: with one for each test, starting them takes
    // longer than the tests.
    command.args(["--", "--lib", "--tests"]);
    if tests == TestSet::Quick {
        command.arg("--");
        for slow in package.slow_tests {
            command.args(["--skip", slow]);
        }
    }
    // Dependencies are built once for all runs.
    command.env("CARGO_TARGET_DIR", directory.join("build"));
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start cargo mutants: {error}"))?;
    if !status.code().is_some_and(|code| COMPLETED.contains(&code)) {
        return Err(format!(
            "cargo mutants ended with {status} before it had tested {}",
            package.name
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
