//! Every claimed requirement is cited by a test, and the requirements pages match the tests.

use super::Findings;
use super::tracked::Tracked;
use crate::requirements::{Map, page};

pub(super) fn check(files: &Tracked, findings: &mut Findings) {
    let map = Map::read(files);
    for (place, text) in map.faults() {
        findings.error(&place, text);
    }
    let read = |path: &str| files.find(path).map_or("", |file| file.text.as_str());
    let stale = page::stale(read, &map);
    if let Some((path, first)) = stale.first() {
        let count = stale.len();
        findings.error(
            path,
            format!("says otherwise than the tests about {first} ({count} in all); run cargo xtask requirements"),
        );
    }
}
