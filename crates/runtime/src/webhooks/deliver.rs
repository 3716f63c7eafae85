//! Makes the deliveries of one subscription, in the order of their numbers. Several are sent
//! concurrently if they belong to different runs and the target is healthy; otherwise one at a
//! time. Every attempt is recorded before the next begins.

use super::attempt::{Attempt, attempt, given_up, loses_delivery, progress_after, record_attempt};
use super::health::{self, MAX_AGE_MS};
use super::leased_entry::{Backoff, LeasedEntry};
use super::{KIND, Subscription, entry, entry_id};
use crate::effects::WorkAssignment;
use crate::runtime::Runtime;
use crate::worker_slots::WorkerSlot;
use std::collections::HashSet;
use std::sync::Arc;
use tandem_record::{Timestamp, WebhookId};
use tandem_store::{
    Commit, CommitGuard, DeliveryRow, Fault, Lease, OutboxChange, OutboxEntry, WebhookChange,
};
use tokio::task::JoinSet;

/// Deliveries read for one round.
const DELIVERIES_PER_ROUND: usize = 64;
/// Limit of concurrent deliveries of one subscription.
const MAX_CONCURRENT: usize = 8;
/// Rounds before the worker is released for others.
const ROUNDS: usize = 64;
/// Pause of deliveries on a host without a webhook sender.
const NO_SENDER_RETRY_MS: u64 = 30_000;

impl Runtime {
    /// Works on a subscription's entry that is leased to this process.
    pub(crate) fn start_deliveries(&self, leased: OutboxEntry, slot: WorkerSlot, lease: Lease) {
        let worker = DeliveryWorker {
            runtime: self.clone(),
            webhook: WebhookId::from(leased.body),
            entry: LeasedEntry {
                runtime: self.clone(),
                tenant: slot.lane.tenant.clone(),
                effect: leased.effect.clone(),
                lease: lease.id.clone(),
                kind: KIND,
                failures: leased.failures,
            },
        };
        let assignment = WorkAssignment {
            effect: leased.effect,
            kind: KIND,
            slot,
            lease,
            failures: leased.failures,
        };
        let delivers = self.webhook_sender().is_some();
        self.spawn_worker(assignment, async move {
            if !delivers {
                return worker.entry.release(NO_SENDER_RETRY_MS).await;
            }
            worker.runtime.inner.crash.reach("effect.before");
            worker.entry.retry_until_done(|| worker.run_rounds()).await;
        });
    }
}

/// Work on one subscription's entry.
struct DeliveryWorker {
    runtime: Runtime,
    webhook: WebhookId,
    entry: LeasedEntry,
}

/// How a round ended.
enum RoundOutcome {
    /// More may be due now.
    Again,
    /// The entry is rescheduled, removed, or leased to another process.
    Over,
}

impl DeliveryWorker {
    async fn run_rounds(&self) -> Result<(), Fault> {
        for _ in 0..ROUNDS {
            if self.runtime.is_stopping() {
                break;
            }
            if let RoundOutcome::Over = self.run_round().await? {
                return Ok(());
            }
        }
        self.entry.release(0).await;
        Ok(())
    }

    async fn run_round(&self) -> Result<RoundOutcome, Fault> {
        let store = self.runtime.store();
        let Some(stored) = store.webhook(&self.webhook).await? else {
            let remove = OutboxChange::Remove(entry_id(&self.webhook));
            return self.reschedule(remove, None).await;
        };
        let subscription = Arc::new(Subscription::read(&stored)?);
        let now = self.runtime.clock().now();
        if let Some(until) = health::hold_until_after(&subscription.health, now) {
            // Deliveries added in the meantime wait as well.
            let put = OutboxChange::Put(entry(&subscription.webhook, until));
            return self.reschedule(put, None).await;
        }
        let has_failed = subscription.health.failed_at.is_some();
        let by = if has_failed { Timestamp(i64::MAX) } else { now };
        let due = store
            .due_deliveries(&self.webhook, by, DELIVERIES_PER_ROUND)
            .await?;
        if due.is_empty() {
            let next = store.next_delivery(&self.webhook).await?;
            let change = match next {
                Some(next) => OutboxChange::Put(entry(&subscription.webhook, next)),
                None => OutboxChange::Remove(entry_id(&self.webhook)),
            };
            let guard = CommitGuard::NoDeliveryBefore {
                webhook: self.webhook.clone(),
                due: next,
            };
            return self.reschedule(change, Some(guard)).await;
        }
        let changes = if has_failed {
            let give_up = |row| self.give_up(row, "the webhook failed too often");
            due.into_iter().map(give_up).collect()
        } else if !self.may_receive(&subscription, now).await? {
            let give_up =
                |row| self.give_up(row, "who registered the webhook may not read runs any more");
            due.into_iter().map(give_up).collect()
        } else {
            self.attempt_due(&subscription, due, now).await?
        };
        self.runtime.inner.crash.reach("effect.after");
        self.record(&subscription, changes).await
    }

    async fn may_receive(&self, to: &Subscription, now: Timestamp) -> Result<bool, Fault> {
        match self.runtime.webhook_sender() {
            Some(webhook_sender) => webhook_sender.may_receive(&to.webhook, now).await,
            None => Ok(false),
        }
    }

    /// Reschedules or removes the entry. A delivery added in the meantime starts another round; an
    /// entry leased to another process is not changed.
    async fn reschedule(
        &self,
        change: OutboxChange,
        guard: Option<CommitGuard>,
    ) -> Result<RoundOutcome, Fault> {
        let watched = guard.is_some();
        let commit = Commit {
            outbox: vec![change],
            guards: guard.into_iter().collect(),
            ..Commit::default()
        };
        if self.entry.commit(commit).await? {
            return Ok(RoundOutcome::Over);
        }
        let again = watched && self.entry.commit(Commit::default()).await?;
        Ok(if again {
            RoundOutcome::Again
        } else {
            RoundOutcome::Over
        })
    }

    fn give_up(&self, row: DeliveryRow, why: &str) -> WebhookChange {
        let progress = given_up(&row, why);
        record_attempt(&self.runtime, row, progress)
    }

    /// Makes the attempts that may run concurrently, and returns what to record.
    async fn attempt_due(
        &self,
        subscription: &Arc<Subscription>,
        due: Vec<DeliveryRow>,
        now: Timestamp,
    ) -> Result<Vec<WebhookChange>, Fault> {
        let mut changes = Vec::new();
        let mut under_way = JoinSet::new();
        let mut runs = HashSet::new();
        let well = subscription.health.consecutive_failures == 0;
        let width = if well { MAX_CONCURRENT } else { 1 };
        for row in due {
            if now.ms_since(row.created_at) > MAX_AGE_MS {
                changes.push(self.give_up(row, "not delivered within three days"));
            } else if under_way.len() < width && runs.insert(row.run_id.clone()) {
                let (runtime, subscription) = (self.runtime.clone(), Arc::clone(subscription));
                under_way.spawn(async move {
                    let attempted = attempt(&runtime, &subscription, &row, now).await;
                    (row, attempted)
                });
            }
        }
        let (mut made, mut missed, mut lost, mut store_fault) = (0, 0, 0, None);
        while let Some(finished) = under_way.join_next().await {
            let (row, attempted) = finished.map_err(|died| {
                self.runtime.inner.metrics.panics.inc();
                Fault::retryable("bug", died.to_string())
            })?;
            match attempted {
                Ok(attempt) => {
                    made += usize::from(matches!(attempt, Attempt::Delivered(_)));
                    missed += usize::from(matches!(attempt, Attempt::Failed(_)));
                    lost += u64::from(loses_delivery(&row, &attempt));
                    let progress = progress_after(&row, attempt, now);
                    changes.push(record_attempt(&self.runtime, row, progress));
                }
                // Not sent; it stays due.
                Err(fault) => store_fault = Some(fault),
            }
        }
        if let Some(fault) = store_fault.filter(|_| changes.is_empty()) {
            return Err(fault);
        }
        if lost > 0 {
            changes.push(WebhookChange::Drop {
                webhook: self.webhook.clone(),
                count: lost,
            });
        }
        // A round is one health check of the target: it is down when no delivery succeeded.
        let health = match (made, missed) {
            (0, 0) => subscription.health.clone(),
            (0, _) => health::failed(&subscription.health, &self.webhook, now),
            _ => health::succeeded(&subscription.health),
        };
        if health != subscription.health {
            changes.push(WebhookChange::Health {
                webhook: self.webhook.clone(),
                health: serde_json::to_string(&health).expect("health is plain data"),
            });
        }
        Ok(changes)
    }

    /// Retries until the attempts are recorded: a delivery must not be sent again because the store
    /// failed.
    async fn record(
        &self,
        subscription: &Subscription,
        changes: Vec<WebhookChange>,
    ) -> Result<RoundOutcome, Fault> {
        let is_health = |change: &WebhookChange| matches!(change, WebhookChange::Health { .. });
        let health_changed = changes.iter().any(is_health);
        let mut backoff = Backoff::default();
        loop {
            let commit = Commit {
                webhooks: changes.clone(),
                ..Commit::default()
            };
            match self.entry.commit(commit).await {
                Ok(true) => break,
                // Deleted in the meantime, or leased to another process.
                Ok(false) => return Ok(RoundOutcome::Over),
                Err(fault) if fault.retryable && !self.runtime.is_stopping() => {
                    tracing::warn!(webhook = %self.webhook, error = %fault, "cannot record a delivery");
                    backoff.pause().await;
                }
                Err(fault) => return Err(fault),
            }
        }
        if health_changed {
            let webhooks = &self.runtime.inner.webhooks;
            webhooks
                .subscriptions
                .invalidate(&subscription.webhook.tenant);
        }
        Ok(RoundOutcome::Again)
    }
}
