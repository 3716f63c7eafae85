//! Leases: the exclusive right of a process to an outbox entry, a timer or a task until a time.

use crate::fault::Fault;
use crate::lane::Lane;
use crate::read::DueTimer;
use async_trait::async_trait;
use tandem_record::{EffectId, Timestamp};

/// Names one lease. A process numbers its leases, so a lease that it lost and took again is a
/// different one: a result made under the first is not accepted under the second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId {
    /// The process, named anew at each start.
    pub owner: String,
    pub number: u64,
}

impl LeaseId {
    pub fn new(owner: impl Into<String>, number: u64) -> Self {
        Self {
            owner: owner.into(),
            number,
        }
    }
}

impl std::fmt::Display for LeaseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.owner, self.number)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: LeaseId,
    pub until: Timestamp,
}

#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// The lease of all entries that are taken.
    pub lease: LeaseId,
    pub now: Timestamp,
    pub until: Timestamp,
    /// Lanes, each with the limit of entries.
    pub lane_limits: Vec<(Lane, usize)>,
}

/// Extends leases of one process.
#[derive(Clone, Debug)]
pub struct LeaseRenewal {
    pub owner: String,
    pub until: Timestamp,
    /// Entries with the numbers of their leases.
    pub leases: Vec<(EffectId, u64)>,
}

/// For several processes on one store. A process that is alone fires what it reads.
#[async_trait]
pub trait ClaimTimers: Send + Sync {
    /// Takes timers due at or before `now`, earliest first, in one write. Nobody else finds them due
    /// before `until`. A timer that is neither set nor cleared by then is due again.
    async fn claim_timers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueTimer>, Fault>;
}

/// Leases on tasks that one process at a time does for all, such as purging old logs. Every write of
/// such a task is harmless when another process made it before, so a holder that was paused past its
/// lease needs no other fence.
#[async_trait]
pub trait TaskLeases: Send + Sync {
    /// Takes or extends the lease of a task until `until`. `false` while another process holds it.
    async fn hold_task(
        &self,
        task: &str,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, Fault>;
}
