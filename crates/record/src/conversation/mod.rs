//! What is stored of conversations: the events of a session, the commands it takes, and the work it
//! requests from outside.
//!
//! Field names of events are those of the conversational surface, in camelCase, so that a reader of
//! a stored event and a reader of a sent one see the same words.

mod agent_summary;
mod candidate;
mod chat_user;
mod command;
mod escalation;
mod flow_control;
mod journal;
mod ledger;
mod message;
mod session_event;
mod session_view;
mod turn;
mod turn_work;

pub use agent_summary::{AgentFileError, AgentStatus, AgentSummary, FlowSummary};
pub use candidate::{Candidate, CandidateOrigin, IntentStatus, ResponseSource};
pub use chat_user::{
    ChatUserCommand, ChatUserEvent, ChatUserReply, FirstContact, ListedChatUser, ProfileChange,
};
pub use command::{AdminRequest, EscalationDecision, SessionCommand, SessionReply, SessionTimer};
pub use escalation::{
    ClosedEscalation, EscalationMode, EscalationPriority, EscalationRecord, EscalationResolution,
    EscalationStatus,
};
pub use flow_control::{
    ConfirmOutcome, FlowFailure, FlowOrigin, FlowPause, FlowRef, ResumedBy, WaitFor,
};
pub use journal::{FlowRecord, FlowRunStart};
pub use ledger::{OutboxIntent, SessionLedger};
pub use message::{
    AdminActor, Author, ChatUser, InboundMessage, LedgerMessage, MessageRole, SenderProfile,
};
pub use session_event::{
    AuthorizationDecision, HookStage, RouterReason, SessionEnd, SessionEvent, SessionEventBody,
    SessionStart, TurnOutcome, TurnTrigger,
};
pub use session_view::{ActiveFlowView, HitlView, SessionView};
pub use turn::{QueuedMessage, RequestedWork, TurnCause, WorkPurpose};
pub use turn_work::{
    ChatAnswer, ChatMessage, ChatRole, ChatToolCall, CodeCall, CodeError, CodeOutcome,
    ModelPurpose, SendRequest, SessionWork, SideMessage, WorkOutcome,
};

#[cfg(test)]
mod tests;
