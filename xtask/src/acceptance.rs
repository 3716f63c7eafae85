//! Runs the black-box suite against two lists: the groups that must pass, and the cases in them
//! that wait for a missing feature. The second list only shrinks: if a listed case passes, the task
//! fails until its line is deleted. The groups about flows run a second time with no program of a flow
//! kept between turns.

use crate::Outcome;
use crate::process::{python, release_binary, root, shared};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

const GROUPS: &str = ".ci/acceptance-groups";
/// The groups about flows and what they rest on.
const GROUPS_OF_FLOWS: [&str; 4] = ["60_", "61_", "62_", "63_"];
const WAITS: &str = ".ci/acceptance-waits-for";

pub(crate) fn acceptance(arguments: &[String]) -> Outcome {
    let Some(runner) = shared("acceptance/run.py") else {
        println!("acceptance: skipped, there is no ../shared/acceptance beside this repository");
        return Ok(());
    };
    let waiting = waiting()?;
    let chosen = if arguments.is_empty() {
        let groups = lines(GROUPS)?;
        groups
            .into_iter()
            .map(|group| format!("{group}."))
            .collect()
    } else {
        only(arguments)?
    };
    let binary = release_binary()?;
    let mut tally = Tally::default();
    run_cases(&runner, &binary, &chosen, false, &waiting, &mut tally)?;
    let of_flows = of_flows(&chosen);
    if !of_flows.is_empty() {
        run_cases(&runner, &binary, &of_flows, true, &waiting, &mut tally)?;
    }
    tally.outcome()
}

fn of_flows(chosen: &[String]) -> Vec<String> {
    let is_of_flows = |text: &&String| {
        let mut groups = GROUPS_OF_FLOWS.into_iter();
        groups.any(|group| text.starts_with(group))
    };
    chosen.iter().filter(is_of_flows).cloned().collect()
}

/// Runs the cases once. `is_cold` keeps no program of a flow between turns.
fn run_cases(
    runner: &Path,
    binary: &Path,
    chosen: &[String],
    is_cold: bool,
    waiting: &BTreeMap<String, String>,
    tally: &mut Tally,
) -> Outcome {
    let how = match is_cold {
        true => ", no program of a flow kept",
        false => "",
    };
    println!("acceptance: {}{how}", chosen.join(" "));
    let started = Instant::now();
    let mut command = python(runner, &[]);
    command.arg("--binary").arg(binary);
    command.env("TANDEM_TEST_COLD", if is_cold { "1" } else { "0" });
    for text in chosen {
        command.arg("--only").arg(text);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start python3: {error}"))?;
    let output = child.stdout.take().expect("stdout is piped");
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("the suite's output broke off: {error}"))?;
        tally.note(&line, waiting);
    }
    let status = child
        .wait()
        .map_err(|error| format!("the suite did not end: {error}"))?;
    println!("[{:.1} s] acceptance{how}", started.elapsed().as_secs_f64());
    // 1 means that cases failed, which is evaluated at the end; any other code means that the suite
    // itself broke.
    match status.success() || status.code() == Some(1) {
        true => Ok(()),
        false => Err(format!("the suite ended with {status}")),
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    skipped: usize,
    waiting: usize,
    failed: Vec<String>,
    /// Listed as waiting, but passing.
    unexpected_passes: Vec<String>,
}

impl Tally {
    fn note(&mut self, line: &str, waiting: &BTreeMap<String, String>) {
        let mut parts = line.splitn(2, ' ');
        let (result, rest) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let name = rest.trim_start().split([' ', ':']).next().unwrap_or("");
        match (result, waiting.get(name)) {
            ("ok", None) => self.passed += 1,
            ("ok", Some(_)) => self.unexpected_passes.push(name.to_owned()),
            ("FAIL", None) => self.failed.push(name.to_owned()),
            ("FAIL", Some(reason)) => {
                self.waiting += 1;
                println!("waits {name}: {reason}");
                return;
            }
            ("skip", _) => self.skipped += 1,
            _ if is_total(line) => return,
            _ => {}
        }
        println!("{line}");
    }

    fn outcome(self) -> Outcome {
        for name in &self.unexpected_passes {
            println!("{name} passes: delete its line in {WAITS}");
        }
        println!(
            "{} passed, {} failed, {} skipped, {} waiting",
            self.passed + self.unexpected_passes.len(),
            self.failed.len(),
            self.skipped,
            self.waiting,
        );
        if !self.failed.is_empty() {
            return Err(format!("failed: {}", self.failed.join(", ")));
        }
        if !self.unexpected_passes.is_empty() {
            return Err(format!("{WAITS} lists cases that pass"));
        }
        if self.passed == 0 {
            return Err("no case ran".to_owned());
        }
        Ok(())
    }
}

/// The suite's own total does not account for waiting cases, so it is not printed.
fn is_total(line: &str) -> bool {
    line.contains(" passed, ") && line.contains(" failed, ")
}

fn only(arguments: &[String]) -> Result<Vec<String>, String> {
    let mut chosen = Vec::new();
    let mut parts = arguments.iter();
    while let Some(argument) = parts.next() {
        match (argument.as_str(), parts.next()) {
            ("--only", Some(text)) => chosen.push(text.clone()),
            _ => return Err("usage: cargo xtask acceptance [--only TEXT]…".to_owned()),
        }
    }
    Ok(chosen)
}

/// Case to reason. A line without a reason is refused: nobody could see when to delete it.
fn waiting() -> Result<BTreeMap<String, String>, String> {
    let mut cases = BTreeMap::new();
    for line in lines(WAITS)? {
        let Some((name, reason)) = line.split_once('#') else {
            return Err(format!("{WAITS}: {line:?} gives no reason after a #"));
        };
        cases.insert(name.trim().to_owned(), reason.trim().to_owned());
    }
    Ok(cases)
}

fn lines(path: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root().join(path))
        .map_err(|error| format!("cannot read {path}: {error}"))?;
    let lines = text.lines().map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let waiting = BTreeMap::from([("10_wire.gate".to_owned(), "gates".to_owned())]);
        let mut tally = Tally::default();
        for line in lines {
            tally.note(line, &waiting);
        }
        tally
    }

    #[test]
    fn a_waiting_case_may_fail_but_not_pass() {
        let fine = ["ok    10_wire.run  0.1s", "FAIL  10_wire.gate: no gate"];
        assert_eq!(tally(&fine).outcome(), Ok(()));
        assert!(
            tally(&["ok    10_wire.run  0.1s", "ok    10_wire.gate  0.1s"])
                .outcome()
                .is_err()
        );
    }

    #[test]
    fn groups_about_flows_run_twice() {
        let chosen = ["10_wire.", "60_flows.", "63_schedules.cron", "takeover"];
        let chosen = chosen.map(str::to_owned);
        assert_eq!(of_flows(&chosen), ["60_flows.", "63_schedules.cron"]);
    }

    #[test]
    fn any_other_failure_fails() {
        let failed = ["ok    10_wire.run  0.1s", "FAIL  10_wire.poll: late"];
        assert!(tally(&failed).outcome().is_err());
        assert!(tally(&["0 passed, 0 failed, 0 skipped"]).outcome().is_err());
    }
}
