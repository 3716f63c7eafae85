//! Which test proves which requirement of the protocol. The citations are found in the tests, the
//! tests are run, and the result is written to `docs/requirements.md`.
//!
//! A test cites a requirement by number (`R-NNNN-N`) in a comment or a name. A test that proves a
//! part of the statement names the part on the same line: `R-NNNN-N (half: what it proves)`.
//! Nothing is listed by hand: tidy compares the page with the sources.

pub(crate) mod page;
pub(crate) mod python;
mod run;
pub(crate) mod rust;
#[cfg(test)]
mod tests;

use crate::Outcome;
use crate::process::root;
use crate::tidy::tracked::Tracked;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A group of requirements: its number, how many there are, and their subject.
pub(crate) struct RequirementGroup {
    pub(crate) name: &'static str,
    pub(crate) count: u32,
    pub(crate) about: &'static str,
}

pub(crate) const REQUIREMENT_GROUPS: [RequirementGroup; 4] = [
    RequirementGroup {
        name: "0023",
        count: 28,
        about: "What agents say, and the mock agent of conformance workflows.",
    },
    RequirementGroup {
        name: "0039",
        count: 30,
        about: "The confidence floor; memory across sub-runs and forks.",
    },
    RequirementGroup {
        name: "0040",
        count: 18,
        about: "Causation across hosts. 5 and 6 are about serving MCP tools and about A2A, which this version does not do \
                and does not advertise; proved besides is what they will stand on: the one way requests leave and the one \
                way they come in.",
    },
    RequirementGroup {
        name: "0044",
        count: 11,
        about: "What the question about a held decision is called.",
    },
];

/// One requirement, in the order of the page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requirement {
    group: String,
    number: u32,
}

impl Requirement {
    pub(crate) fn exists(&self) -> bool {
        REQUIREMENT_GROUPS
            .iter()
            .any(|f| f.name == self.group && (1..=f.count).contains(&self.number))
    }

    fn all() -> impl Iterator<Item = Self> {
        REQUIREMENT_GROUPS.iter().flat_map(|group| {
            (1..=group.count).map(|number| Self {
                group: group.name.to_owned(),
                number,
            })
        })
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R-{}-{}", self.group, self.number)
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
    let citations = citations(text).into_iter();
    citations.map(|citation| citation.requirement).collect()
}

/// The numbers cited in a text, with the parts they prove.
pub(crate) fn citations(text: &str) -> Vec<Citation> {
    text.match_indices("R-")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '-'))
        .filter_map(|(at, _)| {
            let (group, rest) = text[at + 2..].split_once('-')?;
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let whole = group.len() == 4 && group.bytes().all(|b| b.is_ascii_digit());
            let part = rest[digits..].strip_prefix(PART);
            let part = part.and_then(|part| Some(part.split_once(')')?.0.to_owned()));
            whole.then_some(Citation {
                requirement: Requirement {
                    group: group.to_owned(),
                    number: rest[..digits].parse().ok()?,
                },
                part,
            })
        })
        .collect()
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
}

impl Map {
    pub(crate) fn read(files: &Tracked) -> Self {
        let mut map = Self::default();
        for file in &files.all {
            if file.path.starts_with("crates/") && file.path.ends_with(".rs") {
                rust::scan(&file.path, &file.text, &mut map);
            } else if file.path.starts_with("tests/") && file.path.ends_with(".py") {
                python::scan(&file.path, &file.text, &mut map);
            }
        }
        map
    }

    fn cite(&mut self, citations: Vec<Citation>, test: &Test) {
        for citation in citations {
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
        for (requirement, proofs) in &self.tests {
            let Some(first) = proofs.first() else {
                continue;
            };
            if !requirement.exists() {
                let text = format!("cites {requirement}, which does not exist");
                faults.push((first.test.to_string(), text));
            }
            let parts: BTreeSet<&Option<String>> = proofs.iter().map(|p| &p.part).collect();
            if !parts.contains(&None) && parts.len() < 2 {
                let text = format!("proves half of {requirement}, and no test the other half");
                faults.push((first.test.to_string(), text));
            }
        }
        for requirement in Requirement::all() {
            if !self.tests.contains_key(&requirement) {
                let text = format!("no test cites {requirement}");
                faults.push((page::PATH.to_owned(), text));
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
    let page = page::write(&map, &results, &run::today()?);
    let path = root().join(page::PATH);
    std::fs::write(path, page).map_err(|error| format!("{}: {error}", page::PATH))?;
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
            println!(
                "requirements: {numbers} proved by {tests} tests; see {}",
                page::PATH
            );
            Ok(())
        }
        count => Err(format!("{count} faults")),
    }
}
