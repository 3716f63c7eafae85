//! Calls of the model that somebody must allow first: the user, or an admin.
//!
//! The exchange with the model is kept while they are asked, and goes on with the result of the call or
//! with the refusal.

use super::confirm::ConfirmReading;
use super::decide::SessionRefusal;
use super::draft::Draft;
use super::state::ChatSession;
use super::turn::Next;
use crate::agent::{ToolApproval, UnrecognizedReply};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ApprovalAsked, ApprovalRequest, CandidateOrigin, ChatToolCall, CodeCall, CodeOutcome,
    ConfirmOutcome, EscalationMode, EscalationRecord, ResumedBy, SessionEventBody as Body,
    SessionTimer, SessionWork, TurnCause, WaitFor, WorkPurpose,
};
use tandem_record::{EscalationId, InterruptId, Timestamp};

impl ChatSession {
    /// The timer of the question to the user.
    pub(super) fn approval_deadline(&self) -> Option<(SessionTimer, Timestamp)> {
        let request = &self.approval.as_ref()?.request;
        let ApprovalAsked::User { deadline, .. } = &request.asked else {
            return None;
        };
        let id = request.interrupt_id.clone();
        let is_queued = self.has_turn(
            |cause| matches!(cause, TurnCause::Deadline { interrupt } if *interrupt == id),
        );
        (!is_queued).then_some((SessionTimer::Approval { id }, *deadline))
    }

    /// The call that waits for the user's consent.
    pub fn user_approval(&self) -> Option<&ApprovalRequest> {
        let request = &self.approval.as_ref()?.request;
        matches!(request.asked, ApprovalAsked::User { .. }).then_some(request)
    }

    /// Since when a call waits for somebody's consent.
    pub fn approval_asked_at(&self) -> Option<Timestamp> {
        Some(self.approval.as_ref()?.asked_at)
    }

    /// The call that waits for this escalation.
    pub fn approval_of(&self, id: &EscalationId) -> Option<&ApprovalRequest> {
        let request = &self.approval.as_ref()?.request;
        match &request.asked {
            ApprovalAsked::Admin { escalation_id } if escalation_id == id => Some(request),
            _ => None,
        }
    }
}

impl Draft<'_> {
    /// Who must allow a call; `None` when nobody must.
    pub(super) fn ask_approval(&mut self, call: &ChatToolCall) -> Option<Next> {
        let approval = self.cx.agent.tool(&call.name).map(|tool| tool.approval);
        match approval.unwrap_or_default() {
            ToolApproval::None => None,
            ToolApproval::User => Some(self.ask_user(call)),
            ToolApproval::Admin => Some(self.ask_admin(call)),
            ToolApproval::Predicate => {
                let rule = CodeCall {
                    path: format!("tools.{}.approval", call.name),
                    args: vec![call.args.clone()],
                    timeout_ms: self.cx.agent.timeouts.hook_ms,
                };
                let purpose = WorkPurpose::ApprovalRule { call: call.clone() };
                self.request(purpose, SessionWork::Code(rule));
                Some(Next::Wait)
            }
        }
    }

    /// The author's rule decided. A rule that fails asks for consent.
    pub(super) fn use_approval_rule(&mut self, call: &ChatToolCall, done: &CodeOutcome) -> Next {
        let has_admins = self.cx.agent.admin_auth.is_some();
        match (&done.error, &done.value) {
            (None, None | Some(Value::Null | Value::Bool(false))) => self.call_tool(call.clone()),
            (None, Some(Value::String(who))) if who == "user" => self.ask_user(call),
            (None, Some(Value::String(who))) if who == "admin" => self.ask_admin(call),
            _ if has_admins => self.ask_admin(call),
            _ => self.ask_user(call),
        }
    }

    fn ask_user(&mut self, call: &ChatToolCall) -> Next {
        let next = self.session.next_seq();
        let interrupt_id = InterruptId::from(format!("{}:{next}", self.session.id()));
        let deadline = self.now.plus_ms(self.cx.agent.hitl.confirm.timeout_ms);
        let question = format!(
            "May I use {} with {}? Reply YES or NO",
            call.name, call.args
        );
        let asked = self.emit(Body::ConfirmRequested {
            interrupt_id: interrupt_id.clone(),
            question: question.clone(),
            deadline,
            has_schema: false,
        });
        self.emit(Body::ApprovalRequested(Box::new(ApprovalRequest {
            call: call.clone(),
            interrupt_id: interrupt_id.clone(),
            asked: ApprovalAsked::User {
                question: question.clone(),
                deadline,
                attempts: 0,
                asked,
            },
        })));
        self.emit(Body::InterruptPaused {
            interrupt_id,
            kind: "confirm".to_owned(),
            wait_for: None,
            deadline: Some(deadline),
        });
        self.respond(&question, CandidateOrigin::Confirm, None)
    }

    fn ask_admin(&mut self, call: &ChatToolCall) -> Next {
        if self.cx.agent.admin_auth.is_none() || self.session.attached_escalation().is_some() {
            let content = format!("Tool {} failed: nobody can allow it now", call.name);
            self.answer_tool(call, content, true);
            return self.next_tool_call();
        }
        let timeout = self.cx.agent.hitl.escalation.timeout_ms;
        let metadata = json!({"tool": call.name, "args": call.args});
        let reason = format!("The agent wants to use {}", call.name);
        let escalation = self.implicit_escalation(&reason, EscalationMode::AsyncResolution);
        let mode = escalation.mode;
        let deadline = self.escalation_deadline(mode, timeout);
        let escalation = EscalationRecord {
            metadata: Some(metadata),
            deadline: Some(deadline),
            ..escalation
        };
        let escalation_id = escalation.id.clone();
        let interrupt_id = InterruptId::from(escalation_id.as_str());
        self.emit(Body::EscalationCreated(Box::new(escalation)));
        self.emit(Body::ApprovalRequested(Box::new(ApprovalRequest {
            call: call.clone(),
            interrupt_id: interrupt_id.clone(),
            asked: ApprovalAsked::Admin { escalation_id },
        })));
        self.emit(Body::InterruptPaused {
            interrupt_id,
            kind: "wait".to_owned(),
            wait_for: Some(WaitFor::AdminResolution),
            deadline: Some(deadline),
        });
        self.acknowledge(mode)
    }

    /// The user answers whether a call may be made.
    pub(super) fn answer_approval(&mut self) -> Option<Next> {
        let request = self.session.approval.as_ref()?.request.clone();
        let ApprovalAsked::User {
            question,
            attempts,
            asked,
            ..
        } = &request.asked
        else {
            return Some(self.hold_message());
        };
        if matches!(self.turn().cause, TurnCause::QueueReplay { .. }) {
            return Some(self.hold_message());
        }
        let text = self.turn().text().to_owned();
        let is_late = self.turn().received() > *asked;
        let reading = match is_late {
            true => self.read_plainly(&text),
            false => ConfirmReading::Unrecognized,
        };
        let settings = &self.cx.agent.hitl.confirm;
        let gives_up = settings.unrecognized == UnrecognizedReply::Decline
            || *attempts >= settings.max_reprompts;
        let (approved, outcome) = match reading {
            ConfirmReading::Positive(_) => (true, "positive"),
            ConfirmReading::Negative(_) => (false, "negative"),
            ConfirmReading::Unrecognized if is_late && gives_up => (false, "unrecognized"),
            ConfirmReading::Unrecognized => {
                self.emit(Body::ConfirmUnrecognized {
                    interrupt_id: request.interrupt_id,
                    text,
                    attempt: attempts + 1,
                    counted: is_late,
                });
                return Some(self.respond(question, CandidateOrigin::Confirm, None));
            }
        };
        Some(self.settle_consent(&request, approved, outcome, text))
    }

    /// The user's consent is known.
    fn settle_consent(
        &mut self,
        request: &ApprovalRequest,
        approved: bool,
        outcome: &str,
        text: String,
    ) -> Next {
        let refusal = (!approved).then(|| format!("The user did not allow it: {text}"));
        self.emit(Body::ConfirmResolved {
            interrupt_id: request.interrupt_id.clone(),
            decision: match approved {
                true => ConfirmOutcome::Positive,
                false => ConfirmOutcome::Negative,
            },
            reason: (outcome == "unrecognized").then(|| outcome.to_owned()),
            text,
            value: Some(Value::Bool(approved)),
        });
        self.leave_approval(request, "confirm", ResumedBy::UserReply, outcome);
        self.go_on(&request.call, None, refusal)
    }

    /// Somebody with the right consents for the user, or refuses. `None` when the user is not asked.
    pub(super) fn consent_for_user(
        &mut self,
        interrupt: &InterruptId,
        value: &Value,
    ) -> Option<Next> {
        let request = self.session.user_approval();
        let request = request.filter(|request| request.interrupt_id == *interrupt)?;
        let request = request.clone();
        let approved = *value == Value::Bool(true);
        let outcome = if approved { "positive" } else { "negative" };
        Some(self.settle_consent(&request, approved, outcome, value.to_string()))
    }

    /// Nobody decides about the call any more.
    pub(super) fn close_approval(&mut self) {
        let Some(approval) = &self.session.approval else {
            return;
        };
        let request = approval.request.clone();
        let kind = match &request.asked {
            ApprovalAsked::User { .. } => "confirm",
            ApprovalAsked::Admin { .. } => "wait",
        };
        self.leave_approval(&request, kind, ResumedBy::Canceled, "canceled");
        self.emit(Body::ApprovalDecided {
            call_id: request.call.id,
            approved: false,
        });
    }

    fn leave_approval(
        &mut self,
        request: &ApprovalRequest,
        kind: &str,
        by: ResumedBy,
        outcome: &str,
    ) {
        self.emit(Body::InterruptResumed {
            interrupt_id: request.interrupt_id.clone(),
            kind: kind.to_owned(),
            by,
            outcome: outcome.to_owned(),
            text: None,
        });
    }

    /// The exchange with the model goes on: with the call, or with the refusal as its result.
    fn go_on(&mut self, call: &ChatToolCall, args: Option<Value>, refusal: Option<String>) -> Next {
        self.emit(Body::ApprovalDecided {
            call_id: call.id.clone(),
            approved: refusal.is_none(),
        });
        let changed = ChatToolCall {
            args: args.unwrap_or_else(|| call.args.clone()),
            ..call.clone()
        };
        let problem = self.check_tool(&call.name, &changed.args).err();
        let problem =
            problem.map(|error| super::model_loop::invalid_params(&call.name, &error.message));
        match refusal.or(problem) {
            Some(content) => {
                self.answer_tool(call, content, true);
                self.next_tool_call()
            }
            None => self.call_tool(changed),
        }
    }

    /// An admin decided about a call, or nobody did in time.
    pub(super) fn deliver_approval(&mut self, escalation: &EscalationRecord) -> Option<Next> {
        let request = self.session.approval_of(&escalation.id)?.clone();
        let payload = self.resolution_payload(escalation);
        let outcome = payload["outcome"].as_str().unwrap_or_default().to_owned();
        let by = super::escalations::resumed_by(escalation.status);
        self.leave_approval(&request, "wait", by, &outcome);
        let refusal = (payload["approved"] != json!(true)).then(|| {
            let why = payload["message"].as_str().unwrap_or(&outcome);
            format!("The call was not allowed: {why}")
        });
        let args = payload["actionData"].get("args").cloned();
        Some(self.go_on(&request.call, args, refusal))
    }

    pub(super) fn queue_approval_deadline(&mut self, id: &InterruptId) {
        if self.is_due(&SessionTimer::Approval { id: id.clone() }) {
            self.emit(Body::TurnQueued {
                cause: TurnCause::Deadline {
                    interrupt: id.clone(),
                },
            });
        }
    }

    /// The user did not answer in time.
    pub(super) fn time_out_approval(&mut self, id: &InterruptId) -> Option<Next> {
        let request = &self.session.approval.as_ref()?.request;
        let request = Some(request)
            .filter(|request| request.interrupt_id == *id)?
            .clone();
        let ApprovalAsked::User { deadline, .. } = &request.asked else {
            return None;
        };
        self.emit(Body::ConfirmTimedOut {
            interrupt_id: id.clone(),
            deadline: *deadline,
            behavior: "decline".to_owned(),
        });
        self.leave_approval(&request, "confirm", ResumedBy::Timeout, "timed_out");
        let refusal = "The user did not answer in time.".to_owned();
        Some(self.go_on(&request.call, None, Some(refusal)))
    }

    /// A resolution of the escalation of a call must name arguments that fit.
    pub(super) fn check_approval_args(
        &self,
        id: &EscalationId,
        action_data: Option<&Value>,
    ) -> Result<(), SessionRefusal> {
        let request = self.session.approval_of(id);
        let args = action_data.and_then(|data| data.get("args"));
        match (request, args) {
            (Some(request), Some(args)) => self
                .check_tool(&request.call.name, args)
                .map_err(|error| SessionRefusal::InvalidInput(error.message)),
            _ => Ok(()),
        }
    }
}
