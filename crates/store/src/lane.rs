//! Lanes of the outbox: one for each class of work, tenant and target. With them, workers are
//! shared fairly without reading all waiting entries.

use std::collections::HashMap;
use tandem_record::{TenantId, Timestamp};

/// Classes of work that never wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkClass {
    /// Concerns only this host: continue a run, notify a parent, cancel a child.
    Internal,
    /// Calls something outside on behalf of a node.
    Call,
    /// Notifies others outside: webhooks and callbacks.
    Delivery,
}

impl WorkClass {
    pub const ALL: [Self; 3] = [Self::Internal, Self::Call, Self::Delivery];

    /// The number stored in rows. Part of the stored format.
    pub fn number(self) -> i64 {
        match self {
            Self::Internal => 0,
            Self::Call => 1,
            Self::Delivery => 2,
        }
    }

    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.number() == number)
    }
}

/// Entries that share one quota. Within a lane the earliest is taken first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    pub class: WorkClass,
    pub tenant: TenantId,
    /// The called host, for example `api.example.com:8443`; empty for internal work.
    pub target: String,
}

/// A query for lanes with due work. Tenants are read from the one after `after_tenant` on, wrapping
/// around, and the targets of each likewise. A caller that remembers where it stopped skips none.
#[derive(Clone, Debug)]
pub struct LaneQuery {
    pub class: WorkClass,
    pub now: Timestamp,
    pub after_tenant: Option<TenantId>,
    /// By tenant, the target after which to start.
    pub after_target: HashMap<TenantId, String>,
    /// Limit of tenants.
    pub tenants: usize,
    /// Limit of targets per tenant.
    pub targets: usize,
    /// Entries are counted up to this number in each lane.
    pub count_up_to: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueLane {
    pub lane: Lane,
    /// Due entries, counted up to the query's limit; at least one.
    pub due: usize,
}

/// Rotates a sorted list so that it starts after `after`.
pub(crate) fn rotate_after<T: Ord>(mut sorted: Vec<T>, after: Option<&T>) -> Vec<T> {
    if let Some(after) = after {
        let first = sorted.partition_point(|name| name <= after);
        sorted.rotate_left(first);
    }
    sorted
}
