//! Keys of a run's durable timers. A timer carries nothing but its key: the effect of a firing is
//! decided from the run's state, so a late or repeated firing is harmless.

use crate::NodeId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum TimerKey {
    /// The limit of the run's duration.
    RunDeadline,
    /// A sleeping node wakes, or a failed attempt is retried.
    NodeWake { node: NodeId, attempt: u32 },
    /// The timeout of a node's attempt.
    NodeDeadline { node: NodeId, attempt: u32 },
    /// The deadline of an open interrupt.
    InterruptDeadline { node: NodeId },
    /// A debounced channel-write trigger is due.
    Trigger { id: String },
}
