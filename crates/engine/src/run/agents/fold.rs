//! Applies the events of agents and their workers to the state.

use super::state::{Agents, PublishedDecision};
use super::workers::{Dispatching, Verifying, WorkerState, WorkerStep};
use crate::definition::Definition;
use crate::node::{Kind, OrchestratorDecision, Route};
use serde_json::json;
use tandem_record::{
    AgentEvent, AgentEventKind, Handoff, HandoffStep, Object, RunId, RunStatus, Seq,
    VerificationRequest, VerificationSubject,
};

impl Agents {
    /// A node started: a pinned agent works, or a supervisor begins an iteration.
    pub(in crate::run) fn node_started(
        &mut self,
        def: &Definition,
        ix: usize,
        attempt: u32,
        seq: Seq,
    ) {
        let agent = &def.doc_node(ix).agent;
        if !matches!(def.nodes[ix].kind, Kind::Supervisor(_)) {
            if agent.is_some() {
                self.pinned.clone_from(agent);
            }
            return;
        }
        self.reasoning = None;
        if self.orchestrator.is_none() {
            self.orchestrator.clone_from(agent);
        }
        // A retry belongs to the same iteration.
        if attempt == 0 {
            let node = def.nodes[ix].id.clone();
            self.iteration_starts.insert(node, seq);
        }
    }

    /// The node ended, or starts again: it has no workers and waits for no verdict.
    pub(in crate::run) fn forget(&mut self, ix: usize) {
        self.dispatching.remove(&ix);
        self.verifying.remove(&ix);
    }

    pub(in crate::run) fn publish(&mut self, decision: PublishedDecision) {
        let named = || json!({"agentId": decision.agent_id});
        self.orchestrator.get_or_insert_with(named);
        self.decisions += 1;
        self.verdict = None;
        self.decided = Some(decision);
    }

    /// Keeps a supervisor's reasoning until its next iteration, for the person who has to review
    /// its decision.
    pub(in crate::run) fn note_reasoning(
        &mut self,
        def: &Definition,
        ix: usize,
        agent_event: &AgentEvent,
    ) {
        if let AgentEventKind::Reasoned { reasoning, .. } = &agent_event.kind
            && matches!(def.nodes[ix].kind, Kind::Supervisor(_))
        {
            self.reasoning = Some(reasoning.clone());
        }
    }

    /// A verification was requested: the node waits for the verifier's answer.
    pub(in crate::run) fn request_verification(
        &mut self,
        ix: usize,
        request: &VerificationRequest,
    ) {
        let verifying = Verifying {
            verification_subject: request.verification_subject.clone(),
            supervisor: Some(request.supervisor.clone()),
            verdict: None,
            feedback: None,
        };
        self.verifying.insert(ix, verifying);
    }

    /// A verifier gave its verdict. Returns whether the event is one.
    pub(in crate::run) fn record_verdict(&mut self, ix: usize, agent_event: &AgentEvent) -> bool {
        let AgentEventKind::Verified {
            verification_subject,
            verdict,
            feedback,
            ..
        } = &agent_event.kind
        else {
            return false;
        };
        self.verdicts += 1;
        self.verdict = Some(agent_event.clone());
        if let (VerificationSubject::Output { index, .. }, Some(dispatching)) =
            (verification_subject, self.dispatching.get_mut(&ix))
            && let Some(worker) = dispatching.workers.get_mut(*index as usize)
        {
            worker.verdict = Some(*verdict);
        }
        let verifying = Verifying {
            verification_subject: verification_subject.clone(),
            supervisor: None,
            verdict: Some(*verdict),
            feedback: feedback.clone(),
        };
        self.verifying.insert(ix, verifying);
        true
    }

    /// A dispatch node starts to carry out the newest decision.
    pub(in crate::run) fn begin_dispatching(&mut self, ix: usize) {
        let Some(decided) = &self.decided else {
            return;
        };
        let route = OrchestratorDecision::read(&decided.decision).map(|d| d.route);
        let Ok(Route::NextWorker(workers)) = route else {
            return;
        };
        let pending = |workflow| WorkerState {
            workflow,
            step: WorkerStep::Pending,
            child: None,
            last: Seq(0),
            variables: Object::new(),
            untrusted: Vec::new(),
            error: None,
            verdict: None,
        };
        let dispatching = Dispatching {
            decided: decided.seq,
            supervisor: Some(decided.node.clone()),
            workers: workers.into_iter().map(pending).collect(),
        };
        self.dispatching.insert(ix, dispatching);
    }

    /// One step of the handoff to a worker. Returns the child whose run ended with it.
    pub(in crate::run) fn hand_off<'e>(
        &mut self,
        ix: usize,
        handoff: &'e Handoff,
        seq: Seq,
    ) -> Option<(&'e RunId, RunStatus)> {
        if !self.dispatching.contains_key(&ix) {
            self.begin_dispatching(ix);
        }
        if let HandoffStep::Succeeded { agent, .. } = &handoff.step
            && agent.is_some()
        {
            self.worker.clone_from(agent);
        }
        let (step, status) = match &handoff.step {
            HandoffStep::Began => (WorkerStep::Began, None),
            HandoffStep::Succeeded { .. } => (WorkerStep::Running, None),
            HandoffStep::Failed { .. } => (WorkerStep::Failed, None),
            HandoffStep::ChildCompleted { .. } => {
                (WorkerStep::Completed, Some(RunStatus::Completed))
            }
            HandoffStep::ChildFailed { .. } => (WorkerStep::Failed, Some(RunStatus::Failed)),
            HandoffStep::ChildCancelled { .. } => {
                (WorkerStep::Cancelled, Some(RunStatus::Cancelled))
            }
            HandoffStep::Harvested { .. } => (WorkerStep::Harvested, None),
        };
        let workers = self.dispatching.get_mut(&ix).map(|d| &mut d.workers);
        if let Some(worker) = workers.and_then(|w| w.get_mut(handoff.index as usize)) {
            worker.step = step;
            worker.last = seq;
            worker.apply_step(&handoff.step);
        }
        handoff.step.child().zip(status)
    }
}

impl WorkerState {
    fn apply_step(&mut self, step: &HandoffStep) {
        match step {
            HandoffStep::Succeeded { child, .. } => self.child = Some(child.clone()),
            HandoffStep::ChildCompleted {
                variables,
                untrusted,
                ..
            } => {
                self.variables.clone_from(variables);
                self.untrusted.clone_from(untrusted);
            }
            HandoffStep::Failed { error } | HandoffStep::ChildFailed { error, .. } => {
                self.error = Some(error.clone());
            }
            HandoffStep::Harvested { .. } => self.variables.clear(),
            HandoffStep::Began | HandoffStep::ChildCancelled { .. } => {}
        }
    }
}
