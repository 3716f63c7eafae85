//! A run as readers see it. Not masked: the wire's projection masks it before it leaves the
//! process.

use crate::run::state::Run;
use tandem_record::{
    ChildView, Event, InterruptView, NodeId, NodeView, RecordedEvent, RunView, Seq,
};

impl Run {
    /// The whole run. Call on a started run only.
    pub fn view(&self) -> RunView {
        let request = self.request();
        let shows_channels = self.def.channel_aware() || self.written_channels().len() > 0;
        RunView {
            run_id: self.id().clone(),
            workflow_id: self.def.id().clone(),
            definition: self.def.hash.clone(),
            owner: request.owner.clone(),
            status: self.status(),
            created_at: self.created_at(),
            ended_at: self.ended_at(),
            paused_at: self.paused_at(),
            head: self.head().unwrap_or(Seq(0)),
            inputs: request.inputs.clone(),
            variables: self.shown_variables(),
            channels: shows_channels.then(|| self.channel_values()),
            nodes: self.node_views(),
            current_node: self.current_node(),
            error: self.error().cloned(),
            failed_node: self.failed_node(),
            options: request.options.clone(),
            parent: request.parent.clone(),
            forked_from: request.forked_from.as_deref().cloned(),
            children: self
                .children()
                .iter()
                .map(|c| ChildView {
                    run_id: c.run_id.clone(),
                    workflow_id: c.workflow_id.clone(),
                    node: c.node.clone(),
                    status: c.status,
                })
                .collect(),
            interrupts: self.interrupts(),
            agent: self.pinned_agent().cloned(),
            orchestrator: self.orchestrator().cloned(),
            claimed_parent: request.claimed_parent.clone(),
            trace: request.trace.clone(),
            engine_version: self.engine_version(),
            cost: (!self.cost().is_empty()).then(|| self.cost().clone()),
        }
    }

    fn node_views(&self) -> Vec<NodeView> {
        let nodes = self.def.nodes.iter().zip(self.nodes());
        nodes
            .map(|(node, state)| NodeView {
                node: node.id.clone(),
                status: state.status,
                attempt: state.attempt,
                started_at: state.started_at,
                ended_at: state.ended_at,
                error: state.error.clone(),
            })
            .collect()
    }

    /// The node at which the run failed. Snapshots of earlier versions do not name it.
    fn failed_node(&self) -> Option<NodeId> {
        let error = self.error()?;
        let same = |ix: &usize| self.node(*ix).error.as_ref() == Some(error);
        let named = || {
            let ix = (0..self.nodes().len()).find(same)?;
            Some(self.def.nodes[ix].id.clone())
        };
        self.recorded_failed_node().cloned().or_else(named)
    }

    /// Where the run waits, while it waits.
    fn current_node(&self) -> Option<NodeId> {
        if !self.status().is_waiting() {
            return None;
        }
        self.first_suspended()
            .map(|(ix, _)| self.def.nodes[ix].id.clone())
    }

    fn interrupts(&self) -> Vec<InterruptView> {
        let mut open: Vec<_> = self.shown_interrupts().collect();
        open.sort_by_key(|(_, open)| open.since);
        open.into_iter()
            .map(|(ix, open)| InterruptView {
                node: self.def.nodes[ix].id.clone(),
                interrupt: open.interrupt.clone(),
                status: open.status,
                votes: open.votes.clone(),
                proposed: open.proposed.clone(),
                deadline: self.deadline_at(ix, open),
                expires_at: self.expiry(ix, open),
                policy: self.policy_at(ix, open),
                level: open.level,
                reminders: open.reminders,
                mirrors: open.mirrors.clone(),
            })
            .collect()
    }

    /// Open interrupts of this run's own nodes, oldest first.
    pub fn open_questions(&self) -> Vec<InterruptView> {
        let mut open = self.interrupts();
        open.retain(|q| q.mirrors.is_none());
        open
    }

    /// How long the run waited for its first node, if that start is in `events`, its newest.
    pub fn first_node_delay_ms(&self, events: &[RecordedEvent]) -> Option<u64> {
        let starts = || {
            let starts = events.iter();
            starts.filter(|r| matches!(r.event, Event::NodeStarted { .. }))
        };
        let first = starts().next()?;
        let all = starts().count() as u64 == self.executions();
        all.then(|| first.at.ms_since(self.begun_at()))
    }

    /// The node that its author marked as primary, if exactly one is.
    pub fn primary_node(&self) -> Option<&NodeId> {
        let mut primary = self
            .def
            .sinks()
            .filter(|ix| self.def.doc_node(*ix).output_role.as_deref() == Some("primary"));
        let first = primary.next()?;
        primary.next().is_none().then(|| &self.def.nodes[first].id)
    }
}
