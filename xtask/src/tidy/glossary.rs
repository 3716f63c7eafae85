//! Every name in the last column of `docs/glossary.md` is defined in the code.

use super::Findings;
use super::tracked::Tracked;
use std::collections::BTreeSet;

const PAGE: &str = "docs/glossary.md";

pub(super) fn check(files: &Tracked, findings: &mut Findings) {
    let Some(page) = files.all.iter().find(|file| file.path == PAGE) else {
        findings.error(PAGE, "is missing");
        return;
    };
    let mut words = BTreeSet::new();
    for file in &files.all {
        if file.path.starts_with("crates/") && file.path.ends_with(".rs") {
            words.extend(identifiers(&file.text));
        }
    }
    for (number, line) in (1..).zip(page.text.lines()) {
        for name in names(line).filter(|name| !words.contains(name)) {
            let place = format!("{PAGE}:{number}");
            findings.error(&place, format!("`{name}` is not in the code"));
        }
    }
}

/// What stands in backticks in the last cell of a table row.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let row = line.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    let cell = row.and_then(|row| row.rsplit('|').next()).unwrap_or("");
    cell.split('`').skip(1).step_by(2)
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_last_cell_of_a_row() {
        let row = "| run | One `execution`. | `Run`, `State` |";
        assert_eq!(names(row).collect::<Vec<_>>(), ["Run", "State"]);
        assert_eq!(names("no table `here`").count(), 0);
        assert_eq!(names("|---|---|---|").count(), 0);
    }
}
