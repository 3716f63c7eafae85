//! The events of a session. Past tense, append-only, enough to rebuild the session's whole state.

use super::{
    AgentMode, ApprovalRequest, AuthorizationDecision, Candidate, ChatAnswer, CodeCall, CodeError,
    ConfirmOutcome, DraftOutcome, EndedTakeover, EscalationRecord, EscalationResolution,
    EscalationVote, FlowFailure, FlowOrigin, FlowPause, ForwardedText, HookStage, InboundMessage,
    LedgerMessage, MediaRef, ModelPurpose, ParentNode, ProfileChange, ProxyBridge, ProxyDirection,
    ProxyInput, ProxyTimeoutBehavior, ProxyTimeoutScope, RequestedWork, ResponseSource,
    RestartedTimeout, ResumedBy, RouterReason, ScheduleToolOperation, SessionEnd, SessionStart,
    StoppedTimeout, TakeoverDirection, TakeoverOrigin, TurnCause, TurnOutcome, TurnTrigger,
    WaitFor, WorkflowQuestion, WorkflowResult,
};
use crate::{EffectId, EscalationId, FlowId, InterruptId, MessageId, ProxyId, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum SessionEventBody {
    SessionStarted(Box<SessionStart>),
    /// A message of the user was accepted. It is processed in a turn of its own, or with others that
    /// arrive before `held_until`.
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
    WorkFinished {
        effect_id: EffectId,
    },
    CommandHandled {
        name: String,
    },
    /// The decision of a hook, as the turn uses it.
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
    FlowDiverged {
        step: u32,
        expected: Value,
        actual: Value,
        code_hash: String,
    },
    FlowEffectIgnored {
        effect: Value,
    },
    /// Strict mode ran the code again from its journal, and it did something else.
    FlowNondeterministic {
        step: u32,
        expected: Value,
        actual: Value,
        code_hash: String,
    },
    /// An operator made a diverged run the active flow again, or gave it up.
    DivergenceSettled {
        flow_run_id: RunId,
        retried: bool,
    },
    /// A flow of a workflow waits until no other flow is active.
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
    WorkflowFinishedEarly {
        interrupt_id: InterruptId,
        result: WorkflowResult,
    },
    /// The session shows a question of a workflow: to the user, or as an escalation.
    WorkflowQuestionOpened {
        /// The wait of the flow that started the workflow.
        wait: InterruptId,
        question: Box<WorkflowQuestion>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        escalation_id: Option<EscalationId>,
    },
    /// The user answered one part of it.
    WorkflowQuestionAnswered {
        interrupt_id: InterruptId,
        key: String,
        value: Value,
    },
    /// The workflow did not take the answers: the user is asked again.
    WorkflowAnswerRefused {
        interrupt_id: InterruptId,
        reason: String,
    },
    WorkflowQuestionClosed {
        interrupt_id: InterruptId,
        outcome: String,
    },
    InterruptPaused {
        interrupt_id: InterruptId,
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_for: Option<WaitFor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    InterruptResumed {
        interrupt_id: InterruptId,
        kind: String,
        by: ResumedBy,
        outcome: String,
        /// The reply that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    InterruptLate {
        interrupt_id: InterruptId,
    },
    ConfirmRequested {
        interrupt_id: InterruptId,
        question: String,
        deadline: Timestamp,
        has_schema: bool,
    },
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
    ConfirmTimedOut {
        interrupt_id: InterruptId,
        deadline: Timestamp,
        behavior: String,
    },
    ConfirmUnrecognized {
        interrupt_id: InterruptId,
        text: String,
        attempt: u32,
        /// Whether it counts against the number of reprompts.
        counted: bool,
    },
    /// A reminder of the open question was sent.
    ReminderSent {
        interrupt_id: InterruptId,
        index: u32,
    },
    /// A call of the model waits for somebody's consent.
    ApprovalRequested(Box<ApprovalRequest>),
    /// That call was allowed, with these arguments, or refused.
    ApprovalDecided {
        call_id: String,
        approved: bool,
    },
    EscalationCreated(Box<EscalationRecord>),
    /// One of several approvals that an escalation needs.
    EscalationVoted {
        escalation_id: EscalationId,
        vote: EscalationVote,
    },
    /// An admin works on it from now on.
    EscalationClaimed {
        escalation_id: EscalationId,
        by: String,
        /// Its time stops until somebody else has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped: Option<StoppedTimeout>,
        /// What is left of the own time of the flow's wait for it, where that stops too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_left_ms: Option<u64>,
    },
    /// It is nobody's work any more.
    EscalationReleased {
        escalation_id: EscalationId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restarted: Option<RestartedTimeout>,
    },
    /// It is the work of somebody who has not claimed it yet.
    EscalationAssigned {
        escalation_id: EscalationId,
        assignee: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restarted: Option<RestartedTimeout>,
    },
    EscalationResolved {
        escalation_id: EscalationId,
        resolution: EscalationResolution,
        detached: bool,
    },
    EscalationTimedOut {
        escalation_id: EscalationId,
        deadline: Timestamp,
    },
    EscalationCanceled {
        escalation_id: EscalationId,
        reason: String,
    },
    /// The flow that opened it has ended.
    EscalationDetached {
        escalation_id: EscalationId,
    },
    /// A person has the floor from here on: nothing of the agent is sent.
    LiveTakeoverStarted {
        escalation_id: EscalationId,
        by: TakeoverOrigin,
        /// The takeover ends when the person gives no sign for so long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_handback_ms: Option<u64>,
    },
    /// The user wrote to the person, or the person to the user.
    LiveTakeoverMessage {
        direction: TakeoverDirection,
        message_id: MessageId,
    },
    /// A message of the user is passed on to the chat of the desk.
    LiveTakeoverForwarded(Box<ForwardedText>),
    /// The agent may speak again.
    LiveTakeoverEnded(Box<EndedTakeover>),
    /// Somebody answered the user from the agent's own account, past this host.
    ExternalReplyRecorded {
        message_id: MessageId,
        message: Box<LedgerMessage>,
    },
    /// A bridge to a desk, which relays from now on.
    ProxyStarted {
        bridge: Box<ProxyBridge>,
        /// The bridge whose place it takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<ProxyId>,
    },
    /// Somebody with the right wrote for a bridge.
    ProxyInputReceived {
        proxy_id: ProxyId,
        target: String,
        input: Box<ProxyInput>,
        /// It waits until the flow waits for input.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        kept: bool,
    },
    /// Input that was kept is used, or refused by the flow.
    ProxyInputTaken {
        proxy_id: ProxyId,
        input_id: MessageId,
    },
    /// A text is on its way to the other side.
    ProxyForwarded {
        proxy_id: ProxyId,
        direction: ProxyDirection,
        source_message_id: MessageId,
        /// The flow changed what was written.
        modified: bool,
        effect_id: EffectId,
    },
    ProxyTimedOut {
        proxy_id: ProxyId,
        scope: ProxyTimeoutScope,
        /// Of the flow's wait, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        behavior: Option<ProxyTimeoutBehavior>,
    },
    ProxyStopped {
        proxy_id: ProxyId,
        reason: String,
    },
    /// A message arrived while an admin's decision was pending.
    PendingMessage {
        message_id: MessageId,
        behavior: String,
    },
    /// Queued messages that no later turn replays.
    QueueConsumed {
        message_ids: Vec<MessageId>,
    },
    ResponsePrepared {
        candidate: Candidate,
        source: ResponseSource,
    },
    /// The text a candidate is sent with, and the message of the ledger.
    ResponseQueued {
        effect_id: EffectId,
        to: String,
        message: LedgerMessage,
        candidate: Candidate,
        remembered: bool,
        /// Where it is not sent by the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<String>,
    },
    /// A text waits for a person's approval.
    DraftHeld {
        draft_id: InterruptId,
        candidate: Candidate,
    },
    DraftDecided {
        draft_id: InterruptId,
        outcome: DraftOutcome,
    },
    ResponseCanceled {
        index: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    ResponseSuppressed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect_id: Option<EffectId>,
        reason: String,
    },
    ResponseSent {
        effect_id: EffectId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_message_id: Option<String>,
        /// The ids of the further messages of a text that was sent as several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        further_ids: Vec<String>,
        /// The speech that was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        speech: Option<MediaRef>,
        /// The network's template that was sent instead of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<String>,
    },
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
    /// A tool call reached for schedules that are not the user's.
    ScheduleScopeDenied {
        operation: ScheduleToolOperation,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule_id: Option<String>,
        offending_fields: Vec<String>,
    },
    /// A text was given up after all attempts.
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
