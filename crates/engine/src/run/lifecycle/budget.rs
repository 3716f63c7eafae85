//! Limits in bytes of one event, one decision and one run.
//!
//! Values are copied wherever a workflow passes them on: into a node's outputs, into variables,
//! into children. A small document can therefore multiply a small input without end. The size of
//! each event is counted as it is drafted ([`tandem_record::Size`]), and a run that exceeds a limit
//! fails:
//!
//! - **An event** has at most `max_event_bytes` of text (`event_too_large`). What nodes are given and what
//!   children leave is checked before it is copied (`value_too_large`). Only the start of a run is exempt:
//!   its size is bounded where requests and documents are accepted.
//! - **A decision** that drafted `max_decision_bytes` leaves the rest to the next one, like one with
//!   many node starts. A single step that drafts several times that fails the run (`decision_too_large`).
//! - **A run** keeps at most `max_state_bytes` in memory (`run_state_too_large`). That bounds its
//!   snapshots too. What is written to channels and variables is checked before it is.
//!
//! A replay is exempt: it repeats what its source was allowed, and its length is limited where the
//! source's log is read.

use super::draft::UsageDraft;
use super::limits::Limits;
use super::nesting::too_deep;
use crate::cost;
use crate::definition::Problem;
use crate::run::draft::DecisionDraft;
use crate::run::refusal::Refusal;
use crate::run::state::Run;
use serde_json::Value;
use tandem_record::{ChildOutcome, ErrorInfo, Event, Object, RunStatus, Seq, Size};

/// Drafted bytes after which the size of the state is checked again.
const RECHECK_AFTER_BYTES: usize = 256 * 1024;
/// Growth below which the whole state is not counted again.
const UNCOUNTED_GROWTH_BYTES: usize = 1024 * 1024;
/// A node's entry in the state, and its index.
const NODE_OVERHEAD: Size = Size {
    text: 600,
    memory: 1024,
};
/// What folding any event may add besides its values: times, sequence numbers, names.
const EVENT_OVERHEAD: Size = Size {
    text: 300,
    memory: 512,
};

/// The size of a run's state: an exact count, plus an upper bound of what was added since.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct StateSize {
    counted: Size,
    since: Size,
}

impl StateSize {
    pub(in crate::run) fn of_new(nodes: usize) -> Self {
        let counted = Size {
            text: NODE_OVERHEAD.text.saturating_mul(nodes),
            memory: NODE_OVERHEAD.memory.saturating_mul(nodes),
        };
        Self {
            counted,
            since: Size::default(),
        }
    }

    fn upper_bound(self) -> Size {
        self.counted + self.since
    }
}

impl Run {
    /// An upper bound of the size of the state.
    pub fn size(&self) -> Size {
        self.size.upper_bound()
    }

    /// Adds what a folded event may have added.
    pub(in crate::run) fn add_event_size(&mut self, event: &Event) -> Size {
        let size = Size::of(event);
        // Some values are stored twice, such as a vote and the changes it requests.
        self.size.since += size + size + EVENT_OVERHEAD;
        let grown = self.size.since.memory;
        if grown
            > self
                .size
                .counted
                .memory
                .saturating_add(UNCOUNTED_GROWTH_BYTES)
        {
            self.recount_size();
        }
        size
    }

    /// Counts the state exactly.
    pub(in crate::run) fn recount_size(&mut self) -> Size {
        let counted = Size::of(&*self.state);
        self.size = StateSize {
            counted,
            since: Size::default(),
        };
        counted
    }
}

impl Limits {
    /// A decision never exceeds this amount of text by more than one event.
    fn decision_ceiling(&self) -> usize {
        let events = self.max_event_bytes.saturating_mul(3);
        self.max_decision_bytes.saturating_add(events)
    }

    /// Whether values fit into one event, for values that the engine copies.
    pub(crate) fn admit(&self, what: &str, text: usize) -> Result<(), ErrorInfo> {
        if text <= self.max_event_bytes {
            return Ok(());
        }
        let limit = self.max_event_bytes;
        Err(ErrorInfo::new(
            "value_too_large",
            format!("{what} would be {text} bytes; at most {limit} are allowed"),
        ))
    }
}

impl DecisionDraft<'_> {
    /// Counts a drafted event, and notes what is wrong with it.
    pub(in crate::run) fn note_drafted(&mut self, size: Size, event: &Event, seq: Seq) {
        self.usage.size += size;
        let exempt = matches!(event, Event::RunStarted { .. });
        if size.text > self.cx.limits.max_event_bytes && !exempt {
            self.usage.oversized.get_or_insert(seq);
        }
        if too_deep(event) {
            self.usage.too_deep = Some(seq);
        }
    }

    /// Counts what the commit contains besides events.
    pub(in crate::run) fn note_carried(&mut self, size: Size) {
        self.usage.size += size;
    }

    /// Whether the rest should be left to the next decision.
    pub(in crate::run) fn is_full(&self) -> bool {
        let limits = self.cx.limits;
        let size = self.usage.size;
        let full =
            size.text >= limits.max_decision_bytes || size.memory >= limits.max_state_bytes / 2;
        full && !self.is_replaying()
    }

    /// Events copied by a fork do not count as work of this decision.
    pub(in crate::run) fn reset_usage(&mut self) {
        let too_deep = self.usage.too_deep;
        self.usage = UsageDraft {
            too_deep,
            ..UsageDraft::default()
        };
    }

    /// Whether a child's variables can be merged into the run's under these names.
    pub(in crate::run) fn admit_merge(
        &self,
        mapping: &[(String, String)],
        variables: &Object,
    ) -> Result<(), ErrorInfo> {
        let text = |value: Option<_>| value.map_or(0, |value| Size::of(value).text);
        let changed = mapping.iter().map(|(ours, theirs)| {
            let next = variables.get(theirs);
            let previous = next.and_then(|_| self.run.variables().get(ours));
            text(next) + text(previous)
        });
        let total = changed.sum();
        self.cx.limits.admit("what the child leaves", total)
    }

    /// Whether a child can start with inputs of this size: its first event contains them twice.
    pub(in crate::run) fn admit_inputs(&self, size: Size) -> Result<(), Refusal> {
        let text = size.text.saturating_mul(2);
        let admitted = self.cx.limits.admit("the start of the child", text);
        admitted.map_err(|error| Refusal::Invalid(vec![Problem::new("/inputs", error.message)]))
    }

    /// Whether the run can end with these outputs.
    pub(in crate::run) fn admit_outputs(&self, outputs: &Object) -> Result<(), ErrorInfo> {
        if self.is_replaying() || self.run.size().text <= self.cx.limits.max_event_bytes {
            return Ok(());
        }
        let text = Size::of(outputs).text;
        self.cx.limits.admit("what the run puts out", text)
    }

    /// A child that completed with more than its parent can store counts as failed for its parent.
    pub(in crate::run) fn fail_oversized_outcome(&self, outcome: &mut ChildOutcome) {
        let ChildOutcome::Ended {
            status,
            variables,
            untrusted,
            error,
            ..
        } = outcome
        else {
            return;
        };
        let text = match self.run.size().text <= self.cx.limits.max_event_bytes {
            true => return,
            false => Size::of(variables).text,
        };
        if let Err(too_large) = self.cx.limits.admit("what the run leaves", text) {
            *status = RunStatus::Failed;
            *error = Some(too_large);
            variables.clear();
            untrusted.clear();
        }
    }

    /// Whether the state can take a value in place of another: asked before an event carries it.
    pub(in crate::run) fn admit_growth(
        &mut self,
        value: &Value,
        replaced: Option<Size>,
    ) -> Result<(), ErrorInfo> {
        if self.is_replaying() {
            return Ok(());
        }
        let limit = self.cx.limits.max_state_bytes;
        let replaced = replaced.unwrap_or_default().memory;
        let grows = Size::of(value).memory.saturating_sub(replaced);
        let fits = |state: Size| state.memory.saturating_add(grows) <= limit;
        if fits(self.run.size()) || fits(self.recount()) {
            return Ok(());
        }
        let message = format!("the run would hold more than {limit} bytes");
        Err(ErrorInfo::new("run_state_too_large", message))
    }

    /// Counts the state exactly.
    fn recount(&mut self) -> Size {
        let _ = self.cx.work.try_spend(cost::of_copy(self.run.size()) / 4);
        self.run.recount_size()
    }

    /// Ends a run that outgrew a budget, before anything is built upon what it holds.
    pub(in crate::run) fn fail_if_too_large(&mut self) -> bool {
        if self.is_replaying() {
            return false;
        }
        let limits = self.cx.limits;
        if let Some(seq) = self.usage.oversized.take() {
            let limit = limits.max_event_bytes;
            let message = format!("an event of the run is larger than {limit} bytes");
            self.fail_run(ErrorInfo::new("event_too_large", message), None, Some(seq));
            return true;
        }
        let head = self.run.head();
        let ceiling = limits.decision_ceiling();
        if self.usage.size.text > ceiling {
            let message = format!("one step of the run produced more than {ceiling} bytes");
            self.fail_run(ErrorInfo::new("decision_too_large", message), None, head);
            return true;
        }
        let drafted = self.usage.size.memory;
        let due = |at: usize| drafted.saturating_sub(at) >= RECHECK_AFTER_BYTES;
        if !self.usage.state_checked_at.is_none_or(due) {
            return false;
        }
        self.usage.state_checked_at = Some(drafted);
        let limit = limits.max_state_bytes;
        if self.run.size().memory <= limit || self.recount().memory <= limit {
            return false;
        }
        let message = format!("the run holds more than {limit} bytes");
        self.fail_run(ErrorInfo::new("run_state_too_large", message), None, head);
        true
    }
}
