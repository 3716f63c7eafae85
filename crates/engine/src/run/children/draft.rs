//! The children that a decision creates, and what an ended child returned.

use super::new_child_run::NewChildRun;
use crate::run::draft::DecisionDraft;
use tandem_record::Effect;

#[derive(Default)]
pub(in crate::run) struct ChildrenDraft {
    pub(super) created: Vec<NewChildRun>,
    /// Runs that the ended child was granted and did not start.
    returned: u64,
}

impl ChildrenDraft {
    /// The created children. A child that the same decision cancels is created as cancelled, so its
    /// cancel effect is removed.
    pub(in crate::run) fn into_created(self, effects: &mut Vec<Effect>) -> Vec<NewChildRun> {
        let mut created = self.created;
        for new_child in &mut created {
            new_child.absorb_cancel_effect(effects);
        }
        created
    }
}

impl DecisionDraft<'_> {
    /// An ended child did not use this many descendants. The event that records its end returns
    /// them to the run.
    pub(in crate::run) fn hold_returned_descendants(&mut self, unused: u64) {
        self.children.returned = unused;
    }

    /// The descendants that the next event returns.
    pub(in crate::run) fn take_returned_descendants(&mut self) -> u64 {
        std::mem::take(&mut self.children.returned)
    }
}
