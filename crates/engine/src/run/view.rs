//! A run as readers see it. Not masked: the wire's projection masks it before it leaves the
//! process.

use crate::run::questions::expiry;
use crate::run::state::Run;
use tandem_record::{
    ArtifactView, ChildView, ClosedInterrupt, Event, InterruptId, InterruptView, NodeId,
    NodeStatus, NodeView, Object, RecordedEvent, RunView, Seq, Timestamp,
};

impl Run {
    /// The whole run. Call on a started run only.
    pub fn view(&self) -> RunView {
        let state = &self.state;
        let request = self.request();
        let mut variables = state.variables.clone();
        for (name, channel) in state.channels.iter().filter(|(_, c)| c.mirrored) {
            variables.insert(name.clone(), channel.value.clone());
        }
        let shows_channels = self.def.channel_aware() || !state.channels.is_empty();
        RunView {
            run_id: state.run_id.clone(),
            workflow_id: self.def.id().clone(),
            definition: self.def.hash.clone(),
            owner: request.owner.clone(),
            status: self.status(),
            created_at: state.created_at,
            ended_at: state.ended_at,
            paused_at: state.paused_at,
            head: state.head.unwrap_or(Seq(0)),
            inputs: request.inputs.clone(),
            variables,
            channels: shows_channels.then(|| self.channel_values()),
            nodes: self.node_views(),
            current_node: self.current_node(),
            error: state.error.clone(),
            failed_node: self.failed_node(),
            options: request.options.clone(),
            parent: request.parent.clone(),
            forked_from: request.forked_from.as_deref().cloned(),
            children: state
                .children
                .iter()
                .map(|c| ChildView {
                    run_id: c.run_id.clone(),
                    workflow_id: c.workflow_id.clone(),
                    node: c.node.clone(),
                    status: c.status,
                })
                .collect(),
            interrupts: self.interrupts(),
            agent: state.agent.clone(),
            orchestrator: state.agents.orchestrator.clone(),
            claimed_parent: request.claimed_parent.clone(),
            trace: request.trace.clone(),
            engine_version: state.engine_version,
            cost: (!state.cost.is_empty()).then(|| state.cost.clone()),
        }
    }

    fn node_views(&self) -> Vec<NodeView> {
        let nodes = self.def.nodes.iter().zip(&self.state.nodes);
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
        let state = &self.state;
        let error = state.error.as_ref()?;
        let same = |ix: &usize| state.nodes[*ix].error.as_ref() == Some(error);
        let named = || {
            let ix = (0..state.nodes.len()).find(same)?;
            Some(self.def.nodes[ix].id.clone())
        };
        state.failed_node.clone().or_else(named)
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
        let nodes = self.state.nodes.iter().enumerate();
        let mut open: Vec<_> = nodes
            .filter(|(_, state)| state.status == NodeStatus::Suspended)
            .collect();
        open.sort_by_key(|(_, state)| state.suspended.as_ref().map(|s| s.since));
        open.into_iter()
            .filter_map(|(ix, state)| {
                let open = state.suspended.as_ref()?;
                Some(InterruptView {
                    node: self.def.nodes[ix].id.clone(),
                    interrupt: open.interrupt.clone(),
                    status: open.status,
                    votes: open.votes.clone(),
                    proposed: open.proposed.clone(),
                    deadline: self.deadline_at(ix, open),
                    expires_at: expiry(&self.def.nodes[ix].kind, open),
                    policy: self.policy_at(ix, open),
                    level: open.level,
                    reminders: open.reminders,
                    mirrors: open.mirrors.clone(),
                })
            })
            .collect()
    }

    /// Open interrupts of this run's own nodes, oldest first.
    pub fn open_questions(&self) -> Vec<InterruptView> {
        let mut open = self.interrupts();
        open.retain(|q| q.mirrors.is_none());
        open
    }

    /// When the open question of a node was asked, and when its time is up.
    pub(super) fn question_times(&self, node: &NodeId) -> Option<(Timestamp, Option<Timestamp>)> {
        let ix = self.def.index(node)?;
        let open = self.state.nodes[ix].suspended.as_ref()?;
        Some((open.interrupt.requested_at, open.due))
    }

    /// How long the run waited for its first node, if that start is in `events`, its newest.
    pub fn first_node_delay_ms(&self, events: &[RecordedEvent]) -> Option<u64> {
        let starts = || {
            let starts = events.iter();
            starts.filter(|r| matches!(r.event, Event::NodeStarted { .. }))
        };
        let first = starts().next()?;
        let all = starts().count() as u64 == self.state.executions;
        all.then(|| first.at.ms_since(self.begun_at()))
    }

    /// How a question ended, if it did.
    pub fn closed_question(&self, id: &InterruptId) -> Option<&ClosedInterrupt> {
        self.state.closed.iter().rev().find(|c| c.interrupt == *id)
    }

    pub fn artifact(&self, id: &str) -> Option<ArtifactView> {
        let found = self.state.artifacts.iter().rev().find(|a| a.id == id)?;
        Some(ArtifactView {
            artifact_id: found.id.clone(),
            artifact_type: found.kind.clone(),
            node: found.node.clone(),
            created_at: found.created_at,
            content: found.content.clone(),
        })
    }

    /// The outputs of a completed run.
    pub fn outputs(&self) -> Option<&Object> {
        self.state.outputs.as_ref()
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
