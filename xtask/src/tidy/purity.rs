//! The engine is pure: none of its dependencies may do I/O, wait, read a clock or generate random
//! numbers. `jiff` computes with calendars and time zones; the engine may not ask it for the time, nor for the zones
//! of the machine.

use super::Findings;
use super::tracked::Tracked;
use crate::process::{cargo, read};

const ENGINE: &str = "tandem-engine";
const IMPURE: &[&str] = &["tokio", "reqwest", "rusqlite", "axum", "uuid", "rand"];
const SOURCE: &str = "crates/engine/src/";
/// How the machine is asked: for the time, for its own zone, for its database of zones.
const ASKS_THE_MACHINE: &[&str] = &[
    "Timestamp::now(",
    "Zoned::now(",
    "TimeZone::system(",
    "TimeZone::try_system(",
    "TimeZone::get(",
    "TimeZoneDatabase::from_env(",
    "tz::db(",
];

pub(super) fn check(files: &Tracked, findings: &mut Findings) -> Result<(), String> {
    for file in files
        .all
        .iter()
        .filter(|file| file.path.starts_with(SOURCE))
    {
        for call in ASKS_THE_MACHINE
            .iter()
            .filter(|call| file.text.contains(**call))
        {
            findings.error(
                &file.path,
                format!("`{call}…)` asks the machine; the engine is pure"),
            );
        }
    }
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
