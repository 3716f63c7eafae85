//! Making the deliveries of one subscription, in the order they were decided: up to a handful side
//! by side as long as they belong to different runs and the target is well, one at a time when it
//! is not. Every attempt is recorded before the next begins.

use super::attempt::{Attempt, after, attempt, buried, settle};
use super::health::{self, MAX_AGE_MS};
use super::{KIND, Subscription, entry, entry_id};
use crate::effects::Place;
use crate::runtime::Runtime;
use crate::slots::Slot;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{TenantId, Timestamp, WebhookId};
use tandem_store::{
    Commit, DeliveryRow, Error, Fault, Guard, OutboxChange, OutboxEntry, WebhookChange,
};
use tokio::task::JoinSet;

/// Deliveries looked at for a round.
const LOOKED_AT: usize = 64;
/// Deliveries under way at once for one subscription.
const SIDE_BY_SIDE: usize = 8;
/// Rounds before others get the worker.
const ROUNDS: usize = 64;
/// How long deliveries wait on a host that makes none.
const WITHOUT_COURIER_MS: u64 = 30_000;
const MAX_BACKOFF: Duration = Duration::from_secs(30);

impl Runtime {
    /// Takes up a subscription's entry that was leased to this process.
    pub(crate) fn start_deliveries(&self, leased: OutboxEntry, slot: Slot) {
        let place = Place {
            effect: leased.effect,
            kind: KIND,
            slot,
            failures: leased.failures,
        };
        let rounds = Rounds {
            runtime: self.clone(),
            webhook: WebhookId::from(leased.body),
            tenant: place.slot.lane.tenant.clone(),
            failures: place.failures,
        };
        let delivers = self.courier().is_some();
        self.spawn_worker(place, async move {
            match delivers {
                true => rounds.until_done().await,
                false => rounds.put_back(WITHOUT_COURIER_MS).await,
            }
        });
    }
}

/// Work on one subscription's entry while it is leased to this process.
struct Rounds {
    runtime: Runtime,
    webhook: WebhookId,
    tenant: TenantId,
    /// How often the entry failed before.
    failures: u32,
}

/// How a round ended.
enum Round {
    /// There may be more to do now.
    Again,
    /// The entry is put off, gone, or another's.
    Over,
}

impl Rounds {
    async fn until_done(&self) {
        self.runtime.inner.crash.reach("effect.before");
        let mut backoff = Backoff::default();
        loop {
            let fault = match self.some().await {
                Ok(()) => return,
                Err(fault) => fault,
            };
            tracing::warn!(webhook = %self.webhook, error = %fault, "deliveries are held up");
            if !fault.retryable || self.runtime.is_stopping() {
                let (runtime, id) = (&self.runtime, entry_id(&self.webhook));
                return runtime
                    .put_off_effect(&id, KIND, self.failures, &fault)
                    .await;
            }
            backoff.pause().await;
        }
    }

    async fn some(&self) -> Result<(), Fault> {
        for _ in 0..ROUNDS {
            if self.runtime.is_stopping() {
                break;
            }
            if let Round::Over = self.one().await? {
                return Ok(());
            }
        }
        self.put_back(0).await;
        Ok(())
    }

    async fn put_back(&self, ms: u64) {
        let at = self.runtime.clock().now().plus_ms(ms);
        let owner = &self.runtime.inner.config.owner;
        let store = self.runtime.store();
        if let Err(fault) = store.release(&entry_id(&self.webhook), owner, at).await {
            tracing::warn!(webhook = %self.webhook, error = %fault, "it waits for the lease to run out");
        }
    }

    async fn one(&self) -> Result<Round, Fault> {
        let store = self.runtime.store();
        let Some(stored) = store.webhook(&self.webhook).await? else {
            let remove = OutboxChange::Remove(entry_id(&self.webhook));
            return self.sleep(remove, None).await;
        };
        let subscription = Arc::new(Subscription::read(&stored)?);
        let now = self.runtime.clock().now();
        if let Some(until) = health::held(&subscription.health, now) {
            // Whatever comes in meanwhile waits as well.
            let put = OutboxChange::Put(entry(&subscription.webhook, until));
            return self.sleep(put, None).await;
        }
        let given_up = subscription.health.failed_at.is_some();
        let by = if given_up { Timestamp(i64::MAX) } else { now };
        let due = store.due_deliveries(&self.webhook, by, LOOKED_AT).await?;
        if due.is_empty() {
            let next = store.next_delivery(&self.webhook).await?;
            let change = match next {
                Some(next) => OutboxChange::Put(entry(&subscription.webhook, next)),
                None => OutboxChange::Remove(entry_id(&self.webhook)),
            };
            let guard = Guard::NoDeliveryBefore {
                webhook: self.webhook.clone(),
                due: next,
            };
            return self.sleep(change, Some(guard)).await;
        }
        let changes = if given_up {
            let bury = |row| self.bury(row, "the webhook failed too often");
            due.into_iter().map(bury).collect()
        } else if !self.may_receive(&subscription, now).await? {
            let bury =
                |row| self.bury(row, "who registered the webhook may not read runs any more");
            due.into_iter().map(bury).collect()
        } else {
            self.make(&subscription, due, now).await?
        };
        self.runtime.inner.crash.reach("effect.after");
        self.record(&subscription, changes).await
    }

    async fn may_receive(&self, to: &Subscription, now: Timestamp) -> Result<bool, Fault> {
        match self.runtime.courier() {
            Some(courier) => courier.may_receive(&to.webhook, now).await,
            None => Ok(false),
        }
    }

    /// Puts the entry off or away. A delivery that came in meanwhile starts another round; an
    /// entry that is no longer ours is left alone.
    async fn sleep(&self, change: OutboxChange, guard: Option<Guard>) -> Result<Round, Fault> {
        let watched = guard.is_some();
        let commit = Commit {
            tenant: Some(self.tenant.clone()),
            outbox: vec![change],
            guards: guard.into_iter().chain([self.ours()]).collect(),
            ..Commit::default()
        };
        if self.committed(commit).await? {
            return Ok(Round::Over);
        }
        let still_ours = Commit {
            guards: vec![self.ours()],
            ..Commit::default()
        };
        let again = watched && self.committed(still_ours).await?;
        Ok(if again { Round::Again } else { Round::Over })
    }

    /// `false` when a guard objected.
    async fn committed(&self, commit: Commit) -> Result<bool, Fault> {
        match self.runtime.store().commit(commit).await {
            Ok(()) => Ok(true),
            Err(Error::Conflict(_)) => Ok(false),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }

    fn ours(&self) -> Guard {
        Guard::HoldsLease {
            effect: entry_id(&self.webhook),
            owner: self.runtime.inner.config.owner.clone(),
        }
    }

    fn bury(&self, row: DeliveryRow, why: &str) -> WebhookChange {
        let progress = buried(&row, why);
        settle(&self.runtime, row, progress)
    }

    /// Attempts what may be attempted side by side, and says what is to be recorded.
    async fn make(
        &self,
        subscription: &Arc<Subscription>,
        due: Vec<DeliveryRow>,
        now: Timestamp,
    ) -> Result<Vec<WebhookChange>, Fault> {
        let mut changes = Vec::new();
        let mut under_way = JoinSet::new();
        let mut runs = HashSet::new();
        let well = subscription.health.consecutive_failures == 0;
        let width = if well { SIDE_BY_SIDE } else { 1 };
        for row in due {
            if now.ms_since(row.created_at) > MAX_AGE_MS {
                changes.push(self.bury(row, "not delivered within three days"));
            } else if under_way.len() < width && runs.insert(row.run_id.clone()) {
                let (runtime, subscription) = (self.runtime.clone(), Arc::clone(subscription));
                under_way.spawn(async move {
                    let attempted = attempt(&runtime, &subscription, &row, now).await;
                    (row, attempted)
                });
            }
        }
        let (mut made, mut missed, mut trouble) = (0, 0, None);
        while let Some(finished) = under_way.join_next().await {
            let (row, attempted) = finished.map_err(|died| {
                self.runtime.inner.metrics.panics.inc();
                Fault::retryable("bug", died.to_string())
            })?;
            match attempted {
                Ok(attempt) => {
                    made += usize::from(matches!(attempt, Attempt::Delivered(_)));
                    missed += usize::from(matches!(attempt, Attempt::Failed(_)));
                    let progress = after(&row, attempt, now);
                    changes.push(settle(&self.runtime, row, progress));
                }
                // Never sent; it stays due.
                Err(fault) => trouble = Some(fault),
            }
        }
        if let Some(fault) = trouble.filter(|_| changes.is_empty()) {
            return Err(fault);
        }
        // A round is one look at the target: it is down when nothing got through.
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

    /// Until the record stands: what was sent is not sent again because the store was in trouble.
    async fn record(
        &self,
        subscription: &Subscription,
        changes: Vec<WebhookChange>,
    ) -> Result<Round, Fault> {
        let is_health = |change: &WebhookChange| matches!(change, WebhookChange::Health { .. });
        let health_changed = changes.iter().any(is_health);
        let mut backoff = Backoff::default();
        loop {
            let commit = Commit {
                tenant: Some(self.tenant.clone()),
                webhooks: changes.clone(),
                guards: vec![self.ours()],
                ..Commit::default()
            };
            match self.committed(commit).await {
                Ok(true) => break,
                // Deleted meanwhile, or taken over by another process.
                Ok(false) => return Ok(Round::Over),
                Err(fault) if fault.retryable && !self.runtime.is_stopping() => {
                    tracing::warn!(webhook = %self.webhook, error = %fault, "cannot record a delivery");
                    backoff.pause().await;
                }
                Err(fault) => return Err(fault),
            }
        }
        if health_changed {
            let webhooks = &self.runtime.inner.webhooks;
            webhooks.subscriptions.forget(&subscription.webhook.tenant);
        }
        Ok(Round::Again)
    }
}

/// Growing pauses while the store is in trouble.
struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(Duration::from_millis(50))
    }
}

impl Backoff {
    async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(MAX_BACKOFF);
    }
}
