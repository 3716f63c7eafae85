//! Work that failed: put off with growing pauses, and parked when it keeps failing. Parked work waits
//! for a person and is in nobody's way.

use crate::fault::Fault;
use crate::read::DueTimer;
use async_trait::async_trait;
use tandem_record::{EffectId, StreamId, TenantId, Timestamp};

/// What is known about work that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFailure {
    /// Attempts that failed in a row, the last included.
    pub failures: u32,
    /// Why the last one failed.
    pub error: String,
    pub failed_at: Timestamp,
    /// When it is attempted again; `None` parks it.
    pub retry_at: Option<Timestamp>,
}

/// Work that is attempted no more until somebody asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedWork {
    /// The run or webhook it belongs to.
    pub stream: StreamId,
    /// Absent when the run is unknown.
    pub tenant: Option<TenantId>,
    /// `timer`, or the kind of the effect.
    pub kind: String,
    /// The timer's key as JSON, or the effect's id.
    pub name: String,
    pub failures: u32,
    pub error: String,
    pub failed_at: Timestamp,
}

#[async_trait]
pub trait WorkFailures: Send + Sync {
    /// Puts a timer off, or parks it. Ignored when the timer was moved or cleared since it was read.
    /// Setting it anew applies_deletions its failures.
    async fn record_timer_failure(
        &self,
        timer: &DueTimer,
        failure: WorkFailure,
    ) -> Result<(), Fault>;

    /// Gives an entry back, to be attempted again later or not at all. Ignored when the caller no longer
    /// holds the lease.
    async fn record_effect_failure(
        &self,
        effect: &EffectId,
        owner: &str,
        failure: WorkFailure,
    ) -> Result<(), Fault>;

    /// Parked work of a tenant, or of all, at most `limit`. The cost follows what is parked.
    async fn list_parked(
        &self,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<ParkedWork>, Fault>;

    async fn count_parked(&self) -> Result<u64, Fault>;

    /// Makes all parked work of a stream due at `now`, its failures forgotten. How much there was.
    async fn retry_parked(&self, stream: &StreamId, now: Timestamp) -> Result<u64, Fault>;
}
