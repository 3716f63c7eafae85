//! Which deliveries a decision causes. The subscriptions of a tenant are cached, so a tenant
//! without any costs one map lookup per commit.

use super::health::hold_until_after;
use super::wake;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tandem_engine::run::{Decision, Run};
use tandem_record::{TenantId, Timestamp, Webhook, WebhookHealth};
use tandem_store::{Fault, OutboxChange, StoredWebhook, WebhookChange};

/// Limit of tenants whose subscriptions are cached.
const MAX_TENANTS: usize = 1024;

/// A registered webhook and its health.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub webhook: Webhook,
    pub health: WebhookHealth,
    /// Deliveries removed from the log before they were made.
    pub dropped: u64,
}

impl Subscription {
    pub(super) fn read(stored: &StoredWebhook) -> Result<Self, Fault> {
        let unreadable = |error: serde_json::Error| {
            let message = format!("webhook {} is unreadable: {error}", stored.webhook);
            Fault::permanent("corrupt", message)
        };
        let health = stored.health.as_deref().map(serde_json::from_str);
        Ok(Self {
            webhook: serde_json::from_str(&stored.body).map_err(unreadable)?,
            health: health.transpose().map_err(unreadable)?.unwrap_or_default(),
            dropped: stored.dropped,
        })
    }

    /// Whether it receives events of this run.
    fn follows(&self, run: &Run) -> bool {
        let request = run.request();
        let (owner, hook) = (&request.owner, &self.webhook);
        let tagged = |tag: &String| request.options.tags.iter().flatten().any(|t| t == tag);
        self.health.failed_at.is_none()
            && owner.tenant == hook.tenant
            && (hook.workspace.is_none() || hook.workspace == owner.workspace)
            && (hook.tags.is_empty() || hook.tags.iter().any(tagged))
    }
}

#[derive(Default)]
pub(super) struct Subscriptions {
    by_tenant: Mutex<HashMap<TenantId, Arc<[Subscription]>>>,
    /// Incremented with every change, so that what was read before a change is not cached after it.
    version: AtomicU64,
}

impl Subscriptions {
    pub(super) fn invalidate_all(&self) {
        let mut cached = self.by_tenant.lock();
        self.version.fetch_add(1, Ordering::Relaxed);
        cached.clear();
    }

    pub(super) fn invalidate(&self, tenant: &TenantId) {
        let mut cached = self.by_tenant.lock();
        self.version.fetch_add(1, Ordering::Relaxed);
        cached.remove(tenant);
    }

    fn cached(&self, tenant: &TenantId) -> Option<Arc<[Subscription]>> {
        self.by_tenant.lock().get(tenant).map(Arc::clone)
    }

    fn insert(&self, tenant: &TenantId, version: u64, subscriptions: &Arc<[Subscription]>) {
        let mut cached = self.by_tenant.lock();
        if self.version.load(Ordering::Relaxed) != version {
            return;
        }
        if cached.len() >= MAX_TENANTS {
            cached.clear();
        }
        cached.insert(tenant.clone(), Arc::clone(subscriptions));
    }
}

/// Deliveries and outbox entries that one decision causes.
#[derive(Default)]
pub(crate) struct PlannedDeliveries {
    pub(crate) changes: Vec<WebhookChange>,
    pub(crate) wakes: Vec<OutboxChange>,
}

impl Runtime {
    pub(crate) async fn subscriptions(
        &self,
        tenant: &TenantId,
    ) -> Result<Arc<[Subscription]>, Fault> {
        self.refresh_subscription_cache().await?;
        match self.inner.webhooks.subscriptions.cached(tenant) {
            Some(cached) => Ok(cached),
            // Boxed: a rare path must not enlarge a future that is created for every request.
            None => Box::pin(self.read_subscriptions(tenant)).await,
        }
    }

    async fn read_subscriptions(&self, tenant: &TenantId) -> Result<Arc<[Subscription]>, Fault> {
        let cache = &self.inner.webhooks.subscriptions;
        let version = cache.version.load(Ordering::Relaxed);
        let stored = self.store().list_webhooks(tenant).await?;
        let read: Arc<[Subscription]> = stored
            .iter()
            .map(Subscription::read)
            .collect::<Result<_, _>>()?;
        cache.insert(tenant, version, &read);
        Ok(read)
    }

    /// Deliveries of a decision's own events. Events copied into a fork, and everything a replay
    /// repeats, were delivered when they first happened.
    pub(crate) fn plan_deliveries(
        &self,
        subscriptions: &[Subscription],
        decision: &Decision,
        now: Timestamp,
    ) -> PlannedDeliveries {
        let mut planned = PlannedDeliveries::default();
        let Some(webhook_sender) = &self.inner.config.webhook_sender else {
            return planned;
        };
        if decision.events.is_empty() || decision.run.request().is_replay() {
            return planned;
        }
        let own = decision.run.fork_point();
        for subscription in subscriptions.iter().filter(|s| s.follows(&decision.run)) {
            let hook = &subscription.webhook;
            let before = planned.changes.len();
            for recorded in decision.events.iter().filter(|r| r.seq >= own) {
                let name = webhook_sender.event_type(&recorded.event);
                if hook.events.iter().any(|event_type| event_type == name) {
                    planned.changes.push(WebhookChange::Deliver {
                        webhook: hook.id.clone(),
                        run_id: decision.run.id().clone(),
                        seq: recorded.seq,
                        event_type: name.to_owned(),
                        at: now,
                    });
                }
            }
            if planned.changes.len() > before {
                let at = hold_until_after(&subscription.health, now).unwrap_or(now);
                planned.wakes.push(wake(hook, at));
            }
        }
        planned
    }
}
