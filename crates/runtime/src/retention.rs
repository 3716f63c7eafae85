//! How long ended runs keep their log (conversations: `conversation/session_retention.rs`). A run is unreadable as soon as its retention is over; its
//! rows are removed in small batches later. The row in the listing stays, with the memory origin
//! that readers of shared memory still need and the hash of the purged log. The audit log has this
//! hash too.
//!
//! Each retention period that a rule names has its own scan over the ended runs, in the order they
//! ended. A scan stops at the first run that is too young and continues there later. So a rule that
//! keeps many runs for long costs only its first scan.

use crate::conversation::SessionPurgeCursors;
use crate::runtime::Runtime;
use crate::task_leases::HostTask;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tandem_record::{Actor, Object, RunRequest, Seq, StreamId, TenantId, Timestamp, WorkflowId};
use tandem_store::{
    AuditDraft, Fault, ListedRun, PageLimit, RunPosition, RunRow, StorageUsage, StoredRun,
};

/// Runs handled before other writers get a turn.
pub(crate) const BATCH: usize = 64;
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
/// Events hashed at once.
const PAGE: PageLimit = PageLimit {
    events: 256,
    bytes: 1024 * 1024,
};
/// Scans start over after this many rounds: a clock set back may have ended runs behind them.
const ROUNDS_PER_RESCAN: u32 = 60;

/// Action of the audit entry about a purged log.
const PURGE: &str = "run.purge";

/// Retention of ended runs in milliseconds: of the workflow, else of the tenant, else the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    pub default_ms: u64,
    pub tenants: BTreeMap<TenantId, u64>,
    pub workflows: BTreeMap<WorkflowId, u64>,
}

impl Retention {
    pub fn of(&self, tenant: &TenantId, workflow: &WorkflowId) -> u64 {
        let configured = self.workflows.get(workflow);
        *configured
            .or_else(|| self.tenants.get(tenant))
            .unwrap_or(&self.default_ms)
    }

    /// Of ended conversations, which belong to no workflow.
    pub fn of_sessions(&self, tenant: &TenantId) -> u64 {
        *self.tenants.get(tenant).unwrap_or(&self.default_ms)
    }

    /// The retention periods of conversations.
    pub(crate) fn session_lengths(&self) -> BTreeSet<u64> {
        let configured = self.tenants.values();
        configured.chain([&self.default_ms]).copied().collect()
    }

    fn lengths(&self) -> BTreeSet<u64> {
        let configured = self.tenants.values().chain(self.workflows.values());
        configured.chain([&self.default_ms]).copied().collect()
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            default_ms: 30 * 24 * 3600 * 1000,
            tenants: BTreeMap::new(),
            workflows: BTreeMap::new(),
        }
    }
}

/// Progress of the scan of each retention period.
type PurgeCursors = BTreeMap<u64, (Timestamp, RunPosition)>;

impl Runtime {
    /// Whether the run is past its retention and must not be read any more.
    pub fn is_past_retention(&self, stored: &StoredRun) -> bool {
        let row = &stored.row;
        let retention_ms = self
            .inner
            .config
            .retention
            .of(&row.tenant, &row.workflow_id);
        let old = |at: Timestamp| at < self.retained_since(retention_ms);
        stored.tombstone.is_some() || row.ended_at.is_some_and(old)
    }

    /// What ended before this time is past this retention.
    pub(crate) fn retained_since(&self, retention_ms: u64) -> Timestamp {
        let retention_ms = i64::try_from(retention_ms).unwrap_or(i64::MAX);
        Timestamp(self.clock().now().0.saturating_sub(retention_ms))
    }

    /// Storage used by a tenant, and when the next of its logs is purged.
    pub async fn storage_usage(
        &self,
        tenant: &TenantId,
    ) -> Result<(StorageUsage, Option<Timestamp>), Fault> {
        let room = self.store().storage_usage(tenant).await?;
        let policy = &self.inner.config.retention;
        let ends = room.oldest_ends.iter();
        let next = ends.map(|(workflow, at)| at.plus_ms(policy.of(tenant, workflow)));
        let next = next.min();
        Ok((room, next))
    }

    pub(crate) async fn purge_old_runs(self) {
        let mut cursors = PurgeCursors::new();
        let mut session_cursors = SessionPurgeCursors::new();
        let mut rounds = 0;
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.inner.retention_bell.notified() => rounds = ROUNDS_PER_RESCAN,
                () = tokio::time::sleep(PURGE_INTERVAL) => rounds += 1,
            }
            if rounds >= ROUNDS_PER_RESCAN {
                rounds = 0;
                cursors.clear();
                session_cursors.clear();
            }
            if let Err(fault) = self.purge_expired_runs(&mut cursors).await {
                tracing::warn!(%fault, "cannot purge logs of old runs");
            }
            if let Err(fault) = self.purge_expired_sessions(&mut session_cursors).await {
                tracing::warn!(%fault, "cannot purge old conversations");
            }
        }
    }

    async fn purge_expired_runs(&self, cursors: &mut PurgeCursors) -> Result<(), Fault> {
        for length in self.inner.config.retention.lengths() {
            while !self.is_stopping() && self.holds_task(HostTask::PurgeRuns).await? {
                let (after, before) = (cursors.get(&length).copied(), self.retained_since(length));
                let ended = self.store().ended_runs(after, before, BATCH).await?;
                for ListedRun { position, row } in &ended {
                    let policy = &self.inner.config.retention;
                    if policy.of(&row.tenant, &row.workflow_id) == length {
                        self.purge_run(row).await?;
                    }
                    let at = row.ended_at.expect("the query returns only ended runs");
                    cursors.insert(length, (at, *position));
                }
                if ended.len() < BATCH {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn purge_run(&self, row: &RunRow) -> Result<(), Fault> {
        let run = &row.run_id;
        let request = self.first_request(run).await?;
        let memory = request.as_ref().map(RunRequest::memory_origin);
        let (events, sha256) = self.log_digest(&StreamId::of_run(run)).await?;
        let now = self.clock().now();
        let log = json!({"events": events, "sha256": sha256});
        let tombstone = json!({"memory": memory, "buriedAt": now, "log": log});
        let details = Object::from_iter([("log".to_owned(), log)]);
        let audit = AuditDraft::new(
            now,
            Some(&row.tenant),
            &Actor::host(),
            PURGE,
            run.as_str(),
            details,
        );
        self.store()
            .purge_run(run, &tombstone.to_string(), Some(audit))
            .await?;
        let stream = StreamId::of_run(run);
        self.inner.runs.cache.remove(&stream);
        self.inner.runs.ended.remove(&stream);
        Ok(())
    }

    /// Number of events of a log, and the SHA-256 over one line per event: sequence, time in
    /// milliseconds and stored text, separated by tabs, each line with its line end.
    pub(crate) async fn log_digest(&self, stream: &StreamId) -> Result<(u64, String), Fault> {
        let (mut hash, mut count) = (Sha256::new(), 0);
        let mut after: Option<Seq> = None;
        loop {
            let slice = self.store().event_page(stream, after, PAGE).await?;
            for event in &slice.events {
                let line = format!("{}\t{}\t{}\n", event.seq.0, event.at.0, event.body);
                hash.update(line.as_bytes());
            }
            count += slice.events.len() as u64;
            match slice.events.last() {
                Some(last) if Some(last.seq) < slice.head => after = Some(last.seq),
                _ => break,
            }
        }
        let digest = hash.finalize();
        let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((count, hex))
    }
}
