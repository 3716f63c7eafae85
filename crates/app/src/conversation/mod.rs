//! Use cases of conversations: delivering messages, reading sessions, and what admins may do.
//!
//! Invariants:
//! - Every privileged operation passes `rights.rs` before it changes anything. It fails closed, and both
//!   answers are recorded.
//! - A session of another tenant is reported like one that does not exist.

mod agents;
mod answer;
mod bridge_messages;
mod bridges;
mod desk_work;
mod escalations;
mod events;
mod inbound;
mod inbound_limits;
mod inspection;
mod manage;
mod network_decisions;
mod networks;
mod rights;
mod schedules;
mod session_follower;
mod sessions;
mod takeover;
mod takeover_chat;
mod test_records;
mod trail;
mod users;
mod visitors;

use crate::error::{AppError, ResourceKind};
use tandem_runtime::{Fault, SubmitError};

pub use agents::AgentView;
pub use answer::ConversationQuestion;
pub use bridge_messages::{BridgeOffers, ReadBridge};
pub use bridges::{ProxyFound, ProxyInputStatus, ProxyQuery, StoppedBridge};
pub use desk_work::DeskRight;
pub use escalations::{EscalationFound, EscalationQuery};
pub use inbound::{DeliveredMessage, DeliveryStatus, NewInbound};
pub use inbound_limits::InboundLimits;
pub use inspection::{InspectionCursor, InspectionPage, MAX_INSPECTED};
pub use manage::{ResolveEscalation, ResolveTarget, StartedFlow};
pub use network_decisions::NetworkPerson;
pub use networks::NetworkAnswer;
pub use rights::{ADMIN_TOKEN, AdminCall};
pub use schedules::{Recipient, ScheduleChange, ScheduleQuery};
pub use session_follower::{SessionFollower, SessionUpdate};
pub use sessions::{JournalEntry, ListedSession, SessionLog};
pub use takeover::{TakeoverMessage, TakeoverMessageStatus, TakeoverResult};
pub use test_records::TransportFaults;
pub use trail::{AuditCursor, AuditPage, AuditQuery, AuthorizationEntry, MAX_ENTRIES};
pub use users::FoundUser;
pub use visitors::{
    Visitor, VisitorCursor, VisitorFollower, VisitorMessage, VisitorUpdate, WebChat,
};

pub use tandem_runtime::conversation::ComparedAnswer;

/// Why a command to a session or a user was not carried out. `missing` is what such a stream stands for.
fn submit_error(error: SubmitError, missing: ResourceKind) -> AppError {
    match error {
        SubmitError::NotFound => AppError::NotFound(missing),
        SubmitError::Fault(fault) => AppError::Fault(fault),
        other => Fault::retryable("contended", other.to_string()).into(),
    }
}
