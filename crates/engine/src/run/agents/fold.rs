//! Applies the events of agents and their workers to the state.

use crate::node::{Kind, OrchestratorDecision, Route};
use crate::run::state::{Dispatching, NodeState, Run, Verifying, WorkerState, WorkerStep};
use tandem_record::{
    AgentEvent, AgentEventKind, Handoff, HandoffStep, InterruptId, NodeId, NodeStatus, Object,
    RunStatus, Seq, VerificationRequest, VerificationSubject, Work,
};

impl Run {
    /// Keeps a supervisor's reasoning until its next iteration, for the person who has to review
    /// its decision.
    pub(in crate::run) fn apply_agent_event(&mut self, agent_event: &AgentEvent) {
        let ix = self.def.index(&agent_event.node);
        let kind = ix.map(|ix| &self.def.nodes[ix].kind);
        match (&agent_event.kind, kind) {
            (AgentEventKind::Reasoned { reasoning, .. }, Some(Kind::Supervisor(_))) => {
                self.state.agents.reasoning = Some(reasoning.clone());
            }
            (AgentEventKind::Verified { .. }, _) => self.apply_verdict(agent_event),
            _ => {}
        }
    }

    /// A verification was requested: the node waits for the verifier's answer.
    pub(in crate::run) fn apply_verification_request(&mut self, request: &VerificationRequest) {
        let verifying = Verifying {
            verification_subject: request.verification_subject.clone(),
            supervisor: Some(request.supervisor.clone()),
            verdict: None,
            feedback: None,
        };
        self.with_node(&request.node, |n| {
            n.verifying = Some(Box::new(verifying));
            n.work = Some(request.work.clone());
            n.retry_at = None;
            n.error = None;
        });
    }

    fn apply_verdict(&mut self, agent_event: &AgentEvent) {
        let AgentEventKind::Verified {
            verification_subject,
            verdict,
            feedback,
            ..
        } = &agent_event.kind
        else {
            return;
        };
        let agents = &mut self.state.agents;
        agents.verdicts += 1;
        agents.verdict = Some(agent_event.clone());
        let mut critic = None;
        self.with_node(&agent_event.node, |n| {
            if let Some(Work::Child { child, .. }) = n.work.take() {
                critic = Some(child);
            }
            if let (VerificationSubject::Output { index, .. }, Some(d)) =
                (verification_subject, &mut n.dispatching)
                && let Some(worker) = d.workers.get_mut(*index as usize)
            {
                worker.verdict = Some(*verdict);
            }
            n.verifying = Some(Box::new(Verifying {
                verification_subject: verification_subject.clone(),
                supervisor: None,
                verdict: Some(*verdict),
                feedback: feedback.clone(),
            }));
        });
        if let Some(critic) = critic {
            self.set_child_status(&critic, RunStatus::Completed);
        }
    }

    /// A dispatch node starts to carry out the newest decision.
    pub(in crate::run) fn begin_dispatching(&mut self, node: &NodeId) {
        let Some(decided) = &self.state.agents.decided else {
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
        self.with_node(node, |n| n.dispatching = Some(dispatching));
    }

    pub(in crate::run) fn hand_off(&mut self, handoff: &Handoff, seq: Seq) {
        self.return_descendants(handoff.returned);
        let node = self.def.index(&handoff.node);
        if node.is_some_and(|ix| self.state.nodes[ix].dispatching.is_none()) {
            self.begin_dispatching(&handoff.node);
        }
        if let HandoffStep::Succeeded { agent, .. } = &handoff.step
            && agent.is_some()
        {
            self.state.agents.worker.clone_from(agent);
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
        if let (Some(child), Some(status)) = (handoff.step.child(), status) {
            self.set_child_status(child, status);
        }
        self.with_node(&handoff.node, |n| {
            let workers = n.dispatching.as_mut().map(|d| &mut d.workers);
            let Some(worker) = workers.and_then(|w| w.get_mut(handoff.index as usize)) else {
                return;
            };
            worker.step = step;
            worker.last = seq;
            match &handoff.step {
                HandoffStep::Succeeded { child, .. } => worker.child = Some(child.clone()),
                HandoffStep::ChildCompleted {
                    variables,
                    untrusted,
                    ..
                } => {
                    worker.variables.clone_from(variables);
                    worker.untrusted.clone_from(untrusted);
                }
                HandoffStep::Failed { error } | HandoffStep::ChildFailed { error, .. } => {
                    worker.error = Some(error.clone());
                }
                HandoffStep::Harvested { .. } => worker.variables.clear(),
                HandoffStep::Began | HandoffStep::ChildCancelled { .. } => {}
            }
        });
    }

    /// A question of the node, or of one of its children, was answered.
    pub(in crate::run) fn resume(&mut self, node: &NodeId, interrupt: Option<&InterruptId>) {
        let Some(ix) = self.def.index(node) else {
            return;
        };
        let state = &mut self.state.nodes[ix];
        let further = interrupt.and_then(|id| {
            let waiting = state.also_waiting.iter();
            waiting.into_iter().position(|s| s.interrupt.id == *id)
        });
        let child = match further {
            Some(place) => state.also_waiting.remove(place).child,
            None => promote(state),
        };
        match child {
            Some(child) => self.set_child_status(&child, RunStatus::Running),
            None => self.set_newest_child_status(node, Some(RunStatus::Running)),
        }
    }
}

/// The first wait is over: the next one takes its place, or the node runs again.
fn promote(node: &mut NodeState) -> Option<tandem_record::RunId> {
    let child = node.suspended.take().and_then(|s| s.child);
    if node.also_waiting.is_empty() {
        node.status = NodeStatus::Running;
    } else {
        node.suspended = Some(node.also_waiting.remove(0));
    }
    child
}
