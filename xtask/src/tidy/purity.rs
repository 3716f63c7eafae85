//! The engine is pure: none of its dependencies may do I/O, wait, read a clock or generate random
//! numbers.

use super::Findings;
use crate::process::{cargo, read};

const ENGINE: &str = "tandem-engine";
const IMPURE: &[&str] = &[
    "tokio", "reqwest", "rusqlite", "axum", "uuid", "jiff", "rand",
];

pub(super) fn check(findings: &mut Findings) -> Result<(), String> {
    let tree = read(&mut cargo(&[
        "tree",
        "--package",
        ENGINE,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]))?;
    let mut found: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| IMPURE.contains(name))
        .collect();
    found.sort_unstable();
    found.dedup();
    for name in found {
        findings.error(
            ENGINE,
            format!("is built from {name}; see `cargo tree -p {ENGINE} -e normal -i {name}`"),
        );
    }
    Ok(())
}
