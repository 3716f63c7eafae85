//! The children of a run. Only the fold of an event changes them.

use crate::run::agents::WorkerStep;
use crate::run::lifecycle::Phase;
use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use tandem_record::{NodeId, NodeStatus, RunId, RunStatus, Seq, Work, WorkflowId};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Children {
    pub(super) started: Vec<Child>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Child {
    pub(in crate::run) run_id: RunId,
    pub(in crate::run) workflow_id: WorkflowId,
    pub(in crate::run) node: NodeId,
    pub(in crate::run) status: RunStatus,
    /// The event that named it.
    #[serde(default)]
    pub(super) named: Seq,
    /// The event that recorded its end; its writes are visible from the next event on.
    #[serde(default)]
    pub(super) ended: Option<Seq>,
    /// Started by the run this one was forked from; this run does not cancel it.
    #[serde(default)]
    pub(super) inherited: bool,
}

impl Children {
    /// A child was named.
    pub(in crate::run) fn record(
        &mut self,
        node: &NodeId,
        (run_id, workflow_id): (&RunId, &WorkflowId),
        (seq, inherited): (Seq, bool),
    ) {
        self.started.push(Child {
            run_id: run_id.clone(),
            workflow_id: workflow_id.clone(),
            node: node.clone(),
            status: RunStatus::Running,
            named: seq,
            ended: None,
            inherited,
        });
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

    /// Whether a node waits for this flow.
    pub fn awaits_flow(&self, node: &NodeId, flow: &RunId) -> bool {
        let is_open = matches!(self.phase(), Phase::Running | Phase::Paused);
        let state = self.def.index(node).map(|ix| self.node(ix));
        state.is_some_and(|state| {
            let work = state.work.as_ref();
            let names = matches!(work, Some(Work::Flow { flow_run, .. }) if flow_run == flow);
            is_open && names && state.status == NodeStatus::Suspended
        })
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
