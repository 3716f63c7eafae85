//! Every requirement is cited by a test, and the requirements page matches the tests.

use super::Findings;
use super::tracked::Tracked;
use crate::requirements::{Map, page};

pub(super) fn check(files: &Tracked, findings: &mut Findings) {
    let map = Map::read(files);
    for (place, text) in map.faults() {
        findings.error(&place, text);
    }
    let page = files.find(page::PATH).map_or("", |file| &file.text);
    let stale = page::stale(page, &map);
    if let Some(first) = stale.first() {
        let count = stale.len();
        findings.error(
            page::PATH,
            format!("says otherwise than the tests about {first} ({count} in all); run cargo xtask requirements"),
        );
    }
}
