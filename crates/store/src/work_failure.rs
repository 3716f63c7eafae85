//! Failed work: retried with growing pauses, and parked when it keeps failing. Parked work waits
//! for a person and does not delay other work.

use crate::fault::Fault;
use crate::lease::LeaseId;
use crate::read::DueTimer;
use async_trait::async_trait;
use tandem_record::{EffectId, StreamId, TenantId, Timestamp};

/// The record of failed work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFailure {
    /// Failed attempts in a row, including the last.
    pub failures: u32,
    /// Error of the last attempt.
    pub error: String,
    pub failed_at: Timestamp,
    /// Time of the next attempt; `None` parks it.
    pub retry_at: Option<Timestamp>,
}

/// Work that is not attempted until a retry is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedWork {
    /// The run, conversation or webhook it belongs to.
    pub stream: StreamId,
    /// `None` for a timer of an earlier version whose run is unknown.
    pub tenant: Option<TenantId>,
    /// `timer`, or the kind of the effect.
    pub kind: String,
    /// The timer's name, or the effect's id.
    pub name: String,
    pub failures: u32,
    pub error: String,
    pub failed_at: Timestamp,
}

#[async_trait]
pub trait WorkFailures: Send + Sync {
    /// Reschedules or parks a timer. Ignored when the timer was moved or cleared since it was read.
    /// Setting it again clears its failures.
    async fn record_timer_failure(
        &self,
        timer: &DueTimer,
        failure: WorkFailure,
    ) -> Result<(), Fault>;

    /// Releases an entry, to be attempted later or never. Ignored when the caller no longer holds
    /// the lease.
    async fn record_effect_failure(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        failure: WorkFailure,
    ) -> Result<(), Fault>;

    /// Parked work of a tenant, or of all, at most `limit`. The cost depends on the amount of
    /// parked work.
    async fn list_parked(
        &self,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<ParkedWork>, Fault>;

    async fn count_parked(&self) -> Result<u64, Fault>;

    /// Makes all parked work of a stream due at `now` and clears its failures. Returns how many
    /// there were.
    async fn retry_parked(&self, stream: &StreamId, now: Timestamp) -> Result<u64, Fault>;
}
