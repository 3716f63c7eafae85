//! What takes room, as far as it belongs to somebody: runs, their logs, and memory. Counted at a
//! bounded cost; what was left out is said.

use serde::{Deserialize, Serialize};
use tandem_record::{RunId, TenantId, Timestamp, WorkflowId};

/// Runs looked at, newest first.
pub const USAGE_MAX_RUNS: usize = 200_000;
/// Writes to memory looked at.
pub const USAGE_MAX_WRITES: usize = 200_000;
/// The largest that are named.
pub const USAGE_TOP_COUNT: usize = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageUsage {
    pub runs: RunCounts,
    /// Those with the most events, among the runs counted.
    pub workflows: Vec<WorkflowSize>,
    /// Those with the most events.
    pub largest_runs: Vec<RunSize>,
    /// Scopes of memory with the most bytes, among the writes counted.
    pub memory: Vec<ScopeSize>,
    /// When the oldest kept run of each workflow ended, for whoever knows how long it is kept.
    #[serde(skip)]
    pub oldest_ends: Vec<(WorkflowId, Timestamp)>,
}

/// Of the runs counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Begun and not ended: kept whatever the rules say.
    pub live: u64,
    /// Ended, with their log.
    #[serde(rename = "kept")]
    pub retained: u64,
    /// Ended, with a tombstone instead.
    pub purged: u64,
    /// Older runs were not looked at.
    pub more: bool,
}

/// Runs with a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowSize {
    pub tenant: TenantId,
    pub workflow_id: WorkflowId,
    pub runs: u64,
    pub events: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSize {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub workflow_id: WorkflowId,
    pub status: String,
    pub events: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeSize {
    pub tenant: TenantId,
    pub scope: String,
    /// Every write that ever was, hidden ones included.
    pub writes: u64,
    /// Of their texts.
    pub bytes: u64,
}
