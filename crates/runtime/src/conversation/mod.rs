//! Conversations as machines of this runtime: sessions (`conv:`), flow runs (`run:flow-`), users (`user:`)
//! and schedules (`when:`).
//!
//! Owns: accepting messages, deciding with the code of flows, performing the work that sessions request through
//! the host's agents ([`AgentHost`]), and the rows of sessions, escalations and users. The rules are those of
//! `engine/src/session/`.
//!
//! Invariants:
//! - A message is accepted in the commit that claims its id.
//! - What a session decides about a flow is in the flow's journal in the same commit.
//! - A program that a decision resumed is used again only after the commit of that decision.

mod admin_commands;
mod agent_host;
mod agent_journal;
mod answer_pieces;
mod bridges;
mod compared_answers;
mod earlier_sessions;
mod flow_run_driver;
mod fork_flow_run;
mod media;
mod metrics;
mod network;
mod notice_content;
mod programs;
mod read_session;
mod rebuild_session;
mod receive;
mod recorded_tools;
mod redact_request;
mod run_notices;
mod schedule_driver;
mod schedule_rows;
mod schedule_work;
mod schedules;
mod send_retry;
mod session_access;
mod session_audit;
mod session_driver;
mod session_machine;
mod session_notices;
mod session_questions;
mod session_retention;
mod session_rows;
mod session_send;
mod session_work;
mod settings;
mod stored_program;
mod strict_mode;
mod takeover;
mod test_seams;
mod user_driver;
mod workflow_calls;
mod workflow_flows;

pub use agent_host::{
    AgentHost, CallContext, ChatModelRequest, FilterFailure, FlowProgram, NoticePlace,
    OutgoingMessage, RebuildError, SendError, TakenMessage,
};
pub(crate) use agent_journal::AgentLogs;
pub use answer_pieces::{AnswerPiece, AnswerPieces, AnswerReader};
pub use bridges::{DeskMessage, DeskQuery, ReceivedInput, is_target};
pub use compared_answers::{AgentAnswer, ComparedAnswer, MAX_COMPARED};
pub use media::{MAX_MEDIA_BYTES, MediaContent};
pub use metrics::ConversationMetrics;
pub use network::{
    LifeSign, LifeSignKind, NetworkDecision, NoticeContent, NoticeDecision, NoticeQuestion,
    OwnAccountMessage, QuestionNotice, ShownDecision, TransportDelivery, TransportMessage,
    TransportRefusal, TransportRequest,
};
pub use read_session::SessionEventPage;
pub use rebuild_session::{SessionComparison, SessionDifference};
pub use receive::{MessageClaim, NewMessage, OVERLOADED, ReceivedMessage};
pub(crate) use run_notices::NoticeOutcome;
pub(crate) use schedules::CONFIGURED_TENANT;
pub use session_access::{
    AgentEventPage, LoggedAgentEvent, LoggedScheduleEvent, LoggedSessionEvent,
};
pub use session_machine::{SessionAnswer, SessionMachine};
pub(crate) use session_retention::SessionPurgeCursors;
pub use session_work::SessionOutcome;
pub(crate) use settings::schedule_driver;
pub use settings::{Conversations, SessionSettings};
pub use stored_program::JournalPage;
pub use test_seams::TestSeams;

// What use cases need of the rules.
pub use tandem_engine::agent::{
    AdminAuthSpec, AgentProblem, AgentSpec, HitlTarget, TakeoverAdapter, TextRedaction,
    WEB_TRANSPORT, read_schedule, written_schedule,
};
pub use tandem_engine::chat_user::user_id;
pub use tandem_engine::flow_run::FlowRun;
pub use tandem_engine::schedule::{Occurrences, ScheduleRefusal, ScheduleReply};
pub use tandem_engine::session::admin_auth::{
    AdminSignals, AuthzDenial, ChatSignal, KeySignal, ResolvedActor, allows, authorize,
    resolve_actor,
};
pub use tandem_engine::session::{
    ChatSession, CommandLine, ReadKeys, SenderRates, SessionRefusal, is_command_of_known_admin,
    shown_view, takeover_short_id,
};
