//! The mutants that need not be caught, each with a reason: `accepted.txt` beside this file.

use std::collections::BTreeMap;

const LIST: &str = include_str!("accepted.txt");

#[derive(Debug)]
pub(super) struct Accepted {
    reasons: BTreeMap<&'static str, &'static str>,
}

impl Accepted {
    /// Why a mutant need not be caught.
    pub(super) fn reason(&self, key: &str) -> Option<&'static str> {
        self.reasons.get(key).copied()
    }
}

pub(super) fn read() -> Result<Accepted, String> {
    parse(LIST)
}

/// Lines of comments, then for each mutant its key and, indented on the next line, the reason.
pub(super) fn parse(list: &'static str) -> Result<Accepted, String> {
    let lines = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut lines = lines.peekable();
    let mut reasons = BTreeMap::new();
    while let Some(key) = lines.next() {
        let reason = lines.next_if(|line| line.starts_with(' ')).map(str::trim);
        match reason {
            Some(reason) if !key.starts_with(' ') => {
                if reasons.insert(key, reason).is_some() {
                    return Err(format!("accepted.txt lists {key:?} twice"));
                }
            }
            _ => return Err(format!("accepted.txt has no mutant and reason at {key:?}")),
        }
    }
    Ok(Accepted { reasons })
}
