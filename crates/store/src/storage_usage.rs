//! Storage usage of a tenant: runs, their logs, and memory. Counted at a bounded cost; the report
//! says what was left out.

use serde::{Deserialize, Serialize};
use tandem_record::{RunId, TenantId, Timestamp, WorkflowId};

/// Limit of runs read, newest first.
pub const USAGE_MAX_RUNS: usize = 200_000;
/// Limit of memory writes read.
pub const USAGE_MAX_WRITES: usize = 200_000;
/// Number of the largest items that are listed.
pub const USAGE_TOP_COUNT: usize = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageUsage {
    pub runs: RunCounts,
    /// Those with the most events, among the runs counted.
    pub workflows: Vec<WorkflowSize>,
    /// Those with the most events.
    pub largest_runs: Vec<RunSize>,
    /// Memory scopes with the most bytes, among the writes counted.
    pub memory: Vec<ScopeSize>,
    /// When the oldest retained run of each workflow ended. The caller applies the retention rules.
    #[serde(skip)]
    pub oldest_ends: Vec<(WorkflowId, Timestamp)>,
}

/// Numbers of the runs counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Started and not ended: kept by every rule.
    pub live: u64,
    /// Ended, with their log.
    #[serde(rename = "kept")]
    pub retained: u64,
    /// Ended, with a tombstone instead of a log.
    pub purged: u64,
    /// Older runs were not read.
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
    /// All writes ever made, including invisible ones.
    pub writes: u64,
    /// Size of their texts.
    pub bytes: u64,
}
