//! Answers to questions of flows that come by the routes of runs and of the inbox. They are the same
//! decisions as those by the routes of conversations, by the same rights (Z-203).

use super::manage::{RESOLVE, ResolveEscalation, ResolveTarget};
use super::rights::AdminCall;
use crate::app::App;
use crate::decide::{AcceptedAnswer, AnswerTarget, AskedBy, SubmittedAnswer};
use crate::error::{AppError, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use serde_json::Value;
use std::borrow::Cow;
use tandem_access::Scope;
use tandem_record::conversation::{
    AdminRequest, ClosedEscalation, DraftDecision, FlowPause, WaitFor,
};
use tandem_record::{EscalationId, InterruptId, NodeId, QuestionBody, RunId, SessionId};
use tandem_runtime::Refusal;
use tandem_runtime::conversation::{FlowRun, SessionRefusal};

const APPROVAL: &str = "approval";
const CLARIFICATION: &str = "clarification";
/// The outcome of a question that nobody answered.
const CANCELLED: &str = "cancelled";
const ANSWER_FOR_USER: &str = "command.answer_for_user";

/// A question of a conversation.
pub struct ConversationQuestion {
    interrupt: InterruptId,
    asked_by: Asker,
}

enum Asker {
    /// A flow run, at one of its effects.
    Flow(RunId, NodeId),
    /// A session without a flow: an escalation or a held text.
    Session(SessionId),
}

impl ConversationQuestion {
    /// A question that a session asks without a flow.
    pub(super) fn of_session(interrupt: InterruptId, session: SessionId) -> Self {
        Self {
            interrupt,
            asked_by: Asker::Session(session),
        }
    }
}

impl App {
    /// The question of a conversation that an answer is for; `None` when it belongs to a workflow run.
    pub async fn conversation_question(
        &self,
        call: &AdminCall<'_>,
        target: &AnswerTarget,
    ) -> Result<Option<ConversationQuestion>, AppError> {
        call.caller.require_scope(Scope::ApprovalsRespond)?;
        let (run, node) = match target {
            AnswerTarget::Node { run, node } if run.is_flow_run() => {
                self.find_run(call.caller, run).await?;
                (run.clone(), node.clone())
            }
            AnswerTarget::Node { .. } => return Ok(None),
            AnswerTarget::Interrupt(id) => {
                let row = self.find_interrupt(call.caller, id).await?;
                let asked_by = match (row.run_and_node(), row.stream.session()) {
                    (Some((run, node)), _) if run.is_flow_run() => Asker::Flow(run, node),
                    (None, Some(session)) => Asker::Session(session),
                    _ => return Ok(None),
                };
                return Ok(Some(ConversationQuestion {
                    interrupt: id.clone(),
                    asked_by,
                }));
            }
        };
        // Nodes are named after steps, and questions after their steps: also a closed one is found.
        let step = node.as_str().strip_prefix('s');
        let step = step.ok_or(AppError::NotFound(ResourceKind::Interrupt))?;
        Ok(Some(ConversationQuestion {
            interrupt: InterruptId::from(format!("{run}:{step}")),
            asked_by: Asker::Flow(run, node),
        }))
    }

    /// Answers a question of a conversation.
    pub async fn answer_conversation(
        &self,
        call: &AdminCall<'_>,
        question: ConversationQuestion,
        answer: SubmittedAnswer,
        idempotency: Idempotency<AcceptedAnswer>,
    ) -> Result<Completion<AcceptedAnswer>, AppError> {
        let interrupt = question.interrupt;
        let accepted = match question.asked_by {
            Asker::Flow(run, node) => {
                let (kind, outcome) = self.answer_flow(call, &run, &interrupt, &answer).await?;
                let status = self.flow_run(&run).await?.status();
                let asked_by = AskedBy::Run { run, node, status };
                accepted(asked_by, interrupt, kind, outcome)
            }
            Asker::Session(session) => {
                let (kind, outcome) = self
                    .answer_session(call, &session, &interrupt, &answer)
                    .await?;
                accepted(AskedBy::Session(session), interrupt, kind, outcome)
            }
        };
        self.complete(idempotency, accepted).await
    }

    /// Answers the question a flow waits at. Returns its kind and the outcome.
    async fn answer_flow(
        &self,
        call: &AdminCall<'_>,
        run: &RunId,
        interrupt: &InterruptId,
        answer: &SubmittedAnswer,
    ) -> Result<(&'static str, &'static str), AppError> {
        let flow_run = self.flow_run(run).await?;
        let open = flow_run.pause().filter(|p| p.interrupt_id() == interrupt);
        let Some(pause) = open else {
            let closed = flow_run.closed_question(interrupt);
            let closed = closed.ok_or(AppError::NotFound(ResourceKind::Interrupt))?;
            let session = flow_run.start().and_then(|start| start.session_id.as_ref());
            if closed.outcome == CANCELLED && self.has_ended(session).await? {
                return Err(AppError::SessionRefused(SessionRefusal::Ended));
            }
            return Err(Refusal::AlreadyResolved(closed.clone()).into());
        };
        let digest = answer.digest.as_deref();
        self.check_digest(call, interrupt, digest).await?;
        match pause {
            FlowPause::Wait {
                wait_for: WaitFor::AdminResolution,
                escalation_id: Some(escalation),
                ..
            } => {
                let decision = read_decision(&answer.value)?;
                let outcome = outcome_of(&decision);
                let target = ResolveTarget::Escalation(EscalationId::clone(escalation));
                self.resolve(call, target, decision).await?;
                Ok((APPROVAL, outcome))
            }
            FlowPause::Ask { key, .. } => {
                let value = given_answer(&answer.value, key)?;
                self.answer_for_user(call, &flow_run, interrupt, value)
                    .await?;
                Ok((CLARIFICATION, "answered"))
            }
            FlowPause::Confirm { .. }
            | FlowPause::Wait {
                wait_for: WaitFor::ConfirmResponse,
                ..
            } => {
                let value = given_answer(&answer.value, "confirm")?;
                self.answer_for_user(call, &flow_run, interrupt, value)
                    .await?;
                Ok((CLARIFICATION, "answered"))
            }
            // Only the runtime ends these.
            FlowPause::Wait { .. } | FlowPause::Workflow { .. } | FlowPause::ProxyWait { .. } => {
                Err(AppError::NotAnswerable)
            }
        }
    }

    /// Answers a question of the user on their behalf, which needs a right of its own.
    async fn answer_for_user(
        &self,
        call: &AdminCall<'_>,
        flow_run: &FlowRun,
        interrupt: &InterruptId,
        value: Value,
    ) -> Result<(), AppError> {
        let session = flow_run.start().and_then(|start| start.session_id.clone());
        // A fork asks nobody.
        let session = session.ok_or(AppError::NotAnswerable)?;
        let request = AdminRequest::AnswerForUser {
            interrupt: interrupt.clone(),
            value,
        };
        self.act_and_wait(call, ANSWER_FOR_USER, &session, request)
            .await
    }

    /// Decides an escalation that no flow waits for, or a held text, or consents for the user. Returns the kind of the
    /// question and the outcome.
    async fn answer_session(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
        interrupt: &InterruptId,
        answer: &SubmittedAnswer,
    ) -> Result<(&'static str, &'static str), AppError> {
        let digest = answer.digest.as_deref();
        self.check_digest(call, interrupt, digest).await?;
        let current = self.find_session(call.caller, session).await?;
        let asks_consent = current.user_approval();
        if asks_consent.is_some_and(|request| request.interrupt_id == *interrupt) {
            let request = AdminRequest::AnswerForUser {
                interrupt: interrupt.clone(),
                value: given_answer(&answer.value, "confirm")?,
            };
            self.act_and_wait(call, ANSWER_FOR_USER, session, request)
                .await?;
            return Ok((CLARIFICATION, "answered"));
        }
        let escalation = EscalationId::new(interrupt.as_str());
        let is_escalation = current.escalation(&escalation).is_some();
        let mut drafts = current.drafts();
        if !is_escalation && drafts.all(|(held, _)| held != interrupt) {
            return Err(self.closed_draft(call, interrupt).await?);
        }
        let decision = read_decision(&answer.value)?;
        let outcome = outcome_of(&decision);
        if is_escalation {
            let target = ResolveTarget::Escalation(escalation);
            self.resolve(call, target, decision).await?;
            return Ok((APPROVAL, outcome));
        }
        let text = decision.action_data.as_ref().map(edited_text).transpose()?;
        let decision = match (decision.approved, text) {
            (false, _) => DraftDecision::Reject,
            (true, None) => DraftDecision::Accept,
            (true, Some(text)) => DraftDecision::Edit(text),
        };
        let request = AdminRequest::DecideDraft {
            draft: interrupt.clone(),
            decision,
        };
        self.act_and_wait(call, RESOLVE, session, request).await?;
        Ok((APPROVAL, outcome))
    }

    /// Why a text that is not held any more cannot be decided.
    async fn closed_draft(
        &self,
        call: &AdminCall<'_>,
        interrupt: &InterruptId,
    ) -> Result<AppError, AppError> {
        let row = self.find_interrupt(call.caller, interrupt).await?;
        let is_cancelled = row.closed.as_deref() == Some(CANCELLED);
        if is_cancelled && self.has_ended(row.stream.session().as_ref()).await? {
            return Ok(AppError::SessionRefused(SessionRefusal::Ended));
        }
        let body = QuestionBody::from_json(&row.body).unwrap_or_default();
        let closed = ClosedEscalation {
            decided_by: body.decided_by.map(Cow::into_owned),
            decided_at: body.decided_at,
            outcome: match row.closed.as_deref() {
                Some("accepted") => "accepted",
                Some("answered") => "answered",
                Some("timeout") => "timeout",
                Some("rejected") => "rejected",
                _ => CANCELLED,
            },
        };
        let refusal = SessionRefusal::AlreadyResolved(Box::new(closed));
        Ok(AppError::SessionRefused(refusal))
    }

    /// Whether the session of a question is over: then nobody answers it any more.
    async fn has_ended(&self, session: Option<&SessionId>) -> Result<bool, AppError> {
        let Some(session) = session else {
            return Ok(false);
        };
        let session = self.runtime().read_session(session).await?;
        Ok(session.is_none_or(|session| session.ended().is_some()))
    }

    async fn flow_run(&self, run: &RunId) -> Result<FlowRun, AppError> {
        let found = self.runtime().read_flow_run(run).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Run))
    }

    /// Refuses a decision about something else than what is shown.
    async fn check_digest(
        &self,
        call: &AdminCall<'_>,
        interrupt: &InterruptId,
        seen: Option<&str>,
    ) -> Result<(), AppError> {
        let Some(seen) = seen else {
            return Ok(());
        };
        let row = self.find_interrupt(call.caller, interrupt).await?;
        let shown: Value = serde_json::from_str(&row.body).unwrap_or_default();
        match shown["digest"].as_str() {
            Some(digest) if digest != seen => Err(AppError::ArtifactChanged {
                digest: digest.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Reads the resume value of an approval.
fn read_decision(value: &Value) -> Result<ResolveEscalation, AppError> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let edited = value.get("editedArtifactData").cloned();
    let (approved, action_data) = match (value["action"].as_str(), edited) {
        // What the reviewer typed must not be left out of what is recorded as approved.
        (Some("accept"), Some(_)) => {
            return Err(AppError::invalid(
                "/resumeValue/editedArtifactData",
                "accept takes what is shown as it is; use edit-accept to change it",
            ));
        }
        (Some("accept"), None) => (true, None),
        (Some("reject"), _) => (false, None),
        (Some("edit-accept" | "edit"), Some(edited)) => (true, Some(edited)),
        (Some("edit-accept" | "edit"), None) => {
            return Err(AppError::invalid(
                "/resumeValue/editedArtifactData",
                "is needed",
            ));
        }
        _ => {
            let message = "must be accept, reject or edit-accept";
            return Err(AppError::invalid("/resumeValue/action", message));
        }
    };
    Ok(ResolveEscalation {
        approved,
        message: text("feedback"),
        action_data,
        resolved_by: text("decidedBy"),
    })
}

fn outcome_of(decision: &ResolveEscalation) -> &'static str {
    match decision.approved {
        true => "accepted",
        false => "rejected",
    }
}

/// The answer to one question of a clarification.
fn given_answer(value: &Value, question: &str) -> Result<Value, AppError> {
    let answers = value.get("answers").unwrap_or(value);
    let given = answers.get(question).cloned();
    given.ok_or_else(|| {
        let path = format!("/resumeValue/answers/{question}");
        AppError::invalid(&path, "is needed")
    })
}

/// The text somebody writes instead of a held one.
fn edited_text(edited: &Value) -> Result<String, AppError> {
    let text = edited.as_str().or_else(|| edited["text"].as_str());
    let text = text.filter(|text| !text.trim().is_empty());
    text.map(str::to_owned)
        .ok_or_else(|| AppError::invalid("/resumeValue/editedArtifactData/text", "must be a text"))
}

fn accepted(
    asked_by: AskedBy,
    interrupt: InterruptId,
    kind: &str,
    outcome: &str,
) -> AcceptedAnswer {
    AcceptedAnswer {
        asked_by,
        interrupt,
        kind: kind.to_owned(),
        outcome: Some(outcome.to_owned()),
        votes: Vec::new(),
    }
}
