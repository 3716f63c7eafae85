//! Questions of a workflow that a flow waits for, shown in the conversation (Z-220): a clarification is put to the user,
//! an approval is an escalation. There is one question, that of the workflow: whoever answers first, here or in the
//! inbox, closes it on both sides.
//!
//! Invariants:
//! - The user is asked one question at a time, and a question of several parts one part after the other.
//! - What the user wrote before the question was sent does not answer it.
//! - An answer is work: the workflow may refuse it, and then the user is asked again.

use super::confirm::{ConfirmReader, ConfirmReading};
use super::draft::Draft;
use super::keywords::Keywords;
use super::state::ChatSession;
use super::turn::Next;
use crate::flow::{AuthorSchema, SchemaSource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tandem_record::conversation::{
    CandidateOrigin, ClosedWorkflowQuestion, CodeError, EscalationMode, EscalationRecord,
    EscalationResolution, FlowPause, SessionEventBody as Body, SessionWork, TurnCause,
    WorkflowAnswer, WorkflowQuestion,
};
use tandem_record::{EffectId, EscalationId, InterruptId, Object, Principal};

const APPROVAL: &str = "approval";
/// The channel of decisions that were made at the workflow.
const BY_WORKFLOW: &str = "workflow";

/// A question of a workflow while the session shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenWorkflowQuestion {
    /// The wait of the flow that started the workflow.
    pub(super) wait: InterruptId,
    pub(super) question: WorkflowQuestion,
    /// The escalation it is shown as; otherwise it is put to the user.
    pub(super) escalation_id: Option<EscalationId>,
    /// What the user answered so far.
    pub(super) answers: Object,
}

impl OpenWorkflowQuestion {
    /// The part of the question that is not answered yet, with its name.
    fn next_part(&self) -> Option<(&str, &Value)> {
        let parts = self.question.data.get("questions")?.as_array()?;
        let mut named = parts
            .iter()
            .filter_map(|part| Some((part.get("id")?.as_str()?, part)));
        named.find(|(id, _)| !self.answers.contains_key(*id))
    }
}

impl ChatSession {
    pub(super) fn open_workflow_question_mut(
        &mut self,
        id: &InterruptId,
    ) -> Option<&mut OpenWorkflowQuestion> {
        let mut open = self.workflow_questions.iter_mut();
        open.find(|open| open.question.interrupt_id == *id)
    }

    fn open_workflow_question(&self, id: &InterruptId) -> Option<&OpenWorkflowQuestion> {
        let mut open = self.workflow_questions.iter();
        open.find(|open| open.question.interrupt_id == *id)
    }

    /// The question that an escalation stands for.
    pub(super) fn workflow_question_of(&self, id: &EscalationId) -> Option<&WorkflowQuestion> {
        let mut open = self.workflow_questions.iter();
        let found = open.find(|open| open.escalation_id.as_ref() == Some(id));
        found.map(|open| &open.question)
    }

    /// The question that the next message of the user answers.
    pub(super) fn asked_workflow_question(&self) -> Option<&OpenWorkflowQuestion> {
        let pause = self.flow.as_ref()?.pause.as_ref()?;
        let FlowPause::Workflow { interrupt_id, .. } = pause else {
            return None;
        };
        let mut put = self
            .workflow_questions
            .iter()
            .filter(|open| open.escalation_id.is_none() && open.wait == *interrupt_id);
        put.next().filter(|open| open.next_part().is_some())
    }
}

impl Draft<'_> {
    /// A workflow asks something. It gets a turn: the flow may still be on its way to the wait.
    pub(super) fn note_workflow_question(
        &mut self,
        interrupt: &InterruptId,
        question: &WorkflowQuestion,
    ) {
        let id = &question.interrupt_id;
        let is_known = self.session.open_workflow_question(id).is_some()
            || self.session.escalations.contains_key(&escalation_id(id));
        if self.session.ended.is_none() && !is_known && !self.is_queued(id) {
            self.queue_workflow_question(interrupt, question);
        }
    }

    fn queue_workflow_question(&mut self, interrupt: &InterruptId, question: &WorkflowQuestion) {
        self.emit(Body::TurnQueued {
            cause: TurnCause::WorkflowAsked {
                interrupt: interrupt.clone(),
                question: Box::new(question.clone()),
            },
        });
    }

    fn is_queued(&self, id: &InterruptId) -> bool {
        self.session.has_turn(
            |cause| matches!(cause, TurnCause::WorkflowAsked { question, .. } if question.interrupt_id == *id),
        )
    }

    /// The turn that shows the question. A flow that no longer waits shows nothing.
    pub(super) fn show_workflow_question(
        &mut self,
        interrupt: &InterruptId,
        question: &WorkflowQuestion,
    ) -> Next {
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.as_ref());
        let waits = pause.is_some_and(|pause| pause.interrupt_id() == interrupt);
        if !waits {
            return Next::DONE;
        }
        let id = &question.interrupt_id;
        if question.kind == APPROVAL {
            return self.escalate_for_workflow(interrupt, question);
        }
        if self.session.open_workflow_question(id).is_none() {
            self.emit(Body::WorkflowQuestionOpened {
                wait: interrupt.clone(),
                question: Box::new(question.clone()),
                escalation_id: None,
            });
        }
        match self.session.asked_workflow_question() {
            Some(asked) if asked.question.interrupt_id == *id => self.put_next_part(),
            // Another one is open: this one follows.
            _ => Next::DONE,
        }
    }

    /// Asks the user what is not answered yet.
    fn put_next_part(&mut self) -> Next {
        let asked = self.session.asked_workflow_question();
        let part = asked.and_then(OpenWorkflowQuestion::next_part);
        let text = part.and_then(|(id, part)| Some(part.get("question")?.as_str().unwrap_or(id)));
        match text.map(str::to_owned) {
            Some(text) => self.respond(&text, CandidateOrigin::Ask, None),
            None => Next::DONE,
        }
    }

    fn escalate_for_workflow(
        &mut self,
        interrupt: &InterruptId,
        question: &WorkflowQuestion,
    ) -> Next {
        let id = escalation_id(&question.interrupt_id);
        if self.cx.agent.admin_auth.is_none() || self.session.escalations.contains_key(&id) {
            // Without admins of the agent, the inbox decides.
            return Next::DONE;
        }
        let flow = self.session.flow.as_ref();
        let data = &question.data;
        let title = data.get("title").and_then(Value::as_str);
        let required = data.get("requiredApprovals").and_then(Value::as_u64);
        let escalation = EscalationRecord {
            id: id.clone(),
            metadata: Some(json!({
                "runId": question.run_id,
                "nodeId": question.node_id,
                "interruptId": question.interrupt_id,
                "artifactData": data.get("artifactData"),
            })),
            flow_id: flow.map(|flow| flow.flow.clone()),
            flow_run_id: flow.map(|flow| flow.run.clone()),
            // The workflow has a deadline of its own, and tells when it has passed.
            deadline: None,
            required_approvals: required
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(1)
                .max(1),
            ..self.implicit_escalation(
                title.unwrap_or("A workflow asks for approval"),
                EscalationMode::AsyncResolution,
            )
        };
        self.emit(Body::WorkflowQuestionOpened {
            wait: interrupt.clone(),
            question: Box::new(question.clone()),
            escalation_id: Some(id),
        });
        self.emit(Body::EscalationCreated(Box::new(escalation)));
        self.acknowledge(EscalationMode::AsyncResolution)
    }

    /// The message may answer the question of a workflow; `None` when the user is asked nothing.
    pub(super) fn answer_workflow_question(&mut self) -> Option<Next> {
        if let TurnCause::QueueReplay { .. } = self.turn().cause {
            // It was written before the question.
            return None;
        }
        let asked = self.session.asked_workflow_question()?;
        let (key, part) = asked.next_part()?;
        let (id, key) = (asked.question.interrupt_id.clone(), key.to_owned());
        let Some(value) = self.read_part(part) else {
            return Some(self.put_next_part());
        };
        self.emit(Body::WorkflowQuestionAnswered {
            interrupt_id: id.clone(),
            key,
            value,
        });
        if self.session.asked_workflow_question().is_some() {
            return Some(self.put_next_part());
        }
        let answered = self.session.open_workflow_question(&id)?;
        let value = json!({"answers": answered.answers});
        let question = answered.question.clone();
        let by = Principal::new(self.session.start.user.id.as_str());
        self.send_workflow_answer(&question, value, vec![by]);
        Some(Next::DONE)
    }

    /// What the message means as an answer to one part of a question.
    fn read_part(&self, part: &Value) -> Option<Value> {
        let text = self.turn().text();
        let schema = part.get("schema").filter(|schema| schema.is_object());
        let Some(schema) = schema else {
            return Some(json!(text));
        };
        // One that this version cannot read is left to the workflow.
        let Ok(schema) = AuthorSchema::compile(&SchemaSource::Json(schema.clone())) else {
            return Some(json!(text));
        };
        let agent = self.cx.agent;
        let keywords = Keywords::of(None, &agent.hitl.confirm, agent.language);
        let reader = ConfirmReader {
            keywords: &keywords,
            schema: Some(&schema),
            language: agent.language,
        };
        match reader.read_directly(text)? {
            ConfirmReading::Positive(value) | ConfirmReading::Negative(value) => Some(value),
            ConfirmReading::Unrecognized => None,
        }
    }

    fn send_workflow_answer(
        &mut self,
        question: &WorkflowQuestion,
        value: Value,
        by: Vec<Principal>,
    ) {
        let next = self.session.next_seq();
        let id = EffectId::from(format!(
            "{}:{}:{next}",
            self.session.id(),
            question.interrupt_id
        ));
        let answer = WorkflowAnswer {
            run_id: question.run_id.clone(),
            node_id: question.node_id.clone(),
            interrupt_id: question.interrupt_id.clone(),
            value,
            by,
        };
        self.add_work(id, SessionWork::AnswerWorkflow(Box::new(answer)));
    }

    /// An escalation was decided. Where it stands for a question of a workflow, the workflow is told.
    pub(super) fn answer_workflow_by(&mut self, id: &EscalationId) {
        let Some(question) = self.session.workflow_question_of(id).cloned() else {
            return;
        };
        let decided = self.session.escalations.get(id);
        let Some((escalation, done)) = decided.and_then(|e| Some((e, e.resolution.as_ref()?)))
        else {
            return;
        };
        let actions = question.data.get("actions").and_then(Value::as_array);
        let may_edit = actions.is_some_and(|actions| actions.contains(&json!("edit-accept")));
        let mut value = match (done.approved, &done.action_data) {
            (false, _) => json!({"action": "reject"}),
            (true, Some(edited)) if may_edit => {
                json!({"action": "edit-accept", "editedArtifactData": edited})
            }
            (true, _) => json!({"action": "accept"}),
        };
        if let Some(message) = &done.message {
            value["feedback"] = json!(message);
        }
        let votes = escalation.votes.iter().map(|vote| &vote.by);
        let votes = votes.filter(|by| done.approved && **by != done.resolved_by);
        let by: Vec<Principal> = votes
            .chain([&done.resolved_by])
            .map(Principal::new)
            .collect();
        self.send_workflow_answer(&question, value, by);
    }

    /// The workflow took an answer, or refused it.
    pub(super) fn note_workflow_answer(&mut self, id: &InterruptId, error: Option<&CodeError>) {
        let open = self.session.open_workflow_question(id).cloned();
        let (Some(open), Some(error)) = (open, error) else {
            return;
        };
        if open.escalation_id.is_some() {
            // The escalation is decided; the question itself stays open in the inbox.
            self.report_failure("workflow_answer", &error.message);
            self.emit(Body::WorkflowQuestionClosed {
                interrupt_id: id.clone(),
                outcome: "refused".to_owned(),
            });
            return;
        }
        if open.next_part().is_some() {
            return;
        }
        self.emit(Body::WorkflowAnswerRefused {
            interrupt_id: id.clone(),
            reason: error.message.clone(),
        });
        self.queue_workflow_question(&open.wait, &open.question);
    }

    /// The question is not open any more, whoever closed it.
    pub(super) fn close_workflow_question(&mut self, closed: &ClosedWorkflowQuestion) {
        let id = &closed.interrupt_id;
        let waiting = self.session.queued_turns().find(|waiting| {
            matches!(&waiting.cause, TurnCause::WorkflowAsked { question, .. } if question.interrupt_id == *id)
        });
        if let Some(number) = waiting.map(|waiting| waiting.number) {
            self.emit(Body::TurnDropped {
                number,
                message_ids: Vec::new(),
                reason: "question_closed".to_owned(),
            });
        }
        let Some(open) = self.session.open_workflow_question(id).cloned() else {
            return;
        };
        self.emit(Body::WorkflowQuestionClosed {
            interrupt_id: id.clone(),
            outcome: closed.outcome.clone(),
        });
        match &open.escalation_id {
            Some(escalation) => self.close_escalation_of_workflow(escalation, closed),
            None => self.put_following_question(),
        }
    }

    /// The user is asked what had to wait for the question that was closed.
    fn put_following_question(&mut self) {
        let Some(next) = self.session.asked_workflow_question().cloned() else {
            return;
        };
        if !self.is_queued(&next.question.interrupt_id) && next.answers.is_empty() {
            self.queue_workflow_question(&next.wait, &next.question);
        }
    }

    fn close_escalation_of_workflow(&mut self, id: &EscalationId, closed: &ClosedWorkflowQuestion) {
        let open = self.session.escalations.get(id);
        let Some(escalation) = open.filter(|escalation| escalation.is_open()) else {
            return;
        };
        let (detached, escalation_id) = (escalation.detached, id.clone());
        let approved = match closed.outcome.as_str() {
            "accepted" => Some(true),
            "rejected" => Some(false),
            _ => None,
        };
        let body = match (approved, &closed.by) {
            (Some(approved), Some(by)) => Body::EscalationResolved {
                escalation_id,
                resolution: EscalationResolution {
                    approved,
                    message: None,
                    action_data: None,
                    resolved_by: by.to_string(),
                    claimed_by: None,
                    resolved_at: self.now,
                    channel: BY_WORKFLOW.to_owned(),
                },
                detached,
            },
            _ => Body::EscalationCanceled {
                escalation_id,
                reason: format!("workflow_{}", closed.outcome),
            },
        };
        self.emit(body);
    }
}

fn escalation_id(interrupt: &InterruptId) -> EscalationId {
    EscalationId::from(format!("esc-{interrupt}"))
}
