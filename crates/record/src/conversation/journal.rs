//! The journal of a flow run: what its code asked for and what it was given, so that the code can be
//! run again to the same place.

use super::{FlowFailure, FlowOrigin, FlowPause, ParentNode, ResumedBy, TurnTrigger};
use crate::{AgentId, FlowId, ForkedFrom, InterruptId, Object, Owner, RunId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a flow run begins with. All of it is visible to the code, so none of it may change later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowRunStart {
    pub run_id: RunId,
    pub agent_id: AgentId,
    pub flow_id: FlowId,
    /// Absent for a detached run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    pub owner: Owner,
    /// The hash of the code.
    pub version: String,
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Value>,
    pub origin: FlowOrigin,
    /// The node of a workflow that waits for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentNode>,
    /// Of a detached run that repeats another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<ForkedFrom>>,
    /// Randomness of the code is drawn from it.
    pub seed: u64,
    /// `ctx.user`, `ctx.session`, `ctx.inbound` and what else does not change during the run.
    pub context: Object,
}

/// One step of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "r", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum FlowRecord {
    Started(Box<FlowRunStart>),
    /// A turn goes on with the run.
    Segment {
        turn: u64,
        trigger: TurnTrigger,
        /// Members of `ctx` that the turn changes: `inbound` (`null` for none), `turnId`,
        /// `requestId`, `trigger`, `answers`, `lastInterrupt`.
        context: Object,
    },
    Effect {
        step: u32,
        fingerprint: String,
        /// Functions are replaced by `{"$fn": true}`.
        effect: Value,
    },
    /// The result handed to the code. `value` absent means undefined.
    Result {
        step: u32,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Value>,
        /// The error thrown instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Value>,
    },
    /// A call of the context that is not an effect.
    Host {
        index: u32,
        name: String,
        fingerprint: String,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Value>,
    },
    /// A function of the effect at which the code waits decided about an input. It is not called again.
    Hook {
        step: u32,
        input: Value,
        decision: Value,
    },
    Paused {
        pause: FlowPause,
        /// What a reader of the run is shown.
        question: Value,
    },
    Resumed {
        interrupt_id: InterruptId,
        by: ResumedBy,
        outcome: String,
        /// Who answered: the user, or an admin for them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<String>,
    },
    Ended {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whether it was ended from outside.
        cancelled: bool,
    },
    Failed {
        failure: FlowFailure,
    },
    Diverged {
        step: u32,
        expected: Value,
        actual: Value,
    },
}
