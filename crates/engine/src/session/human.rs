//! Leaving the agent for a person without a flow, and giving up waiting for one.

use super::draft::Draft;
use super::keywords::KeywordList;
use super::turn::Next;
use serde_json::{Value, json};
use tandem_record::EscalationId;
use tandem_record::conversation::{
    CandidateOrigin, ChatToolCall, EscalationMode, EscalationPriority, EscalationRecord,
    EscalationStatus, SessionEventBody as Body, TakeoverOrigin,
};

const REQUESTED: &str = "user_request";
pub(super) const CANCELED: &str = "user_canceled";

impl Draft<'_> {
    /// An escalation that no flow opened.
    pub(super) fn implicit_escalation(
        &self,
        reason: &str,
        mode: EscalationMode,
    ) -> EscalationRecord {
        let next = self.session.next_seq();
        let deadline = self.cx.agent.hitl.takeover.max_ms;
        EscalationRecord {
            id: EscalationId::from(format!("esc-{}-{next}", self.session.id())),
            mode,
            reason: reason.to_owned(),
            priority: EscalationPriority::Normal,
            metadata: None,
            flow_id: None,
            flow_run_id: None,
            client_id: None,
            status: EscalationStatus::Open,
            detached: false,
            created_at: self.now,
            deadline: deadline.map(|ms| self.now.plus_ms(ms)),
            resolution: None,
            interrupt_id: None,
            cancel_reason: None,
            required_approvals: 1,
            approvers: Vec::new(),
            votes: Vec::new(),
            context: self.escalation_context(),
            queue: self.cx.agent.hitl.escalation.queue.clone(),
            assignee: None,
            claimed_at: None,
            stopped: None,
        }
    }

    /// What the reviewer should know, as the agent configures it.
    pub(super) fn escalation_context(&self) -> Option<Value> {
        let settings = self.cx.agent.hitl.context.as_ref()?;
        let memory = &self.session.memory;
        let skipped = memory.len().saturating_sub(settings.messages);
        let messages: Vec<_> = memory.iter().skip(skipped).collect();
        let mut context = json!({ "messages": messages });
        if let Some(summary) = self.session.summary().filter(|_| settings.summary) {
            context["summary"] = json!(summary);
        }
        if settings.profile {
            context["user"] = json!(self.session.start.user);
        }
        if let Some(flow) = self.session.flow.as_ref().filter(|_| settings.answers) {
            context["answers"] = json!(flow.answers);
        }
        Some(context)
    }

    fn can_call_human(&self) -> bool {
        self.cx.agent.admin_auth.is_some()
            && self.session.attached_escalation().is_none()
            && self.session.takeover.is_none()
    }

    /// The message asks for a person.
    pub(super) fn wants_human(&self) -> bool {
        let words = &self.cx.agent.hitl.human.keywords;
        let words = KeywordList::new(words.iter().map(String::as_str));
        words.equals(self.turn().text()) && self.can_call_human()
    }

    /// The user leaves the agent, and its flow, for a person.
    pub(super) fn call_human(&mut self) -> Next {
        if self.session.flow.is_some() {
            self.end_flow(Some("human_requested"), true);
        }
        let mode = self.call_person(REQUESTED);
        self.acknowledge(mode)
    }

    /// Asks for a person in the way the agent names, where that is available.
    fn call_person(&mut self, reason: &str) -> EscalationMode {
        let mode = match self.has_takeover() {
            true => self.cx.agent.hitl.human.mode,
            false => EscalationMode::AsyncResolution,
        };
        let escalation = self.implicit_escalation(reason, mode);
        match mode {
            EscalationMode::LiveTakeover => {
                self.open_takeover(escalation, TakeoverOrigin::UserRequest);
            }
            EscalationMode::AsyncResolution => {
                self.emit(Body::EscalationCreated(Box::new(escalation)));
            }
        }
        mode
    }

    /// The tool `talk_to_human`: the model asks for a person.
    pub(super) fn call_human_by_tool(&mut self, call: &ChatToolCall) -> Option<Next> {
        if !self.can_call_human() {
            let content = format!("Tool {} failed: nobody can be called now", call.name);
            self.answer_tool(call, content, true);
            return None;
        }
        let reason = call.args.get("reason").and_then(Value::as_str);
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        let reason = reason.unwrap_or(REQUESTED).to_owned();
        let mode = self.call_person(&reason);
        let content = "A person was called. Tell the user that they will answer.";
        self.answer_tool(call, content.to_owned(), false);
        // The user leaves the agent: where it has a text for that, the model is not asked for another one.
        match (self.acknowledgement(mode), mode) {
            (Some(text), _) => Some(self.respond(&text, CandidateOrigin::Ack, None)),
            // Whatever it wrote would not be sent.
            (None, EscalationMode::LiveTakeover) => Some(Next::DONE),
            (None, EscalationMode::AsyncResolution) => None,
        }
    }

    /// The user gives up waiting for a person; `None` when the message says something else.
    pub(super) fn cancel_wait(&mut self) -> Option<Next> {
        let words = &self.cx.agent.hitl.user_cancel_keywords;
        let words = KeywordList::new(words.iter().map(String::as_str));
        let escalation = self.session.attached_escalation()?.id.clone();
        if self.session.workflow_question_of(&escalation).is_some() {
            // The workflow waits for a decision, not the user.
            return None;
        }
        if !words.equals(self.turn().text()) {
            return None;
        }
        self.emit(Body::EscalationCanceled {
            escalation_id: escalation.clone(),
            reason: CANCELED.to_owned(),
        });
        Some(self.deliver_resolution(&escalation))
    }
}
