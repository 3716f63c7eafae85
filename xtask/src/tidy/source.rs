//! Rules for single files: maximum length, forbidden text, and the first line.

use super::Findings;
use super::tracked::{File, Tracked};

const WARN_LINES: usize = 400;
const MOST_LINES: usize = 500;

/// Written in parts so that this file does not match its own rule.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("d", "bg!("),
];

/// Paths that exist only on one machine.
const FOREIGN: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
];

pub(super) fn check(files: &Tracked, findings: &mut Findings) {
    for file in &files.all {
        length(file, findings);
        leftovers(file, findings);
        foreign_paths(file, findings);
        opening(file, findings);
    }
}

fn length(file: &File, findings: &mut Findings) {
    let code = [".rs", ".js", ".py"]
        .iter()
        .any(|end| file.path.ends_with(end));
    if !code || is_test(&file.path) || is_generated(&file.text) {
        return;
    }
    let lines = file.text.lines().count();
    if lines > MOST_LINES {
        findings.error(
            &file.path,
            format!("{lines} lines; split it, {MOST_LINES} is the most"),
        );
    } else if lines > WARN_LINES {
        findings.warn(&file.path, format!("{lines} lines"));
    }
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn is_generated(text: &str) -> bool {
    text.lines().take(3).any(|line| line.contains("@generated"))
}

fn leftovers(file: &File, findings: &mut Findings) {
    if !file.path.ends_with(".rs") {
        return;
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        for leftover in LEFTOVERS {
            if line.contains(leftover) {
                findings.error(&format!("{}:{number}", file.path), format!("{leftover}…)"));
            }
        }
    }
}

fn foreign_paths(file: &File, findings: &mut Findings) {
    for (number, line) in (1..).zip(file.text.lines()) {
        for foreign in FOREIGN {
            let mut rest = line;
            while let Some(at) = rest.find(foreign) {
                // `docs/opt/x` and `https://host/opt/x` are not paths from the root.
                let before = rest[..at].chars().next_back();
                if before.is_none_or(|c| !c.is_alphanumeric() && !"._-*~/".contains(c)) {
                    let place = format!("{}:{number}", file.path);
                    findings.error(&place, format!("names {foreign}…, a path of one machine"));
                }
                rest = &rest[at + foreign.len()..];
            }
        }
    }
}

/// The first line of a crate says what it owns.
fn opening(file: &File, findings: &mut Findings) {
    let entry = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    if entry && !file.text.starts_with("//!") {
        findings.error(&file.path, "must open with //! and what the crate owns");
    }
}
