//! The events of a session. Past tense, append-only, enough to rebuild the session's whole state.

use super::{
    AdminActor, Candidate, ChatAnswer, ChatUser, CodeCall, CodeError, ConfirmOutcome,
    EscalationRecord, EscalationResolution, FlowFailure, FlowOrigin, FlowPause, FlowRef,
    InboundMessage, LedgerMessage, ModelPurpose, RequestedWork, ResponseSource, ResumedBy,
    TurnCause, WaitFor,
};
use crate::{
    AgentId, EffectId, EscalationId, FlowId, InterruptId, MessageId, Owner, SessionId, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event with what most events share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// The turn it belongs to, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AdminActor>,
    #[serde(flatten)]
    pub body: SessionEventBody,
}

/// What a new session begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart {
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub owner: Owner,
    pub user: ChatUser,
    /// The transport the user writes by.
    pub transport: String,
    /// The user's address there.
    pub address: String,
    /// Text to greet a new user with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub welcome: Option<String>,
    /// The session ends when nothing happens for so long.
    pub idle_timeout_ms: u64,
}

/// Why a turn exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnTrigger {
    Inbound,
    Scheduled,
    Resolution,
    Handback,
    ProxyInput,
    Timer,
    QueueReplay,
    Workflow,
    /// An admin started or aborted a flow.
    Admin,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TurnOutcome {
    Processed,
    /// A hook ended the turn.
    EndedByPolicy {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Failed {
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookStage {
    #[serde(rename = "beforeLLM")]
    BeforeLlm,
    #[serde(rename = "beforeResponse")]
    BeforeResponse,
    #[serde(rename = "onResponse")]
    OnResponse,
}

impl HookStage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeLlm => "beforeLLM",
            Self::BeforeResponse => "beforeResponse",
            Self::OnResponse => "onResponse",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouterReason {
    Selected,
    LowConfidence,
    UnknownFlow,
    ParseError,
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    Idle,
    Reset,
    /// The model or the agent's code ended it.
    Agent,
    Api,
}

/// Whether an actor was allowed an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationDecision {
    pub granted: bool,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AdminActor>,
    /// What identified nobody, hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_id: Option<EscalationId>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub adapter: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum SessionEventBody {
    SessionStarted(Box<SessionStart>),
    /// A message of the user was accepted. It is processed in a turn of its own.
    MessageReceived {
        message: Box<InboundMessage>,
    },
    #[serde(rename_all = "camelCase")]
    TurnStarted {
        trigger: TurnTrigger,
        /// The messages it answers, in order of arrival.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        message_ids: Vec<MessageId>,
        /// The model remembers the message. It does not remember commands.
        remembered: bool,
    },
    /// A turn waits for its place: a deadline passed, a person decided.
    TurnQueued {
        cause: TurnCause,
    },
    TurnEnded(TurnOutcome),
    /// A turn requested work from outside and waits for it.
    WorkRequested(Box<RequestedWork>),
    /// The outcome of that work arrived.
    #[serde(rename_all = "camelCase")]
    WorkFinished {
        effect_id: EffectId,
    },
    CommandHandled {
        name: String,
    },
    /// The decision of a hook, as the turn uses it.
    #[serde(rename_all = "camelCase")]
    HookDecided {
        stage: HookStage,
        decision: Value,
    },
    ModelAnswered {
        purpose: ModelPurpose,
        answer: Box<ChatAnswer>,
    },
    ModelFailed {
        purpose: ModelPurpose,
        error: CodeError,
    },
    /// A tool of the model loop answered.
    #[serde(rename_all = "camelCase")]
    ToolAnswered {
        call_id: String,
        name: String,
        /// What the model is told.
        content: String,
        failed: bool,
    },
    /// A key of the session was set, or deleted when `value` is absent.
    KvChanged {
        key: String,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Value>,
    },
    /// The user chose a setting.
    PreferenceChanged {
        key: String,
        value: Value,
    },
    #[serde(rename_all = "camelCase")]
    RouterDecided {
        mode: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
        reason: RouterReason,
        fallback_used: bool,
    },
    FlowStarted {
        origin: FlowOrigin,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        input: Option<Value>,
        version: String,
    },
    FlowStartRefused {
        reason: String,
    },
    /// The flow produced an effect; it is performed now.
    #[serde(rename_all = "camelCase")]
    FlowEffectStarted {
        step: u32,
        effect: Value,
    },
    FlowPaused {
        pause: FlowPause,
    },
    FlowResumed {
        by: ResumedBy,
        /// The user's answer to an `ask`, kept under its key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<(String, String)>,
    },
    FlowHandoff {
        to: FlowId,
    },
    FlowEnded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    FlowFailed {
        error: FlowFailure,
    },
    #[serde(rename_all = "camelCase")]
    FlowDiverged {
        step: u32,
        expected: Value,
        actual: Value,
        code_hash: String,
    },
    FlowEffectIgnored {
        effect: Value,
    },
    #[serde(rename_all = "camelCase")]
    InterruptPaused {
        interrupt_id: InterruptId,
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_for: Option<WaitFor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    #[serde(rename_all = "camelCase")]
    InterruptResumed {
        interrupt_id: InterruptId,
        kind: String,
        by: ResumedBy,
        outcome: String,
    },
    #[serde(rename_all = "camelCase")]
    InterruptLate {
        interrupt_id: InterruptId,
    },
    #[serde(rename_all = "camelCase")]
    ConfirmRequested {
        interrupt_id: InterruptId,
        question: String,
        deadline: Timestamp,
        has_schema: bool,
    },
    #[serde(rename_all = "camelCase")]
    ConfirmResolved {
        interrupt_id: InterruptId,
        decision: ConfirmOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        text: String,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Value>,
    },
    #[serde(rename_all = "camelCase")]
    ConfirmTimedOut {
        interrupt_id: InterruptId,
        deadline: Timestamp,
        behavior: String,
    },
    #[serde(rename_all = "camelCase")]
    ConfirmUnrecognized {
        interrupt_id: InterruptId,
        text: String,
        attempt: u32,
        /// Whether it counts against the number of reprompts.
        counted: bool,
    },
    EscalationCreated(Box<EscalationRecord>),
    #[serde(rename_all = "camelCase")]
    EscalationResolved {
        escalation_id: EscalationId,
        resolution: EscalationResolution,
        detached: bool,
    },
    #[serde(rename_all = "camelCase")]
    EscalationTimedOut {
        escalation_id: EscalationId,
        deadline: Timestamp,
    },
    #[serde(rename_all = "camelCase")]
    EscalationCanceled {
        escalation_id: EscalationId,
        reason: String,
    },
    /// The flow that opened it has ended.
    #[serde(rename_all = "camelCase")]
    EscalationDetached {
        escalation_id: EscalationId,
    },
    /// A message arrived while an admin's decision was pending.
    #[serde(rename_all = "camelCase")]
    PendingMessage {
        message_id: MessageId,
        behavior: String,
    },
    /// Queued messages that no later turn replays.
    #[serde(rename_all = "camelCase")]
    QueueConsumed {
        message_ids: Vec<MessageId>,
    },
    ResponsePrepared {
        candidate: Candidate,
        source: ResponseSource,
    },
    /// The text a candidate is sent with, and the message of the ledger.
    #[serde(rename_all = "camelCase")]
    ResponseQueued {
        effect_id: EffectId,
        to: String,
        message: LedgerMessage,
        candidate: Candidate,
        remembered: bool,
    },
    ResponseCanceled {
        index: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    ResponseSuppressed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect_id: Option<EffectId>,
        reason: String,
    },
    #[serde(rename_all = "camelCase")]
    ResponseSent {
        effect_id: EffectId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_message_id: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    ResponsePersisted {
        effect_id: EffectId,
    },
    ResponseFailed {
        stage: String,
        reason: String,
    },
    AuthorizationDecided(Box<AuthorizationDecision>),
    /// A text was given up after all attempts.
    #[serde(rename_all = "camelCase")]
    SendFailed {
        effect_id: EffectId,
        reason: String,
    },
    /// The response of a turn is reported to the agent's code once its texts are final.
    ReportQueued {
        call: CodeCall,
    },
    /// The session ends when its turn ends.
    SessionEndRequested {
        reason: SessionEnd,
    },
    SessionEnded {
        reason: SessionEnd,
    },
}
