//! The folded state of a session. [`super::evolve`] is the only place that changes it.

use super::bridge::OpenBridge;
use super::flow_state::ActiveFlow;
use super::own_sends::OwnSends;
use super::takeover_state::Takeover;
use super::turn_state::{
    Burst, HeldDraft, PendingApproval, PendingReport, StartedReport, Turn, UnsentText, WaitingTurn,
};
use super::workflow_questions::OpenWorkflowQuestion;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tandem_record::conversation::{
    AdminActor, AgentMode, ApprovalAsked, EscalationRecord, FlowPause, FlowRef, FlowStartRequest,
    LedgerMessage, QueuedMessage, SessionEnd, SessionStart, TurnCause, WaitFor,
};
use tandem_record::{EffectId, EscalationId, InterruptId, MessageId, RunId, Seq, Timestamp};

/// One conversation of one user with one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatSession {
    pub(super) head: Seq,
    pub(super) start: Arc<SessionStart>,
    pub(super) started_at: Timestamp,
    pub(super) last_at: Timestamp,
    /// The time of the last turn or message.
    pub(super) last_active_at: Timestamp,
    pub(super) ended: Option<(Timestamp, SessionEnd)>,
    pub(super) message_count: u64,
    /// A run diverged while the user wrote nothing: their next message is answered with the fallback reply.
    #[serde(default)]
    pub(super) owes_fallback: bool,
    /// The author's keys. Reserved keys follow from the rest of the state.
    pub(super) kv: BTreeMap<String, Value>,
    /// About how many bytes they take as JSON.
    pub(super) kv_bytes: usize,
    /// The last messages, for the model.
    pub(super) memory: VecDeque<Arc<LedgerMessage>>,
    /// The number of the last turn that was given out.
    pub(super) last_turn: u64,
    pub(super) turn: Option<Turn>,
    /// The turn that waits for its work while another one takes place.
    #[serde(default)]
    pub(super) aside: Option<Turn>,
    /// Turns that wait for their place, in order.
    pub(super) waiting: VecDeque<WaitingTurn>,
    /// Turns that wait for the end of a takeover, in order.
    #[serde(default)]
    pub(super) held: VecDeque<WaitingTurn>,
    /// Messages whose window is open.
    pub(super) burst: Option<Burst>,
    /// Who writes to the user, if not as the agent says.
    pub(super) mode: Option<AgentMode>,
    pub(super) flow: Option<ActiveFlow>,
    /// Runs that no longer fit their code and wait for an operator.
    pub(super) diverged: BTreeMap<RunId, ActiveFlow>,
    /// Flows of workflows that wait until no other flow is active.
    pub(super) deferred: VecDeque<FlowStartRequest>,
    /// A call of the model that waits for consent.
    pub(super) approval: Option<PendingApproval>,
    /// Texts that wait for a person's approval.
    pub(super) drafts: BTreeMap<InterruptId, HeldDraft>,
    /// How many flow runs were started: part of their ids.
    pub(super) flows_started: u64,
    pub(super) escalations: BTreeMap<EscalationId, EscalationRecord>,
    /// The escalation whose decision is pending, if that is what the session waits for.
    pub(super) attached: Option<EscalationId>,
    /// A person has the floor.
    #[serde(default)]
    pub(super) takeover: Option<Takeover>,
    /// Messages kept for the flow, or for replay when it ends.
    pub(super) queued: VecDeque<QueuedMessage>,
    /// Since when a person's answer is pending.
    pub(super) pending_since: Option<Timestamp>,
    /// The last event about a person's answer.
    pub(super) last_hitl: Option<Seq>,
    /// When the user was last told that a person is awaited.
    pub(super) last_ack_at: Option<Timestamp>,
    /// Tokens that the session's model calls used.
    pub(super) tokens: u64,
    /// Bytes of its recordings and files.
    #[serde(default)]
    pub(super) media_bytes: u64,
    /// When the user last wrote in it.
    #[serde(default)]
    pub(super) received_at: Option<Timestamp>,
    /// Texts that were queued and are not final yet.
    pub(super) unsent: BTreeMap<EffectId, UnsentText>,
    /// Texts it sent lately, for telling echoes of them from what people wrote.
    #[serde(default)]
    pub(super) own_sends: OwnSends,
    /// Turns whose texts are not all final, with what `onResponse` is to be told.
    pub(super) reports: VecDeque<PendingReport>,
    /// The report that is being made.
    pub(super) reporting: Option<StartedReport>,
    /// Questions of workflows that it shows, in the order in which they were shown.
    #[serde(default)]
    pub(super) workflow_questions: Vec<OpenWorkflowQuestion>,
    /// What relays between the user and a desk.
    #[serde(default)]
    pub(super) bridge: Option<OpenBridge>,
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

    /// How many bytes its recordings and files have.
    pub fn media_bytes(&self) -> u64 {
        self.media_bytes
    }

    /// Texts that are not final yet.
    pub fn unsent(&self) -> impl Iterator<Item = &EffectId> {
        self.unsent.keys()
    }

    /// Whether a text is not to be sent: a person took over before, or it is final.
    pub fn may_not_be_sent(&self, text: &EffectId) -> bool {
        self.unsent.get(text).is_none_or(|text| text.is_withheld)
    }

    /// When a text that is not final yet was queued.
    pub fn queued_at(&self, text: &EffectId) -> Option<Timestamp> {
        Some(self.unsent.get(text)?.queued_at)
    }

    /// About how much memory it takes.
    pub fn memory_bytes(&self) -> usize {
        let messages: usize = self.memory.iter().map(|m| m.text.len() + 160).sum();
        let keys: usize = self
            .kv
            .iter()
            .map(|(key, value)| key.len() + tandem_record::Size::of(value).memory)
            .sum();
        let exchange = self.turns_under_way().flat_map(|turn| &turn.model.exchange);
        let exchange: usize = exchange.map(|m| m.content.len() + 160).sum();
        let takeover = self.takeover.as_ref().map_or(0, |t| t.transcript_bytes);
        let kept = self
            .bridge
            .as_ref()
            .map_or(0, |open| 1_024 + open.kept_bytes());
        let people = takeover + kept + self.escalations.len() * 512;
        2_048 + self.own_sends.bytes() + messages + keys + exchange + people
    }

    /// Whether a turn has ended, or never began. Nobody waits for one that a takeover holds back.
    pub fn is_turn_over(&self, number: u64) -> bool {
        let is_it = |turn: &Turn| turn.number == number;
        let is_under_way = self.turns_under_way().any(is_it);
        let waits = self.waiting.iter().any(|waiting| waiting.number == number)
            || self.burst.as_ref().is_some_and(|b| b.number == number);
        !is_under_way && (!waits || self.ended.is_some())
    }

    /// Since when a person has to do something before the agent goes on.
    pub fn pending_since(&self) -> Option<Timestamp> {
        self.pending_since
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

    /// When the user last wrote, in this session or before it.
    pub fn last_received_at(&self) -> Option<Timestamp> {
        self.received_at.or(self.start.last_received_at)
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
        self.memory.iter().map(|message| &**message)
    }

    /// Whether a message is among the last ones.
    pub fn remembers(&self, id: &MessageId) -> bool {
        let mut last = self.memory.iter().rev();
        last.any(|message| message.id == id.as_str())
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
        let is_of = |cause: &TurnCause| cause.message_ids().contains(id);
        let is_held = |b: &&Burst| b.messages.iter().any(|m| m.message_id == *id);
        let held = self.burst.iter().filter(is_held).map(|b| b.number);
        let active = self
            .turns_under_way()
            .filter(|t| is_of(&t.cause))
            .map(|t| t.number);
        let waiting = self
            .waiting
            .iter()
            .filter(|w| is_of(&w.cause))
            .map(|w| w.number);
        active.chain(waiting).chain(held).next()
    }

    /// Tokens that the session's model calls used.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Who writes to the user in this session, if it was set.
    pub fn mode(&self) -> Option<AgentMode> {
        self.mode
    }

    /// Texts that wait for a person's approval.
    pub fn drafts(&self) -> impl Iterator<Item = (&InterruptId, &HeldDraft)> {
        self.drafts.iter()
    }

    /// Runs that no longer fit their code and wait for an operator.
    pub fn diverged(&self) -> impl Iterator<Item = &ActiveFlow> {
        self.diverged.values()
    }

    /// The diverged run that waits at this interrupt.
    pub(super) fn diverged_wait(&self, interrupt: &InterruptId) -> Option<FlowRef> {
        let waits = |flow: &&ActiveFlow| {
            let pause = flow.pause.as_ref();
            pause.is_some_and(|pause| pause.interrupt_id() == interrupt)
        };
        self.diverged().find(waits).map(ActiveFlow::reference)
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
        if self.takeover.is_some() {
            return Some("live_takeover");
        }
        if self.attached_escalation().is_some() {
            return Some("pending_admin_resolution");
        }
        if let Some(approval) = &self.approval
            && let ApprovalAsked::User { .. } = approval.request.asked
        {
            return Some("pending_confirm");
        }
        match self.flow.as_ref().and_then(|flow| flow.pause.as_ref()) {
            Some(FlowPause::Confirm { .. }) => Some("pending_confirm"),
            Some(FlowPause::Wait { wait_for, .. }) if *wait_for == WaitFor::ConfirmResponse => {
                Some("pending_confirm")
            }
            _ => self.bridge.as_ref().map(|_| "proxy"),
        }
    }
}
