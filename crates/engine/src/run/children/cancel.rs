//! Cancels children that a run no longer waits for.

use crate::run::draft::DecisionDraft;
use tandem_record::{EffectKind, RunId};

impl DecisionDraft<'_> {
    /// Cancels children with their parent, unless their node detaches them.
    pub(in crate::run) fn cancel_children(&mut self) {
        let nodes = 0..self.run.nodes().len();
        let detached: Vec<RunId> = nodes
            .flat_map(|ix| self.run.awaited_children(ix))
            .filter(|(_, goes_down)| !goes_down)
            .map(|(child, _)| child.clone())
            .collect();
        let live: Vec<RunId> = self
            .run
            .live_children()
            .map(|c| c.run_id.clone())
            .filter(|c| !detached.contains(c))
            .collect();
        self.cancel_flows(&live);
        for child in live.into_iter().filter(|child| !child.is_flow_run()) {
            self.add_one_shot_effect(format!("cancel:{child}"), EffectKind::CancelChild { child });
        }
    }

    /// Stops waiting for children: they are cancelled, unless they may continue without this run.
    pub(in crate::run) fn give_up_child(&mut self, ix: usize) {
        self.cancel_flow(ix);
        let awaited = self.run.awaited_children(ix);
        let down: Vec<RunId> = awaited
            .filter(|(_, goes_down)| *goes_down)
            .map(|(child, _)| child.clone())
            .collect();
        for child in down {
            self.add_one_shot_effect(format!("cancel:{child}"), EffectKind::CancelChild { child });
        }
    }

    /// Whether a cancel has to wait for children that were cancelled.
    pub(in crate::run) fn has_children_to_await(&self) -> bool {
        let mut nodes = 0..self.run.nodes().len();
        nodes.any(|ix| self.run.holds_up_cancel(ix))
    }
}
