//! What clients were told. All of it must stay true.

use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{RecordedEvent, Reply, RunId, RunView};
use tandem_runtime::IdempotencyKey;

#[derive(Default)]
pub(super) struct ClientObservations {
    /// Runs whose creation was acknowledged.
    pub(super) created: BTreeSet<RunId>,
    /// The response given under each key.
    pub(super) answers: BTreeMap<IdempotencyKey, String>,
    /// The longest part of each log that was read.
    pub(super) logs: BTreeMap<RunId, Vec<RecordedEvent>>,
    /// Runs as they were shown.
    pub(super) views: Vec<RunView>,
    pub(super) replies: Vec<(RunId, Reply)>,
    pub(super) violations: Vec<String>,
    forks: usize,
}

impl ClientObservations {
    pub(super) fn record_answer(&mut self, key: &IdempotencyKey, answer: String) {
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

    /// Counts a request for a fork. `false` when there were enough of them.
    pub(super) fn may_fork(&mut self, max: usize) -> bool {
        self.forks += 1;
        self.forks <= max
    }

    /// Purged runs cannot be compared with what was seen of them.
    pub(super) fn forget(&mut self, purged: &BTreeSet<RunId>) {
        self.created.retain(|run| !purged.contains(run));
        self.logs.retain(|run, _| !purged.contains(run));
        self.views.retain(|view| !purged.contains(&view.run_id));
        self.replies.retain(|(run, _)| !purged.contains(run));
    }

    pub(super) fn record_log(&mut self, run: &RunId, events: Vec<RecordedEvent>) {
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
