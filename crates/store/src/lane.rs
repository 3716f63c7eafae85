//! Who competes with whom for workers: outbox entries wait in lanes, one for each kind of work, tenant
//! and target, so that whoever takes them can share workers fairly without looking at all that wait.

use std::collections::HashMap;
use tandem_record::{TenantId, Timestamp};

/// Kinds of work that never wait behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkClass {
    /// Concerns only this host: going on with a run, telling a parent, cancelling a child.
    Internal,
    /// Calls something outside on behalf of a node.
    Call,
    /// Tells somebody outside what happened: webhooks and callbacks.
    Delivery,
}

impl WorkClass {
    pub const ALL: [Self; 3] = [Self::Internal, Self::Call, Self::Delivery];

    /// How rows name it. Part of the stored format.
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
    /// Who is called, for example `api.example.com:8443`; empty for internal work.
    pub target: String,
}

/// Which lanes have work. Tenants are looked at from the one after `after_tenant`, in a circle, and
/// the targets of each likewise; so a caller that remembers where it stopped passes nobody over.
#[derive(Clone, Debug)]
pub struct LaneQuery {
    pub class: WorkClass,
    pub now: Timestamp,
    pub after_tenant: Option<TenantId>,
    /// By tenant, the target after which to begin.
    pub after_target: HashMap<TenantId, String>,
    /// Tenants at most.
    pub tenants: usize,
    /// Targets of one tenant at most.
    pub targets: usize,
    /// Entries are counted up to this many in each lane.
    pub count_up_to: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueLane {
    pub lane: Lane,
    /// Entries that are due, counted up to the query's bound; at least one.
    pub due: usize,
}

/// Turns a sorted list of names into the order of a circle that begins after `after`.
pub(crate) fn rotate_after<T: Ord>(mut sorted: Vec<T>, after: Option<&T>) -> Vec<T> {
    if let Some(after) = after {
        let first = sorted.partition_point(|name| name <= after);
        sorted.rotate_left(first);
    }
    sorted
}
