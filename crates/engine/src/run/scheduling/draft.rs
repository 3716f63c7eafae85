//! What a decision has scheduled so far.

use crate::run::draft::DecisionDraft;
use std::collections::VecDeque;

#[derive(Default)]
pub(in crate::run) struct SchedulingDraft {
    /// Triggers whose channel was written in this decision, in order.
    pub(super) triggers_to_fire: VecDeque<String>,
    pub(super) starts: u32,
    /// The rest is left to the next decision.
    pub(super) continues: bool,
}

impl DecisionDraft<'_> {
    /// Counts one more node start, or a step that takes as much.
    pub(crate) fn count_start(&mut self) {
        self.scheduling.starts += 1;
    }
}
