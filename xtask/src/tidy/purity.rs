//! The engine decides and does nothing else: nothing that waits, talks, stores, tells the time or
//! throws dice may be anywhere among what it is built from.

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
