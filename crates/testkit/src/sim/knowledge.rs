//! What clients were told. Whatever is in here must be true for ever.

use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{Recorded, Reply, RunId, RunView};
use tandem_runtime::IdempotencyKey;

#[derive(Default)]
pub(super) struct Knowledge {
    /// Runs whose creation was acknowledged.
    pub(super) created: BTreeSet<RunId>,
    /// The answer given under each key.
    pub(super) answers: BTreeMap<IdempotencyKey, String>,
    /// The longest part of each log anybody read.
    pub(super) logs: BTreeMap<RunId, Vec<Recorded>>,
    /// Runs as they were shown.
    pub(super) views: Vec<RunView>,
    pub(super) replies: Vec<(RunId, Reply)>,
    pub(super) violations: Vec<String>,
}

impl Knowledge {
    pub(super) fn answered(&mut self, key: &IdempotencyKey, answer: String) {
        match self.answers.get(key) {
            Some(before) if *before != answer => self.violations.push(format!(
                "key {} was answered {before:?} and then {answer:?}",
                key.0
            )),
            Some(_) => {}
            None => {
                self.answers.insert(key.clone(), answer);
            }
        }
    }

    pub(super) fn read(&mut self, run: &RunId, events: Vec<Recorded>) {
        let before = self.logs.entry(run.clone()).or_default();
        let shared = before.len().min(events.len());
        if before[..shared] != events[..shared] {
            let message = format!("the log of {run} was rewritten");
            self.violations.push(message);
        } else if events.len() > before.len() {
            *before = events;
        }
    }
}
