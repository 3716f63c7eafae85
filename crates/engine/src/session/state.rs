//! The folded state of a session. [`super::evolve`] is the only place that changes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use tandem_record::conversation::{
    ChatMessage, ChatToolCall, CodeCall, EscalationRecord, FlowPause, LedgerMessage, QueuedMessage,
    RequestedWork, ResponseSource, SessionEnd, SessionStart, TurnCause, TurnTrigger, WaitFor,
};
use tandem_record::{EffectId, EscalationId, FlowId, MessageId, RunId, Seq, Timestamp};

/// One conversation of one user with one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatSession {
    pub(super) head: Seq,
    pub(super) start: Box<SessionStart>,
    pub(super) started_at: Timestamp,
    pub(super) last_at: Timestamp,
    /// The time of the last turn or message.
    pub(super) last_active_at: Timestamp,
    pub(super) ended: Option<(Timestamp, SessionEnd)>,
    pub(super) message_count: u64,
    /// The author's keys. Reserved keys follow from the rest of the state.
    pub(super) kv: BTreeMap<String, Value>,
    /// The user's own settings.
    pub(super) preferences: BTreeMap<String, Value>,
    /// The last messages, for the model.
    pub(super) memory: VecDeque<LedgerMessage>,
    /// The number of the last turn that was given out.
    pub(super) last_turn: u64,
    pub(super) turn: Option<Turn>,
    /// Turns that wait for their place, in order.
    pub(super) waiting: VecDeque<WaitingTurn>,
    pub(super) flow: Option<ActiveFlow>,
    /// How many flow runs were started: part of their ids.
    pub(super) flows_started: u64,
    pub(super) escalations: BTreeMap<EscalationId, EscalationRecord>,
    /// The escalation that the session's mode is about.
    pub(super) attached: Option<EscalationId>,
    /// Messages kept for the flow, or for replay when it ends.
    pub(super) queued: VecDeque<QueuedMessage>,
    /// Since when a person's answer is pending.
    pub(super) pending_since: Option<Timestamp>,
    /// Texts that were queued and are not final yet, with the turn they belong to.
    pub(super) unsent: BTreeMap<EffectId, u64>,
    /// Turns whose texts are not all final, with what `onResponse` is to be told.
    pub(super) reports: VecDeque<PendingReport>,
    /// The report that is being made.
    pub(super) reporting: Option<EffectId>,
}

/// A turn that has not started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct WaitingTurn {
    pub(super) number: u64,
    pub(super) cause: TurnCause,
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
    /// Candidates made so far.
    pub(super) candidates: u32,
    /// Texts of candidates that were not cancelled.
    pub(super) texts: Vec<String>,
    pub(super) structured: Option<Value>,
    /// The exchange with the model so far, after the working memory.
    pub(super) exchange: Vec<ChatMessage>,
    pub(super) tool_rounds: u32,
    /// Tool calls of the last answer that are not made yet.
    pub(super) tool_calls: VecDeque<ChatToolCall>,
    pub(super) flow_effects: u32,
    pub(super) handoffs: u32,
    /// A decision of a person or a deadline that this turn used.
    pub(super) consumed: Option<ConsumedOutcome>,
    /// The flow that spoke.
    pub(super) flow_id: Option<FlowId>,
    pub(super) flow_run: Option<RunId>,
    /// The session ends with this turn.
    pub(super) ends_session: Option<SessionEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConsumedOutcome {
    Resolved,
    TimedOut,
}

/// The flow run of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActiveFlow {
    pub(super) flow: FlowId,
    pub(super) run: RunId,
    pub(super) version: String,
    pub(super) started_at: Timestamp,
    pub(super) answers: BTreeMap<String, String>,
    /// The number of effects produced.
    pub(super) steps: u32,
    /// The effect that is performed now, as the author wrote it.
    pub(super) current: Option<Value>,
    pub(super) pause: Option<FlowPause>,
    /// The last `confirm`, for `waitFor: confirm_response`.
    pub(super) last_confirm: Option<Value>,
    pub(super) last_interrupt: Option<Value>,
    /// The escalation it opened last.
    pub(super) escalation: Option<EscalationId>,
    /// Records in its journal.
    pub(super) records: u32,
    /// The message that last advanced it.
    pub(super) last_message: Option<MessageId>,
    /// Ids the author gave.
    pub(super) client_ids: Vec<String>,
}

/// What `onResponse` is told once the texts of a turn are final.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingReport {
    pub(super) turn: u64,
    pub(super) call: CodeCall,
}

impl ChatSession {
    pub fn id(&self) -> &tandem_record::SessionId {
        &self.start.session_id
    }

    pub fn start(&self) -> &SessionStart {
        &self.start
    }

    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    pub fn last_active_at(&self) -> Timestamp {
        self.last_active_at
    }

    pub fn ended(&self) -> Option<(Timestamp, SessionEnd)> {
        self.ended
    }

    pub fn message_count(&self) -> u64 {
        self.message_count
    }

    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    pub fn flow(&self) -> Option<&ActiveFlow> {
        self.flow.as_ref()
    }

    pub fn memory(&self) -> impl Iterator<Item = &LedgerMessage> {
        self.memory.iter()
    }

    pub fn escalation(&self, id: &EscalationId) -> Option<&EscalationRecord> {
        self.escalations.get(id)
    }

    pub fn escalations(&self) -> impl Iterator<Item = &EscalationRecord> {
        self.escalations.values()
    }

    /// The next position of the log.
    pub(super) fn next_seq(&self) -> Seq {
        self.head.next()
    }

    /// A turn with this message is under way or waits.
    pub fn turn_of_message(&self, id: &MessageId) -> Option<u64> {
        let is_of = |cause: &TurnCause| cause.message().is_some_and(|m| m.message_id == *id);
        let active = self
            .turn
            .iter()
            .filter(|t| is_of(&t.cause))
            .map(|t| t.number);
        let waiting = self
            .waiting
            .iter()
            .filter(|w| is_of(&w.cause))
            .map(|w| w.number);
        active.chain(waiting).next()
    }

    /// The escalation that decides the session's mode, while it is open.
    pub fn attached_escalation(&self) -> Option<&EscalationRecord> {
        let id = self.attached.as_ref()?;
        self.escalations
            .get(id)
            .filter(|e| e.is_open() && !e.detached)
    }

    /// What a person has to do before the agent goes on, if anything.
    pub fn hitl_mode(&self) -> Option<&'static str> {
        if self.attached_escalation().is_some() {
            return Some("pending_admin_resolution");
        }
        match self.flow.as_ref()?.pause.as_ref()? {
            FlowPause::Confirm { .. } => Some("pending_confirm"),
            FlowPause::Wait { wait_for, .. } if *wait_for == WaitFor::ConfirmResponse => {
                Some("pending_confirm")
            }
            _ => None,
        }
    }
}

impl Turn {
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn trigger(&self) -> TurnTrigger {
        self.cause.trigger()
    }

    /// The text the turn is about.
    pub(super) fn text(&self) -> &str {
        self.cause.message().map_or("", |m| m.body.as_str())
    }
}

impl ActiveFlow {
    pub fn flow_id(&self) -> &FlowId {
        &self.flow
    }

    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    pub fn pause(&self) -> Option<&FlowPause> {
        self.pause.as_ref()
    }

    pub fn answers(&self) -> &BTreeMap<String, String> {
        &self.answers
    }

    /// Whether the flow waits for an answer of the user, a person or a timer.
    pub fn is_paused(&self) -> bool {
        self.pause.is_some()
    }
}
