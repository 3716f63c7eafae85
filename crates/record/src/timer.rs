//! Names of a run's durable timers. A timer carries nothing but its name: what firing means is
//! decided against the run's state, so a late or repeated firing is harmless.

use crate::NodeId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum TimerKey {
    /// The run's own duration bound.
    RunDeadline,
    /// A sleeping node wakes, or a failed attempt is tried again.
    NodeWake { node: NodeId, attempt: u32 },
    /// A node's attempt takes too long.
    NodeDeadline { node: NodeId, attempt: u32 },
    /// An open question's deadline.
    InterruptDeadline { node: NodeId },
    /// A debounced channel-write trigger is due.
    Trigger { id: String },
}
