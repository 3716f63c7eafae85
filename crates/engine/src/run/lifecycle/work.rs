//! Work: how much one decision may do.
//!
//! What a decision evaluates grows with the values a run holds, not with the document: conditions,
//! expressions, titles, ports, channels, memory. All of it is charged to the meter of the decision
//! ([`Context::work`]) before it is done, by the shape of the values (`crate::cost`), so that a
//! repeated decision is charged the same.
//!
//! - Above the meter's soft limit nothing is decided ([`Need::MoreWork`]): the decision is made again
//!   off the threads that serve everybody.
//! - A decision that did [`CONTINUE_AFTER_WORK`] leaves the rest to the next one.
//! - A single step that exceeds the hard limit fails the run (`decision_work_exceeded`). The decision
//!   is made again up to that step, so that nothing is concluded from what was not evaluated. Where a
//!   request brought the work, the request is refused.
//!
//! A replay is not held to the hard limit: it repeats what its source was allowed.

use crate::cost;
use crate::definition::Problem;
use crate::run::draft::{Context, Decision, DecisionDraft};
use crate::run::refusal::{Need, Refusal, Undecided};
use crate::run::state::Run;
use tandem_record::{ErrorInfo, Size};
use tandem_schema::{MAX_WORK, Meter};

/// Work of one decision at most.
pub const MAX_DECISION_WORK: u64 = 2 * MAX_WORK;
/// Work after which a decision leaves the rest to the next one: others get their turn in between.
pub(in crate::run) const CONTINUE_AFTER_WORK: u64 = MAX_WORK / 4;
/// Work of one step of the scheduler, and for each node it looks at.
const STEP: u64 = 2_000;
const NODE: u64 = 4;
/// An event is folded, redacted, encoded and stored.
const EVENT_COPIES: u64 = 2;

impl Context<'_> {
    /// Decides within the meter's limit. `give_up` decides what becomes of a command that is too much
    /// work before the run even advances.
    pub(in crate::run) fn within_work_limit(
        &self,
        decide: impl Fn(&Context<'_>) -> Result<Decision, Undecided>,
        give_up: impl FnOnce(&Context<'_>) -> Result<Decision, Undecided>,
    ) -> Result<Decision, Undecided> {
        let decided = decide(self);
        if !self.work.exceeded() {
            return decided;
        }
        if !self.work.exceeded_hard_limit() {
            return Err(Undecided::Needs(Need::MoreWork));
        }
        let work = self.work.up_to_failing_step();
        let again = Context {
            work: &work,
            ..*self
        };
        let decided = decide(&again);
        if !work.exceeded() {
            return decided;
        }
        if !work.exceeded_hard_limit() {
            return Err(Undecided::Needs(Need::MoreWork));
        }
        let work = Meter::unlimited();
        give_up(&Context {
            work: &work,
            ..*self
        })
    }
}

impl DecisionDraft<'_> {
    /// Charges one step of the scheduler.
    pub(in crate::run) fn charge_step(&self) -> bool {
        let nodes = self.run.def.nodes.len() as u64;
        let work = STEP + NODE * nodes;
        // A replay takes as many steps as its source did in many decisions.
        self.cx.work.try_spend(work)
    }
}

/// The first event of a decision copies the state it changes.
pub(in crate::run) fn charge_state_copy(run: &Run, work: &Meter) {
    let _ = work.try_spend(cost::of_copy(run.size()) / 2);
}

/// What follows is not drafted when this does not fit; the event itself is no longer avoided.
pub(in crate::run) fn charge_event(size: Size, work: &Meter) {
    let _ = work.try_spend(EVENT_COPIES * cost::of_copy(size));
}

pub(in crate::run) fn work_exceeded() -> ErrorInfo {
    let message = "one step of the run takes more work than a decision may do";
    ErrorInfo::new("decision_work_exceeded", message)
}

/// A request that cannot be decided.
pub(in crate::run) fn too_much_to_check() -> Refusal {
    let message = "takes more work to check than a decision may do";
    Refusal::Invalid(vec![Problem::new("", message)])
}
