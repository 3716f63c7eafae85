//! A flow run as readers of runs see it.

use super::state::{FlowRun, node_of};
use serde_json::json;
use tandem_record::{
    DecisionPolicy, DefinitionHash, InterruptView, NodeId, NodeView, RunView, Seq,
};

impl FlowRun {
    /// The whole run; `None` before its first event.
    pub fn view(&self) -> Option<RunView> {
        let state = &self.state;
        let (start, request) = (state.start.as_deref()?, state.request.as_deref()?);
        Some(RunView {
            run_id: self.id.clone(),
            workflow_id: self.workflow_id(),
            definition: DefinitionHash::new(&start.version),
            owner: request.owner.clone(),
            status: state.status,
            created_at: state.created_at,
            ended_at: state.ended_at,
            paused_at: state.paused_at,
            head: state.head.unwrap_or(Seq(0)),
            inputs: request.inputs.clone(),
            variables: state.answers.clone(),
            channels: None,
            nodes: self.node_views(),
            current_node: self.waiting_node(),
            error: state.error.clone(),
            failed_node: None,
            options: request.options.clone(),
            parent: request.parent.clone(),
            forked_from: request.forked_from.as_deref().cloned(),
            children: Vec::new(),
            interrupts: self.open_questions(),
            agent: Some(json!({"agentId": start.agent_id})),
            orchestrator: None,
            claimed_parent: None,
            trace: None,
            engine_version: crate::ENGINE_VERSION,
            cost: None,
        })
    }

    /// The question the run waits at. A run that diverged takes no answers, so it shows none.
    pub fn open_questions(&self) -> Vec<InterruptView> {
        let open = self.state.open.as_ref().filter(|_| !self.is_diverged());
        let shown = open.and_then(|open| Some((open.step, open.interrupt.clone()?)));
        let view = shown.map(|(step, interrupt)| InterruptView {
            node: node_of(step),
            status: self.state.status,
            votes: Vec::new(),
            proposed: None,
            deadline: interrupt.due,
            expires_at: interrupt.due,
            // A signed link carries no identity, and the agent's rules decide by identity.
            policy: DecisionPolicy {
                auth_required: true,
                ..DecisionPolicy::default()
            },
            level: 0,
            reminders: 0,
            mirrors: None,
            interrupt,
        });
        view.into_iter().collect()
    }

    fn waiting_node(&self) -> Option<NodeId> {
        let open = self.state.open.as_ref();
        let open = open.filter(|_| self.state.status.is_waiting());
        open.map(|open| node_of(open.step))
    }

    fn node_views(&self) -> Vec<NodeView> {
        let steps = self.state.steps.iter().zip(0..);
        steps
            .map(|(step, number)| NodeView {
                node: node_of(number),
                status: step.status,
                attempt: 1,
                started_at: Some(step.started_at),
                ended_at: step.ended_at,
                error: step.error.clone(),
            })
            .collect()
    }
}
