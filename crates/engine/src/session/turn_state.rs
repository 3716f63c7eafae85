//! The turn under way, the turns that wait, and what is kept between turns.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::VecDeque;
use tandem_record::conversation::{
    AdminActor, ApprovalRequest, Candidate, ChatMessage, ChatToolCall, CodeCall, FlowRef,
    InboundMessage, RequestedWork, ResponseMeta, ResponseSource, ScheduledOutcome, SessionEnd,
    TurnCause, TurnTrigger,
};
use tandem_record::{EffectId, EscalationId, FlowId, MessageId, RunId, Seq, Timestamp};

/// A turn that has not started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct WaitingTurn {
    pub(super) number: u64,
    pub(super) cause: TurnCause,
    /// The model loop of a turn that this one replaces.
    pub(super) carried: Option<ModelLoop>,
}

/// Messages that become one turn when their window closes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Burst {
    /// The number of that turn.
    pub(super) number: u64,
    pub(super) messages: Vec<InboundMessage>,
    /// The event that accepted the first.
    pub(super) received: Seq,
    pub(super) opened_at: Timestamp,
    pub(super) closes_at: Timestamp,
}

/// An exchange with the model that is not finished.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelLoop {
    /// The exchange so far, after the working memory.
    pub(super) exchange: Vec<ChatMessage>,
    pub(super) rounds: u32,
    /// Tool calls of the last answer that are not made yet.
    pub(super) calls: VecDeque<ChatToolCall>,
}

/// The turn under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    pub(super) number: u64,
    pub(super) started_at: Timestamp,
    pub(super) cause: TurnCause,
    /// The work it waits for.
    pub(super) pending: Option<RequestedWork>,
    pub(super) source: ResponseSource,
    pub(super) before_llm_action: Option<String>,
    /// The strongest decision about a candidate so far.
    pub(super) before_response_action: Option<String>,
    /// The decision about the last candidate.
    pub(super) candidate_action: Option<String>,
    /// Candidates made so far.
    pub(super) candidates: u32,
    /// Texts of candidates that were not cancelled.
    pub(super) texts: Vec<String>,
    pub(super) structured: Option<Value>,
    pub(super) model: ModelLoop,
    /// Calls of the model and of its tools.
    pub(super) steps: u32,
    pub(super) flow_effects: u32,
    pub(super) handoffs: u32,
    /// A decision of a person or a deadline that this turn used.
    pub(super) consumed: Option<ConsumedOutcome>,
    /// The escalation that was decided.
    pub(super) escalation: Option<EscalationId>,
    /// The flow that spoke.
    pub(super) flow_id: Option<FlowId>,
    pub(super) flow_run: Option<RunId>,
    /// The session ends with this turn.
    pub(super) ends_session: Option<SessionEnd>,
    /// The admin whose command it carries out.
    pub(super) actor: Option<AdminActor>,
    /// What was said in the message; `Some(None)` when it could not be read.
    pub(super) transcript: Option<Option<String>>,
    /// Why the turn has no other answer than the fallback reply.
    pub(super) failure: Option<String>,
    /// It takes place while another turn waits for its work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_beside: bool,
    /// What the flow of a scheduled turn came to first: a pause, its end, or a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scheduled_result: Option<(ScheduledOutcome, Option<String>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConsumedOutcome {
    Resolved,
    TimedOut,
}

/// A text on its way to the user, with the turn that made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct UnsentText {
    pub(super) turn: u64,
    pub(super) queued_at: Timestamp,
    pub(super) flow: Option<FlowRef>,
    /// Absent for texts that are no response: answers of commands, texts sent beside the response.
    pub(super) meta: Option<ResponseMeta>,
    /// Nobody but the agent wrote it.
    #[serde(default)]
    pub(super) is_of_agent: bool,
    /// A person took over before it was sent.
    #[serde(default)]
    pub(super) is_withheld: bool,
}

/// What `onResponse` is told once the texts of a turn are final.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingReport {
    pub(super) turn: u64,
    pub(super) call: CodeCall,
    /// The message that the turn answered, as code sees it.
    pub(super) inbound: Option<Value>,
    pub(super) queued_at: Timestamp,
    pub(super) flow: Option<FlowRef>,
    pub(super) meta: Option<ResponseMeta>,
}

/// The report that is being made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StartedReport {
    pub(super) effect: EffectId,
    pub(super) report: PendingReport,
}

impl PendingReport {
    /// The turn it is about, for events of the report.
    pub(super) fn subject(&self) -> UnsentText {
        UnsentText {
            turn: self.turn,
            queued_at: self.queued_at,
            flow: self.flow.clone(),
            meta: self.meta.clone(),
            is_of_agent: false,
            is_withheld: false,
        }
    }
}

/// A call of the model that waits for consent, with the exchange that goes on afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingApproval {
    pub(super) request: ApprovalRequest,
    pub(super) asked_at: Timestamp,
    pub(super) model: ModelLoop,
}

/// A text that waits for a person's approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldDraft {
    pub candidate: Candidate,
    pub created_at: Timestamp,
    /// The turn that made it.
    pub(super) subject: UnsentText,
}

impl Turn {
    pub(super) fn new(waiting: WaitingTurn, at: Timestamp) -> Self {
        let source = match waiting.cause {
            TurnCause::Scheduled(_) => ResponseSource::Scheduled,
            _ => ResponseSource::Classic,
        };
        Self {
            number: waiting.number,
            started_at: at,
            cause: waiting.cause,
            pending: None,
            source,
            before_llm_action: None,
            before_response_action: None,
            candidate_action: None,
            candidates: 0,
            texts: Vec::new(),
            structured: None,
            model: waiting.carried.unwrap_or_default(),
            steps: 0,
            flow_effects: 0,
            handoffs: 0,
            consumed: None,
            escalation: None,
            flow_id: None,
            flow_run: None,
            ends_session: None,
            actor: None,
            transcript: None,
            failure: None,
            is_beside: false,
            scheduled_result: None,
        }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn trigger(&self) -> TurnTrigger {
        self.cause.trigger()
    }

    /// The text the turn is about.
    pub(super) fn text(&self) -> &str {
        let transcript = self.transcript.as_ref().and_then(Option::as_deref);
        let body = self.cause.message().map_or("", |m| m.body.as_str());
        transcript.unwrap_or(body)
    }

    /// The message as code sees it: with the text of what was said.
    pub(super) fn inbound(&self) -> Option<Value> {
        let mut inbound = super::context_data::inbound(self.cause.message()?);
        if let Some(Some(text)) = &self.transcript {
            inbound["body"] = Value::String(text.clone());
        }
        Some(inbound)
    }

    /// The flow that spoke.
    pub(super) fn flow(&self) -> Option<FlowRef> {
        Some(FlowRef {
            flow_id: self.flow_id.clone()?,
            flow_run_id: self.flow_run.clone()?,
        })
    }

    /// Whether the user or an admin wrote a command.
    pub(super) fn is_command(&self) -> bool {
        match &self.cause {
            TurnCause::AdminCommand { .. } => true,
            TurnCause::Message { message, .. } => is_command(&message.body),
            _ => false,
        }
    }

    /// The event that accepted the first message of the turn.
    pub(super) fn received(&self) -> Seq {
        match &self.cause {
            TurnCause::Message { received, .. } => *received,
            TurnCause::QueueReplay { message } => message.received,
            _ => Seq(u64::MAX),
        }
    }
}

impl WaitingTurn {
    /// Whether it is about a message of the user that is no command.
    pub(super) fn is_plain_message(&self) -> bool {
        match &self.cause {
            TurnCause::Message { message, .. } => !is_command(&message.body),
            _ => false,
        }
    }
}

pub(super) fn is_command(text: &str) -> bool {
    super::command_line::CommandLine::parse(text).is_some()
}

/// Several messages as one: all texts, and the media of the first that has any.
pub(super) fn joined(messages: &[InboundMessage]) -> Option<(InboundMessage, Vec<MessageId>)> {
    let mut message = messages.last()?.clone();
    // A recording has no text of its own.
    let texts = messages.iter().map(|m| m.body.as_str());
    let texts: Vec<&str> = texts.filter(|text| !text.trim().is_empty()).collect();
    message.body = texts.join("\n");
    let with_media = messages.iter().find(|m| m.media.is_some());
    if let Some(first) = with_media {
        message.media.clone_from(&first.media);
        message.kind.clone_from(&first.kind);
    }
    let ids = messages.iter().map(|m| m.message_id.clone()).collect();
    Some((message, ids))
}
