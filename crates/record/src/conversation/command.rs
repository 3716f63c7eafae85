//! The commands of a session, and its replies.

use super::{AdminActor, InboundMessage, SessionStart, WorkOutcome};
use crate::{EffectId, EscalationId, FlowId, InterruptId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum SessionCommand {
    /// The first message of a new session.
    Start {
        start: Box<SessionStart>,
        message: Box<InboundMessage>,
    },
    /// A message of the user.
    Receive { message: Box<InboundMessage> },
    /// A piece of work was performed, or failed for good.
    FinishWork {
        effect: EffectId,
        outcome: Box<WorkOutcome>,
    },
    /// A durable timer is due.
    FireTimer(SessionTimer),
    /// An admin acts. Whether the actor may was decided before, by the agent's rules.
    Act {
        actor: AdminActor,
        request: AdminRequest,
    },
    /// The agent's rules allowed or refused an action.
    RecordAuthorization(Box<super::AuthorizationDecision>),
}

/// Names a durable timer of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum SessionTimer {
    /// The session was idle for too long.
    Idle,
    /// The deadline of the interrupt a flow waits at.
    Interrupt { id: InterruptId },
    /// The deadline of an escalation.
    Escalation { id: EscalationId },
}

/// What an admin may do to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum AdminRequest {
    Resolve {
        /// `None`: the session's open escalation.
        escalation: Option<EscalationId>,
        decision: EscalationDecision,
    },
    StartFlow {
        flow_id: FlowId,
        input: Option<Value>,
    },
    AbortFlow,
    EndSession,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EscalationDecision {
    pub approved: bool,
    pub message: Option<String>,
    pub action_data: Option<Value>,
    /// Whom the caller named as the decider.
    pub claimed_by: Option<String>,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionReply {
    /// The message was accepted; its turn may be under way or wait.
    Accepted {
        turn: u64,
    },
    /// Something changed, or nothing was left to do.
    Done,
    Escalation(Box<super::EscalationRecord>),
}
