//! The children that a decision creates.

use super::new_child_run::NewChildRun;
use tandem_record::Effect;

#[derive(Default)]
pub(in crate::run) struct ChildrenDraft {
    pub(super) created: Vec<NewChildRun>,
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
