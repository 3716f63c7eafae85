//! The answer to a delivered message.

use serde::Serialize;
use tandem_record::conversation::CandidateOrigin;
use tandem_record::{EffectId, SessionId};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InboundStatus {
    Processed,
    /// Accepted; the caller does not wait for its turn.
    Accepted,
    Duplicate,
    Ratelimited,
    Overloaded,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InboundAnswer {
    /// Absent for a message that was refused.
    pub turn_id: Option<String>,
    pub session_id: Option<SessionId>,
    pub status: InboundStatus,
    /// What the turn sends to the sender, in order.
    pub outbound: Vec<OutboundText>,
}

/// What became of each message that a network delivered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InboundAnswers {
    pub messages: Vec<InboundAnswer>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutboundText {
    pub id: EffectId,
    pub to: String,
    pub text: String,
    pub origin: CandidateOrigin,
}
