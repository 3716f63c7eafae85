//! What is stored of conversations: the events of a session, the commands it takes, and the work it
//! requests from outside.
//!
//! Field names of events are those of the conversational surface, in camelCase, so that a reader of
//! a stored event and a reader of a sent one see the same words.

mod agent_summary;
mod approval;
mod candidate;
mod chat_user;
mod command;
mod escalation;
mod flow_control;
mod journal;
mod ledger;
mod message;
mod session_event;
mod session_kinds;
mod session_view;
mod turn;
mod turn_work;

pub use agent_summary::{AgentFileError, AgentStatus, AgentSummary, FlowSummary};
pub use approval::{AgentMode, ApprovalAsked, ApprovalRequest, DraftDecision, DraftOutcome};
pub use candidate::{Candidate, CandidateOrigin, IntentStatus, Modality, ResponseSource};
pub use chat_user::{
    ChatUserCommand, ChatUserEvent, ChatUserReply, FirstContact, ListedChatUser, ProfileChange,
};
pub use command::{
    AdminRequest, DivergenceAction, EscalationDecision, OnActiveFlow, SessionCommand, SessionReply,
    SessionTimer,
};
pub use escalation::{
    ClosedEscalation, EscalationMode, EscalationPriority, EscalationRecord, EscalationResolution,
    EscalationStatus, EscalationVote, OpenEscalation,
};
pub use flow_control::{
    ConfirmOutcome, FlowFailure, FlowOrigin, FlowPause, FlowRef, ParentNode, ResumedBy, WaitFor,
    WaitingSession, WorkflowResult,
};
pub use journal::{FlowRecord, FlowRunStart};
pub use ledger::{OutboxIntent, SessionLedger};
pub use message::{
    AdminActor, Author, ChatUser, InboundMessage, LedgerMessage, MessageRole, SenderProfile,
    UserConsent,
};
pub use session_event::{SessionEvent, SessionEventBody};
pub use session_kinds::{
    AuthorizationDecision, HookStage, RouterReason, SessionEnd, SessionStart, TurnOutcome,
    TurnTrigger,
};
pub use session_view::{ActiveFlowView, HitlView, SessionView};
pub use turn::{FlowStartRequest, QueuedMessage, RequestedWork, TurnCause, WorkPurpose};
pub use turn_work::{
    ChatAnswer, ChatMessage, ChatRole, ChatToolCall, CodeCall, CodeError, CodeOutcome, FlowReport,
    ModelPurpose, SendRequest, SessionWork, SideMessage, WorkOutcome, WorkflowStart,
};

#[cfg(test)]
mod tests;
