//! The folded state of a session. [`super::evolve`] is the only place that changes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use tandem_record::conversation::{
    AdminActor, ChatMessage, ChatToolCall, CodeCall, EscalationRecord, FlowPause, LedgerMessage,
    QueuedMessage, RequestedWork, ResponseSource, SessionEnd, SessionStart, TurnCause, TurnTrigger,
    WaitFor,
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
    /// The admin whose command it carries out.
    pub(super) actor: Option<AdminActor>,
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

    /// The session after its first event.
    pub fn started(start: SessionStart, at: Timestamp) -> Self {
        Self::new(start, at)
    }

    /// The last event folded in.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Texts are not final yet, or a report about them is due.
    pub fn has_deliveries(&self) -> bool {
        !self.unsent.is_empty() || !self.reports.is_empty() || self.reporting.is_some()
    }

    /// Texts that are not final yet.
    pub fn unsent(&self) -> impl Iterator<Item = &EffectId> {
        self.unsent.keys()
    }

    /// About how much memory it takes.
    pub fn memory_bytes(&self) -> usize {
        let messages: usize = self.memory.iter().map(|m| m.text.len() + 160).sum();
        let keys: usize = self
            .kv
            .iter()
            .map(|(key, value)| key.len() + tandem_record::Size::of(value).memory)
            .sum();
        let exchange = self.turn.as_ref().map_or(0, |turn| {
            let messages = turn.exchange.iter();
            messages.map(|m| m.content.len() + 160).sum::<usize>()
        });
        2_048 + messages + keys + exchange + self.escalations.len() * 512
    }

    /// Whether a turn has ended, or never began.
    pub fn is_turn_over(&self, number: u64) -> bool {
        let is_it = |turn: &Turn| turn.number == number;
        let is_under_way = self.turn.as_ref().is_some_and(is_it);
        let waits = self.waiting.iter().any(|waiting| waiting.number == number);
        !is_under_way && (!waits || self.ended.is_some())
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

    /// The admin whose command the turn under way carries out.
    pub fn acting_admin(&self) -> Option<&AdminActor> {
        self.turn.as_ref()?.actor.as_ref()
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

    /// The number of effects it has produced.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Whether the flow waits for an answer of the user, a person or a timer.
    pub fn is_paused(&self) -> bool {
        self.pause.is_some()
    }
}
