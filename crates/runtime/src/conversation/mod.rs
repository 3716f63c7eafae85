//! Conversations as machines of this runtime: sessions (`conv:`), flow runs (`run:flow-`) and users (`user:`).
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
mod answer_pieces;
mod flow_run_driver;
mod programs;
mod read_session;
mod receive;
mod session_access;
mod session_driver;
mod session_machine;
mod session_questions;
mod session_retention;
mod session_rows;
mod session_work;
mod settings;
mod test_seams;
mod user_driver;
mod workflow_calls;

pub use agent_host::{
    AgentHost, CallContext, ChatModelRequest, FlowProgram, RebuildError, SendError,
};
pub use answer_pieces::{AnswerPiece, AnswerPieces};
pub use read_session::SessionEventPage;
pub use receive::{MessageClaim, NewMessage, OVERLOADED, ReceivedMessage};
pub use session_access::{AgentEventPage, LoggedSessionEvent};
pub use session_machine::{SessionAnswer, SessionMachine};
pub(crate) use session_retention::SessionPurgeCursors;
pub use session_work::SessionOutcome;
pub use settings::{Conversations, SessionSettings};
pub use test_seams::TestSeams;

// What use cases need of the rules.
pub use tandem_engine::agent::{AdminAuthSpec, AgentSpec, TextRedaction, WEB_TRANSPORT};
pub use tandem_engine::chat_user::user_id;
pub use tandem_engine::flow_run::FlowRun;
pub use tandem_engine::session::admin_auth::{
    AdminSignals, AuthzDenial, KeySignal, ResolvedActor, allows, authorize, resolve_actor,
};
pub use tandem_engine::session::{ChatSession, SenderRates, SessionRefusal};
