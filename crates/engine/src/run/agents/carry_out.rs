//! Carries out a decision at a dispatch node: checks the confidence floor first, then does what was
//! decided.

use crate::node::{ConversationGate, Dispatch, FanOut, Kind, OrchestratorDecision, Route};
use crate::run::draft::DecisionDraft;
use crate::run::questions::Question;
use crate::run::scheduling::NodeOutcome;
use crate::run::state::Run;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{CapKind, ErrorInfo, Event, Seq, WorkflowId};

/// The id of the only question when a supervisor asks the user or a decision is held.
pub(crate) const ANSWER: &str = "answer";
pub(crate) const PROCEED: &str = "proceed";

impl Run {
    fn dispatch_executions(&self) -> u32 {
        self.executions_of(|kind| matches!(kind, Kind::Dispatch(_)))
    }
}

impl DecisionDraft<'_> {
    pub(in crate::run) fn within_dispatch_cap(&mut self, config: &Dispatch) -> bool {
        let Some(cap) = config.iteration_cap else {
            return true;
        };
        let observed = u64::from(self.run.dispatch_executions()) + 1;
        let code = "dispatch_iterations_exceeded";
        self.within_cap(CapKind::DispatchIterations, cap, observed, code)
    }

    /// Processes the newest decision of the run.
    pub(in crate::run) fn dispatch(&mut self, ix: usize) -> NodeOutcome {
        let Some(decided) = self.run.state.agents.decided.clone() else {
            let message = "no supervisor of this run has decided anything yet";
            return NodeOutcome::Fail(ErrorInfo::new("no_pending_decision", message));
        };
        let decision = match OrchestratorDecision::read(&decided.decision) {
            Ok(decision) => decision,
            Err((_, message)) => {
                return NodeOutcome::Fail(ErrorInfo::new("unsupported_decision_kind", message));
            }
        };
        match self.confidence_below_floor(&decision) {
            Some(confidence) => self.escalate(ix, &decision, confidence, decided.seq),
            None => self.carry_out(ix, &decision, decided.seq),
        }
    }

    /// The confidence of a decision that is below the floor. A missing confidence is not low, and a
    /// confidence equal to the floor is enough.
    fn confidence_below_floor(&self, decision: &OrchestratorDecision) -> Option<f64> {
        let policy = self.cx.agents;
        let below =
            |confidence: &f64| policy.escalates() && *confidence < policy.confidence_floor();
        decision.confidence.filter(below)
    }

    /// Carries out a decision that a person gave in place of a held one. A person has already seen
    /// it, so it is not held again. A confidence below the floor is still recorded.
    pub(in crate::run) fn carry_out_replacement(
        &mut self,
        ix: usize,
        decision: &OrchestratorDecision,
        decided: Seq,
    ) -> NodeOutcome {
        if let Some(confidence) = self.confidence_below_floor(decision) {
            self.emit_confidence_escalated(ix, decision, confidence, decided);
        }
        self.carry_out(ix, decision, decided)
    }

    fn emit_confidence_escalated(
        &mut self,
        ix: usize,
        decision: &OrchestratorDecision,
        confidence: f64,
        decided: Seq,
    ) {
        let policy = self.cx.agents;
        let event = Event::ConfidenceEscalated {
            node: self.run.def.nodes[ix].id.clone(),
            confidence,
            floor: policy.confidence_floor(),
            kind: policy.escalation().meaning,
            worker: named_workers(decision).first().cloned(),
            decision: decision.document.clone(),
        };
        self.emit(event, Some(decided));
    }

    /// Records that the confidence is below the floor, and asks a person.
    fn escalate(
        &mut self,
        ix: usize,
        decision: &OrchestratorDecision,
        confidence: f64,
        decided: Seq,
    ) -> NodeOutcome {
        let policy = self.cx.agents;
        let node = self.run.def.nodes[ix].id.clone();
        let workers = named_workers(decision);
        let escalation = policy.escalation();
        self.emit_confidence_escalated(ix, decision, confidence, decided);
        let title = match &decision.route {
            Route::Terminate => "End the run?".to_owned(),
            _ => {
                let names: Vec<&str> = workers.iter().map(|w| w.as_str()).collect();
                format!("Start {}?", names.join(", "))
            }
        };
        let mut description = format!(
            "The supervisor's confidence in this decision is {confidence}, below the floor of {}.",
            policy.confidence_floor()
        );
        if let Some(reasoning) = &self.run.state.agents.reasoning {
            description = format!("{description} Its reasons: {reasoning}");
        }
        let data = if escalation.kind == "clarification" {
            let question = format!("{title} {description} Answer \"{PROCEED}\" to go ahead.");
            json!({
                "questions": [{"id": PROCEED, "question": question}],
                "contextType": "confidence-escalation",
                "decision": decision.document,
                "confidence": confidence,
                "floor": policy.confidence_floor(),
            })
        } else {
            json!({
                "artifactId": format!("{}:{node}:decision", self.run.id()),
                "artifactType": "orchestrator-decision",
                "title": title,
                "description": description,
                "actions": ["accept", "reject", "edit-accept"],
                "requiredApprovals": 1,
                "artifactData": decision.document,
                "confidence": confidence,
                "floor": policy.confidence_floor(),
                "workers": workers,
            })
        };
        NodeOutcome::Ask(Box::new(Question {
            kind: escalation.kind.clone(),
            data,
            resume_schema: None,
            timeout_ms: None,
            status: Some(escalation.status),
            low_confidence: None,
            hidden: None,
        }))
    }

    pub(in crate::run) fn carry_out(
        &mut self,
        ix: usize,
        decision: &OrchestratorDecision,
        decided: Seq,
    ) -> NodeOutcome {
        let def = Arc::clone(&self.run.def);
        let Kind::Dispatch(config) = &def.nodes[ix].kind else {
            unreachable!("only dispatch nodes carry out decisions");
        };
        match &decision.route {
            Route::NextWorker(workers) => {
                if config.fan_out == FanOut::Reject && workers.len() > 1 {
                    let message = format!("{} workers were named, one is allowed", workers.len());
                    return NodeOutcome::Fail(ErrorInfo::new("fan_out_unsupported", message));
                }
                self.begin_handoffs(ix, config, workers, decided);
                NodeOutcome::AlreadyRecorded
            }
            Route::AskUser { prompt } if config.uses_conversation => {
                let gate = ConversationGate::plain(prompt);
                let (_, conversation) = self.run.next_question(ix);
                ask("conversation.exchange", gate.data(&conversation))
            }
            Route::AskUser { prompt } => {
                let questions = json!([{"id": ANSWER, "question": prompt}]);
                ask("clarification", json!({"questions": questions}))
            }
            Route::Approve { prompt } => ask(
                "approval",
                json!({
                    "artifactId": format!("{}:{}:escalation", self.run.id(), def.nodes[ix].id),
                    "artifactType": "orchestrator-escalation",
                    "title": prompt,
                    "actions": ["accept", "reject"],
                    "requiredApprovals": 1,
                }),
            ),
            Route::Terminate => self.verify_and_terminate(ix, decision, decided),
        }
    }
}

/// The workers a decision would start.
fn named_workers(decision: &OrchestratorDecision) -> &[WorkflowId] {
    match &decision.route {
        Route::NextWorker(workers) => workers,
        _ => &[],
    }
}

fn ask(kind: &str, data: Value) -> NodeOutcome {
    NodeOutcome::Ask(Box::new(Question {
        kind: kind.to_owned(),
        data,
        resume_schema: None,
        timeout_ms: None,
        status: None,
        low_confidence: None,
        hidden: None,
    }))
}
