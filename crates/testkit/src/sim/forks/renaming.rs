//! Compares events of a fork with those of its source. A fork has its own id in the names of what belongs to it.
//! Ids that the engine derives from the id of a run by hashing differ too, one to one. Everything else is equal.

use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::{ForkMode, RunId};

/// Fields that hold derived ids.
const IDS: &[&str] = &["call", "child", "effect", "id", "interrupt"];
/// Fields of open work, which begins anew in a branch.
const TIMES: &[&str] = &["deadline", "due", "next", "requested_at", "until"];

pub(super) struct Renaming<'a> {
    mode: ForkMode,
    source: &'a RunId,
    fork: &'a RunId,
    renamed: BTreeMap<String, String>,
    /// The same in the other direction.
    originals: BTreeMap<String, String>,
}

impl<'a> Renaming<'a> {
    pub(super) fn new(mode: ForkMode, source: &'a RunId, fork: &'a RunId) -> Self {
        Self {
            mode,
            source,
            fork,
            renamed: BTreeMap::new(),
            originals: BTreeMap::new(),
        }
    }

    pub(super) fn is_same(&mut self, original: &Value, copy: &Value) -> bool {
        self.is_same_field("", original, copy)
    }

    fn is_same_field(&mut self, field: &str, original: &Value, copy: &Value) -> bool {
        match (original, copy) {
            (Value::Object(original), Value::Object(copy)) => {
                original.len() == copy.len()
                    && original.iter().all(|(field, value)| {
                        let copied = copy.get(field);
                        copied.is_some_and(|copied| self.is_same_field(field, value, copied))
                    })
            }
            (Value::Array(original), Value::Array(copy)) => {
                let mut pairs = original.iter().zip(copy);
                original.len() == copy.len()
                    && pairs.all(|(value, copied)| self.is_same_field(field, value, copied))
            }
            (Value::String(original), Value::String(copy)) => {
                original == copy
                    || original.replace(self.source.as_str(), self.fork.as_str()) == *copy
                    || (IDS.contains(&field) && self.rename(original, copy))
            }
            (Value::Number(_), Value::Number(_)) if TIMES.contains(&field) => {
                original == copy || self.mode == ForkMode::Branch
            }
            _ => original == copy,
        }
    }

    /// Whether the new name is the only one of this id, and of no other.
    fn rename(&mut self, original: &str, copy: &str) -> bool {
        let renamed = self.renamed.entry(original.to_owned());
        let back = self.originals.entry(copy.to_owned());
        renamed.or_insert_with(|| copy.to_owned()) == copy
            && back.or_insert_with(|| original.to_owned()) == original
    }
}
