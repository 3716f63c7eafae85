//! What is stored of conversations: the events of a session, the commands it takes, and the work it
//! requests from outside.
//!
//! Field names of events are those of the conversational surface, in camelCase, so that a reader of
//! a stored event and a reader of a sent one see the same words.

mod agent_level_event;
mod agent_summary;
mod approval;
mod candidate;
mod chat_user;
mod command;
mod escalation;
mod flow_control;
mod journal;
mod ledger;
mod media;
mod message;
mod proxy;
mod schedule;
mod schedule_command;
mod schedule_event;
mod session_event;
mod session_event_frame;
mod session_kinds;
mod session_view;
mod takeover;
mod turn;
mod turn_work;

pub use agent_level_event::{
    AgentLevelEvent, AgentLevelEventBody, InboundRefusal, ProviderCircuit, ProviderCircuitChange,
};
pub use agent_summary::{AgentFileError, AgentStatus, AgentSummary, FlowSummary};
pub use approval::{AgentMode, ApprovalAsked, ApprovalRequest, DraftDecision, DraftOutcome};
pub use candidate::{
    Candidate, CandidateOrigin, IntentStatus, Modality, ResponseMeta, ResponseSource,
};
pub use chat_user::{
    ChatUserCommand, ChatUserEvent, ChatUserReply, FirstContact, ListedChatUser, ProfileChange,
};
pub use command::{
    AdminRequest, DeskAction, DivergenceAction, EscalationDecision, Nondeterminism, OnActiveFlow,
    SessionCommand, SessionReply, SessionTimer,
};
pub use escalation::{
    ClosedEscalation, EscalationHolder, EscalationMode, EscalationPriority, EscalationRecord,
    EscalationResolution, EscalationStatus, EscalationVote, OpenEscalation, RestartedTimeout,
    StoppedTimeout,
};
pub use flow_control::{
    ClosedWorkflowQuestion, ConfirmOutcome, FlowCall, FlowFailure, FlowOrigin, FlowPause, FlowRef,
    FlowTarget, ParentNode, ResumedBy, WaitFor, WaitingSession, WorkflowAnswer, WorkflowQuestion,
    WorkflowResult,
};
pub use journal::{FlowRecord, FlowRunStart};
pub use ledger::{OutboxIntent, SessionLedger, WINDOW_CLOSED};
pub use media::{MediaRef, SentMessage};
pub use message::{
    AdminActor, Author, ChatUser, InboundMessage, LedgerMessage, MessageRole, SenderProfile,
    UserConsent,
};
pub use proxy::{
    ProxyBridge, ProxyDirection, ProxyFlags, ProxyInput, ProxyInputSource, ProxyMode, ProxyStatus,
    ProxyTimeoutBehavior, ProxyTimeoutScope,
};
pub use schedule::{
    CampaignTarget, MissedPolicy, OnMissed, OutcomeCounts, RecipientRecord, ScheduleDefinition,
    ScheduleOrigin, SchedulePlane, ScheduleRecord, ScheduleRunRecord, ScheduleStatus,
    ScheduleTarget, ScheduleTrigger, ScheduledActiveFlow, ScheduledOutcome, SegmentSelector,
    UserTarget,
};
pub use schedule_command::{
    ScheduleCommand, ScheduleRef, ScheduleTimer, ScheduleToolCall, ScheduleToolOperation,
    ScheduleWork, ScheduledStart, ScheduledTurn, ScheduledTurnReport,
};
pub use schedule_event::{RunLimits, ScheduleEvent, ScheduleEventBody};
pub use session_event::SessionEventBody;
pub use session_event_frame::SessionEvent;
pub use session_kinds::{
    AuthorizationDecision, EarlierSession, HookStage, RouterReason, SessionEnd, SessionStart,
    TurnOutcome, TurnTrigger,
};
pub use session_view::{ActiveFlowView, HitlView, SessionView};
pub use takeover::{
    EndedTakeover, ForwardedText, TakeoverDirection, TakeoverEndReason, TakeoverEnding,
    TakeoverOrigin,
};
pub use turn::{FlowStartRequest, QueuedMessage, RequestedWork, TurnCause, WorkPurpose};
pub use turn_work::{
    ChatAnswer, ChatMessage, ChatRole, ChatToolCall, CodeCall, CodeError, CodeOutcome, FlowReport,
    ModelPurpose, NoticeRequest, NoticeSubject, SendRequest, SessionWork, SideMessage, WorkOutcome,
    WorkflowStart,
};

#[cfg(test)]
mod tests;
