//! Use cases of conversations: delivering messages, reading sessions, and what admins may do.
//!
//! Invariants:
//! - Every privileged operation passes `rights.rs` before it changes anything. It fails closed, and both
//!   answers are recorded.
//! - A session of another tenant is reported like one that does not exist.

mod agents;
mod answer;
mod escalations;
mod events;
mod inbound;
mod manage;
mod rights;
mod sessions;
mod test_records;
mod trail;
mod users;

use crate::error::{AppError, ResourceKind};
use tandem_runtime::{Fault, SubmitError};

pub use agents::AgentView;
pub use answer::ConversationQuestion;
pub use escalations::{EscalationFound, EscalationQuery};
pub use events::{SessionFollower, SessionUpdate};
pub use inbound::{DeliveredMessage, DeliveryStatus, InboundLimits, NewInbound};
pub use manage::{ResolveEscalation, ResolveTarget, StartedFlow};
pub use rights::AdminCall;
pub use sessions::{JournalEntry, ListedSession, SessionLog};
pub use test_records::TransportFaults;
pub use trail::{AuditQuery, AuthorizationEntry};
pub use users::FoundUser;

/// Why a command to a session or a user was not carried out. `missing` is what such a stream stands for.
fn submit_error(error: SubmitError, missing: ResourceKind) -> AppError {
    match error {
        SubmitError::NotFound => AppError::NotFound(missing),
        SubmitError::Fault(fault) => AppError::Fault(fault),
        other => Fault::retryable("contended", other.to_string()).into(),
    }
}
