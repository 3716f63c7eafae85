//! Which test proves which requirement of the protocol. The citations are found in the tests, the
//! tests are run, and the results are written to the pages of `groups.rs`.
//!
//! A test cites a requirement by number (`R-NNNN-N`, `Z-N`) in a comment or a name. A test that proves a
//! part of the statement names the part: `R-NNNN-N (half: what it proves)`. A part may go on in the next line of
//! the comment.
//! Nothing is listed by hand: tidy compares the pages with the sources.

mod groups;
pub(crate) mod page;
pub(crate) mod python;
mod run;
pub(crate) mod rust;
#[cfg(test)]
mod tests;

use crate::Outcome;
use crate::process::root;
use crate::tidy::tracked::Tracked;
use groups::{REQUIREMENT_PAGES, RequirementGroup, groups};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One requirement, in the order of the pages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requirement {
    /// What stands before the number: `R-0023-`, `Z-`.
    prefix: String,
    number: u32,
}

impl Requirement {
    pub(crate) fn exists(&self) -> bool {
        groups().any(|group| group.has(&self.prefix, self.number))
    }

    /// Whether a test has to prove it.
    pub(crate) fn is_claimed(&self) -> bool {
        groups().any(|group| group.has(&self.prefix, self.number) && group.claims(self.number))
    }

    fn of(group: &'static RequirementGroup) -> impl Iterator<Item = Self> {
        let numbers = (group.first..=group.last).filter(|number| group.claims(*number));
        numbers.map(|number| Self {
            prefix: group.prefix.to_owned(),
            number,
        })
    }

    /// The number a text begins with, and the rest of the text.
    fn read(text: &str) -> Option<(Self, &str)> {
        let prefix = KINDS.iter().find_map(|kind| kind(text))?;
        let digits = text[prefix..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        let (number, rest) = text[prefix..].split_at(digits);
        let requirement = Self {
            prefix: text[..prefix].to_owned(),
            number: number.parse().ok()?,
        };
        Some((requirement, rest))
    }
}

/// The kinds of numbers: each tells how long the prefix of such a number is.
const KINDS: [fn(&str) -> Option<usize>; 2] = [
    |text| {
        let (group, _) = text.strip_prefix("R-")?.split_once('-')?;
        let is_group = group.len() == 4 && group.bytes().all(|b| b.is_ascii_digit());
        is_group.then_some("R-0000-".len())
    },
    |text| text.starts_with("Z-").then_some("Z-".len()),
];

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix, self.number)
    }
}

/// A cited number, and the part it proves where it is not the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) requirement: Requirement,
    pub(crate) part: Option<String>,
}

/// Introduces the part of a statement, after its number.
const PART: &str = " (half: ";

/// The numbers cited in a text.
pub(crate) fn cited(text: &str) -> Vec<Requirement> {
    numbers(text).map(|(requirement, _)| requirement).collect()
}

/// The numbers cited in a text, with the parts they prove.
pub(crate) fn citations(text: &str) -> Vec<Citation> {
    let read = |(requirement, rest): (Requirement, &str)| {
        let part = rest.strip_prefix(PART);
        let part = part.and_then(|part| Some(part.split_once(')')?.0.to_owned()));
        Citation { requirement, part }
    };
    numbers(text).map(read).collect()
}

/// The numbers cited in a text whose parts have no end: nobody can tell a part from the whole.
fn unfinished(text: &str) -> impl Iterator<Item = Requirement> {
    let is_unfinished =
        |(_, rest): &(Requirement, &str)| rest.starts_with(PART.trim_end()) && !rest.contains(')');
    numbers(text)
        .filter(is_unfinished)
        .map(|(requirement, _)| requirement)
}

/// The numbers in a text, each with what follows it.
fn numbers(text: &str) -> impl Iterator<Item = (Requirement, &str)> {
    let begins = |at: &usize| {
        text.is_char_boundary(*at)
            && !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '-')
    };
    let read = |at: usize| Requirement::read(&text[at..]);
    (0..text.len()).filter(begins).filter_map(read)
}

/// A test, and the part of a requirement it proves where it is not the whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Proof {
    pub(crate) test: Test,
    pub(crate) part: Option<String>,
}

/// A test as the page names it, with what is needed to find its result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Test {
    Rust {
        file: String,
        /// Modules inside the file, then the function.
        name: String,
    },
    Python {
        file: String,
        /// The label the check prints.
        label: String,
    },
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rust { file, name } => {
                write!(f, "{file}::{}", name.rsplit("::").next().unwrap_or(name))
            }
            Self::Python { file, label } => {
                write!(f, "{file}: {}", label_text(label))
            }
        }
    }
}

/// The label of a script's check without the numbers it cites.
fn label_text(label: &str) -> &str {
    let mut depth = 0;
    for (at, c) in label.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ':' if depth == 0 => return label[at + 1..].trim_start(),
            _ => {}
        }
    }
    label
}

/// A citation outside of any test.
pub(crate) struct Stray {
    /// Path and line.
    pub(crate) place: String,
    pub(crate) requirement: Requirement,
}

/// All citations found in the sources.
#[derive(Default)]
pub(crate) struct Map {
    pub(crate) tests: BTreeMap<Requirement, BTreeSet<Proof>>,
    pub(crate) strays: Vec<Stray>,
    /// Tests with a part that has no end.
    unfinished: Vec<(Test, Requirement)>,
}

impl Map {
    pub(crate) fn read(files: &Tracked) -> Self {
        let mut map = Self::default();
        for file in &files.all {
            let is_rust = file.path.ends_with(".rs");
            if is_rust
                && ["crates/", "examples/"]
                    .iter()
                    .any(|f| file.path.starts_with(f))
            {
                rust::scan(&file.path, &file.text, &mut map);
            } else if file.path.starts_with("tests/") && file.path.ends_with(".py") {
                python::scan(&file.path, &file.text, &mut map);
            }
        }
        map
    }

    fn cite(&mut self, text: &str, test: &Test) {
        let unfinished = unfinished(text).map(|requirement| (test.clone(), requirement));
        self.unfinished.extend(unfinished);
        for citation in citations(text) {
            let proofs = self.tests.entry(citation.requirement).or_default();
            proofs.insert(Proof {
                test: test.clone(),
                part: citation.part,
            });
        }
    }

    fn stray(&mut self, path: &str, line: usize, text: &str) {
        let found = cited(text).into_iter().map(|requirement| Stray {
            place: format!("{path}:{}", line + 1),
            requirement,
        });
        self.strays.extend(found);
    }

    /// Errors in the citations, each with its place.
    pub(crate) fn faults(&self) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        for stray in &self.strays {
            let text = format!("cites {} outside of a test", stray.requirement);
            faults.push((stray.place.clone(), text));
        }
        for (test, requirement) in &self.unfinished {
            let text = format!("names a part of {requirement} without a closing bracket");
            faults.push((test.to_string(), text));
        }
        for (requirement, proofs) in &self.tests {
            let Some(first) = proofs.first() else {
                continue;
            };
            if !requirement.exists() {
                let text = format!("cites {requirement}, which does not exist");
                faults.push((first.test.to_string(), text));
            }
            let parts: BTreeSet<&Option<String>> = proofs.iter().map(|p| &p.part).collect();
            let is_whole = parts.contains(&None) || parts.len() > 1;
            if requirement.is_claimed() && !is_whole {
                let text = format!("proves half of {requirement}, and no test the other half");
                faults.push((first.test.to_string(), text));
            }
        }
        for page in &REQUIREMENT_PAGES {
            let claimed = page.groups.iter().flat_map(Requirement::of);
            for requirement in claimed.filter(|claimed| !self.tests.contains_key(claimed)) {
                let text = format!("no test cites {requirement}");
                faults.push((page.path.to_owned(), text));
            }
        }
        faults
    }
}

pub(crate) fn requirements(_: &[String]) -> Outcome {
    let map = Map::read(&Tracked::read()?);
    let proofs = map.tests.values().flatten();
    let tests: BTreeSet<&Test> = proofs.map(|proof| &proof.test).collect();
    let results = run::run(&tests)?;
    let today = run::today()?;
    for page in &REQUIREMENT_PAGES {
        let text = page::write(page, &map, &results, &today);
        std::fs::write(root().join(page.path), text)
            .map_err(|error| format!("{}: {error}", page.path))?;
    }
    let mut faults: Vec<String> = map
        .faults()
        .into_iter()
        .map(|(p, t)| format!("{p}: {t}"))
        .collect();
    for test in &tests {
        let result = results.get(*test).copied().unwrap_or_default();
        if result.is_bad() {
            faults.push(format!("{test}: {result}"));
        }
    }
    for fault in &faults {
        println!("requirements: {fault}");
    }
    match faults.len() {
        0 => {
            let (numbers, tests) = (map.tests.len(), tests.len());
            let pages = REQUIREMENT_PAGES.map(|page| page.path).join(", ");
            println!("requirements: {numbers} proved by {tests} tests; see {pages}");
            Ok(())
        }
        count => Err(format!("{count} faults")),
    }
}
