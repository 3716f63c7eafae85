//! The events of a session. Past tense, append-only, enough to rebuild the session's whole state.

use super::{
    AdminActor, AgentMode, ApprovalRequest, AuthorizationDecision, Candidate, ChatAnswer, CodeCall,
    CodeError, ConfirmOutcome, DraftOutcome, EscalationRecord, EscalationResolution,
    EscalationVote, FlowFailure, FlowOrigin, FlowPause, FlowRef, HookStage, InboundMessage,
    LedgerMessage, ModelPurpose, ParentNode, ProfileChange, RequestedWork, ResponseSource,
    ResumedBy, RouterReason, SessionEnd, SessionStart, TurnCause, TurnOutcome, TurnTrigger,
    WaitFor, WorkflowResult,
};
use crate::{EffectId, EscalationId, FlowId, InterruptId, MessageId, RunId, Timestamp};
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
    /// Apart from the rest: fields of bodies may have the same names.
    pub body: SessionEventBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum SessionEventBody {
    SessionStarted(Box<SessionStart>),
    /// A message of the user was accepted. It is processed in a turn of its own, or with others that
    /// arrive before `held_until`.
    #[serde(rename_all = "camelCase")]
    MessageReceived {
        message: Box<InboundMessage>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_until: Option<Timestamp>,
    },
    /// The messages that were held become one turn.
    BurstClosed,
    /// What was said in a message became text; `None` when it could not be read.
    MessageTranscribed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
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
    /// A turn that waited does not take place: the session has ended.
    #[serde(rename_all = "camelCase")]
    TurnDropped {
        number: u64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        message_ids: Vec<MessageId>,
        reason: String,
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
    /// The user's profile changed in this session.
    ProfileChanged(Box<ProfileChange>),
    /// Who writes to the user in this session, whatever the agent's own mode is.
    ModeChanged {
        mode: AgentMode,
    },
    #[serde(rename_all = "camelCase")]
    RouterDecided {
        mode: String,
        /// Stored under another name than the common field of every event.
        #[serde(rename = "namedFlow", default, skip_serializing_if = "Option::is_none")]
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
        /// The node of a workflow that waits for the end of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ParentNode>,
        /// 1, and one more for each time it was started again after a divergence.
        attempt: u32,
    },
    FlowStartRefused {
        reason: String,
    },
    /// The flow produced an effect; it is performed now.
    #[serde(rename_all = "camelCase")]
    FlowEffectStarted {
        step: u32,
        effect: Value,
        /// Context calls since the effect before it.
        #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
        host_calls: u32,
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
    /// An operator made a diverged run the active flow again, or gave it up.
    #[serde(rename_all = "camelCase")]
    DivergenceSettled {
        flow_run_id: RunId,
        retried: bool,
    },
    /// A flow of a workflow waits until no other flow is active.
    #[serde(rename_all = "camelCase")]
    FlowStartDeferred {
        flow_id: FlowId,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        input: Option<Value>,
        parent: ParentNode,
    },
    /// The workflow of a deferred flow does not wait for it any more.
    FlowStartWithdrawn {
        parent: ParentNode,
    },
    /// A workflow ended before the flow that started it came to wait for it.
    #[serde(rename_all = "camelCase")]
    WorkflowFinishedEarly {
        interrupt_id: InterruptId,
        result: WorkflowResult,
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
        /// The reply that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
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
    /// A reminder of the open question was sent.
    #[serde(rename_all = "camelCase")]
    ReminderSent {
        interrupt_id: InterruptId,
        index: u32,
    },
    /// A call of the model waits for somebody's consent.
    ApprovalRequested(Box<ApprovalRequest>),
    /// That call was allowed, with these arguments, or refused.
    #[serde(rename_all = "camelCase")]
    ApprovalDecided {
        call_id: String,
        approved: bool,
    },
    EscalationCreated(Box<EscalationRecord>),
    /// One of several approvals that an escalation needs.
    #[serde(rename_all = "camelCase")]
    EscalationVoted {
        escalation_id: EscalationId,
        vote: EscalationVote,
    },
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
    /// A text waits for a person's approval.
    #[serde(rename_all = "camelCase")]
    DraftHeld {
        draft_id: InterruptId,
        candidate: Candidate,
    },
    #[serde(rename_all = "camelCase")]
    DraftDecided {
        draft_id: InterruptId,
        outcome: DraftOutcome,
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
    /// Something on the way to a response failed.
    ResponseFailed {
        stage: String,
        reason: String,
        /// The turn has no other answer than the fallback reply.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fatal: bool,
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
