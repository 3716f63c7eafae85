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
use tandem_store::{AuditDraft, Fault, ListedRun, PageLimit, Room, RunPosition, RunRow, StoredRun};

/// Runs looked at before others may write again for a while.
const BATCH: usize = 64;
const EVERY: Duration = Duration::from_secs(60);
/// Events hashed at once.
const PAGE: PageLimit = PageLimit {
    events: 256,
    bytes: 1024 * 1024,
};
/// Walks begin again after this many rounds: a clock set back may have ended runs behind them.
const ROUNDS: u32 = 60;

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
        let said = self.workflows.get(workflow);
        *said
            .or_else(|| self.tenants.get(tenant))
            .unwrap_or(&self.default_ms)
    }

    fn lengths(&self) -> BTreeSet<u64> {
        let said = self.tenants.values().chain(self.workflows.values());
        said.chain([&self.default_ms]).copied().collect()
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
type Walked = BTreeMap<u64, (Timestamp, RunPosition)>;

impl Runtime {
    /// Whether nothing of the run may be read any more.
    pub fn is_past_retention(&self, stored: &StoredRun) -> bool {
        let row = &stored.row;
        let kept = self
            .inner
            .config
            .retention
            .of(&row.tenant, &row.workflow_id);
        let old = |at: Timestamp| at < self.kept_since(kept);
        stored.tombstone.is_some() || row.ended_at.is_some_and(old)
    }

    /// Runs kept for so long that ended before are gone.
    fn kept_since(&self, kept_ms: u64) -> Timestamp {
        let kept = i64::try_from(kept_ms).unwrap_or(i64::MAX);
        Timestamp(self.clock().now().0.saturating_sub(kept))
    }

    /// What of a tenant takes room, and when the next of its logs is removed.
    pub async fn room_of(&self, tenant: &TenantId) -> Result<(Room, Option<Timestamp>), Fault> {
        let room = self.store().room_of(tenant).await?;
        let policy = &self.inner.config.retention;
        let ends = room.oldest_ends.iter();
        let next = ends.map(|(workflow, at)| at.plus_ms(policy.of(tenant, workflow)));
        let next = next.min();
        Ok((room, next))
    }

    pub(crate) async fn bury_old_runs(self) {
        let mut walked = Walked::new();
        let mut rounds = 0;
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.inner.retention_bell.notified() => walked.clear(),
                () = tokio::time::sleep(EVERY) => rounds += 1,
            }
            if rounds >= ROUNDS {
                rounds = 0;
                walked.clear();
            }
            if let Err(fault) = self.bury_all(&mut walked).await {
                tracing::warn!(%fault, "logs of old runs could not be removed");
            }
        }
    }

    async fn bury_all(&self, walked: &mut Walked) -> Result<(), Fault> {
        for length in self.inner.config.retention.lengths() {
            while !self.is_stopping() {
                let (after, before) = (walked.get(&length).copied(), self.kept_since(length));
                let ended = self.store().ended(after, before, BATCH).await?;
                for ListedRun { position, row } in &ended {
                    let policy = &self.inner.config.retention;
                    if policy.of(&row.tenant, &row.workflow_id) == length {
                        self.bury(row).await?;
                    }
                    let at = row.ended_at.expect("only ended runs were asked for");
                    walked.insert(length, (at, *position));
                }
                if ended.len() < BATCH {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn bury(&self, row: &RunRow) -> Result<(), Fault> {
        let run = &row.run_id;
        let request = self.first_request(run).await?;
        let memory = request.as_ref().map(RunRequest::memory_origin);
        let (events, sha256) = self.log_digest(run).await?;
        let now = self.clock().now();
        let log = json!({"events": events, "sha256": sha256});
        let tombstone = json!({"memory": memory, "buriedAt": now, "log": log});
        let details = Object::from_iter([("log".to_owned(), log)]);
        let told = AuditDraft::new(
            now,
            Some(&row.tenant),
            &Actor::host(),
            PURGE,
            run.as_str(),
            details,
        );
        self.store()
            .bury(run, &tombstone.to_string(), Some(told))
            .await?;
        self.inner.live.forget(run);
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
