//! The children of a run, and how many descendants it has used. Only the fold of an event changes
//! it.

use crate::run::agents::WorkerStep;
use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use tandem_record::{NodeId, RunId, RunStatus, Seq, Work, WorkflowId};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Children {
    pub(super) started: Vec<Child>,
    /// Runs started or granted to children, and not returned.
    #[serde(default)]
    pub(super) descendants: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Child {
    pub(in crate::run) run_id: RunId,
    pub(in crate::run) workflow_id: WorkflowId,
    pub(in crate::run) node: NodeId,
    pub(in crate::run) status: RunStatus,
    /// The event that recorded its end; its writes are visible from the next event on.
    #[serde(default)]
    pub(super) ended: Option<Seq>,
    /// Started by the run this one was forked from; this run does not cancel it.
    #[serde(default)]
    pub(super) inherited: bool,
}

impl Children {
    /// A child was named and takes its part of the allowance.
    pub(in crate::run) fn record(
        &mut self,
        node: &NodeId,
        (run_id, workflow_id): (&RunId, &WorkflowId),
        granted: u64,
        inherited: bool,
    ) {
        let spent = granted.saturating_add(1);
        self.descendants = self.descendants.saturating_add(spent);
        self.started.push(Child {
            run_id: run_id.clone(),
            workflow_id: workflow_id.clone(),
            node: node.clone(),
            status: RunStatus::Running,
            ended: None,
            inherited,
        });
    }

    /// An ended child did not use all descendants it was granted.
    pub(in crate::run) fn return_descendants(&mut self, returned: u64) {
        self.descendants = self.descendants.saturating_sub(returned);
    }

    pub(in crate::run) fn set_status(&mut self, child: &RunId, status: RunStatus, seq: Seq) {
        let mut newest_first = self.started.iter_mut().rev();
        if let Some(known) = newest_first.find(|c| c.run_id == *child) {
            known.set_status(status, seq);
        }
    }

    /// Sets the status of the newest child of the node that started it.
    pub(in crate::run) fn set_newest_status(
        &mut self,
        node: &NodeId,
        status: Option<RunStatus>,
        seq: Seq,
    ) {
        let mut newest_first = self.started.iter_mut().rev();
        if let Some(status) = status
            && let Some(child) = newest_first.find(|c| c.node == *node)
        {
            child.set_status(status, seq);
        }
    }
}

impl Child {
    fn set_status(&mut self, status: RunStatus, seq: Seq) {
        self.status = status;
        if status.is_terminal() {
            self.ended = Some(seq);
        }
    }
}

impl Run {
    /// All children, oldest first.
    pub(in crate::run) fn children(&self) -> &[Child] {
        &self.state.children.started
    }

    /// Children of this run that have not ended, without those of the source of a fork.
    pub(in crate::run) fn live_children(&self) -> impl Iterator<Item = &Child> {
        let children = self.children().iter();
        children.filter(|c| !c.status.is_terminal() && !c.inherited)
    }

    /// Children whose end was recorded at `from` or later, with the event that recorded it.
    pub fn children_ended_since(&self, from: Seq) -> impl Iterator<Item = (&RunId, Seq)> {
        let children = self.children().iter();
        children.filter_map(move |c| Some((&c.run_id, c.ended.filter(|seq| *seq >= from)?)))
    }

    /// Children a node waits for, and whether each is cancelled with it.
    pub(in crate::run) fn awaited_children(
        &self,
        ix: usize,
    ) -> impl Iterator<Item = (&RunId, bool)> {
        let own = match &self.node(ix).work {
            Some(Work::Child {
                child,
                propagate_cancel,
                ..
            }) => Some((child, *propagate_cancel)),
            _ => None,
        };
        let workers = self.dispatching(ix).into_iter().flat_map(|d| &d.workers);
        let live = workers.filter(|w| w.step == WorkerStep::Running);
        own.into_iter()
            .chain(live.filter_map(|w| Some((w.child.as_ref()?, true))))
    }

    /// Whether a cancel of the run has to wait for children of this node.
    pub(in crate::run) fn holds_up_cancel(&self, ix: usize) -> bool {
        let mut awaited = self.awaited_children(ix);
        self.node(ix).is_open() && awaited.any(|(_, goes_down)| goes_down)
    }
}
