//! How long ended runs keep their log. By the clock a run is gone the moment its time is over;
//! its rows are removed in small batches afterwards. What stays is its row in the listing, with
//! what a reader of the memory it shared still has to know and the hash of the log it had, which the
//! audit log tells as well.
//!
//! Runs are looked at in the order they ended, once for every length of time that some rule names:
//! each such walk stops where runs are too young for it and goes on from there. So a rule that
//! keeps many runs for long costs nothing but its first look at them.

use crate::runtime::Runtime;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tandem_record::{
    Actor, Object, RunId, RunRequest, Seq, StreamId, TenantId, Timestamp, WorkflowId,
};
use tandem_store::{
    AuditDraft, Fault, ListedRun, PageLimit, RunPosition, RunRow, StorageUsage, StoredRun,
};

/// Runs looked at before others may write again for a while.
const BATCH: usize = 64;
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
/// Events hashed at once.
const PAGE: PageLimit = PageLimit {
    events: 256,
    bytes: 1024 * 1024,
};
/// Walks begin again after this many rounds: a clock set back may have ended runs behind them.
const ROUNDS_PER_RESCAN: u32 = 60;

/// The action of audit entries about removed logs.
const PURGE: &str = "run.purge";

/// How long an ended run keeps its log, in milliseconds: as its workflow says, else as its tenant
/// says, else the default.
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

/// How far the walk for each length has come.
type PurgeCursors = BTreeMap<u64, (Timestamp, RunPosition)>;

impl Runtime {
    /// Whether nothing of the run may be read any more.
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

    /// Runs kept for so long that ended before are gone.
    fn retained_since(&self, retention_ms: u64) -> Timestamp {
        let retention_ms = i64::try_from(retention_ms).unwrap_or(i64::MAX);
        Timestamp(self.clock().now().0.saturating_sub(retention_ms))
    }

    /// What of a tenant takes room, and when the next of its logs is removed.
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
        let mut rounds = 0;
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.inner.retention_bell.notified() => cursors.clear(),
                () = tokio::time::sleep(PURGE_INTERVAL) => rounds += 1,
            }
            if rounds >= ROUNDS_PER_RESCAN {
                rounds = 0;
                cursors.clear();
            }
            if let Err(fault) = self.purge_expired_runs(&mut cursors).await {
                tracing::warn!(%fault, "logs of old runs could not be removed");
            }
        }
    }

    async fn purge_expired_runs(&self, cursors: &mut PurgeCursors) -> Result<(), Fault> {
        for length in self.inner.config.retention.lengths() {
            while !self.is_stopping() {
                let (after, before) = (cursors.get(&length).copied(), self.retained_since(length));
                let ended = self.store().ended_runs(after, before, BATCH).await?;
                for ListedRun { position, row } in &ended {
                    let policy = &self.inner.config.retention;
                    if policy.of(&row.tenant, &row.workflow_id) == length {
                        self.purge_run(row).await?;
                    }
                    let at = row.ended_at.expect("only ended runs were asked for");
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
        let (events, sha256) = self.log_digest(run).await?;
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
        self.inner.run_cache.remove(run);
        Ok(())
    }

    /// How many events a log has, and the SHA-256 over a line for each: its sequence, its time in
    /// milliseconds and its stored text, separated by tabs and each line with its end.
    async fn log_digest(&self, run: &RunId) -> Result<(u64, String), Fault> {
        let stream = StreamId::of_run(run);
        let (mut hash, mut count) = (Sha256::new(), 0);
        let mut after: Option<Seq> = None;
        loop {
            let slice = self.store().event_page(&stream, after, PAGE).await?;
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
