//! The subscriptions of each tenant, cached: a tenant without any costs one map lookup per commit.

use super::feed;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tandem_engine::run::Decision;
use tandem_record::{Event, TenantId, Timestamp, Webhook, WebhookHealth};
use tandem_store::{Fault, StoredWebhook, WebhookChange};

/// Limit of tenants whose subscriptions are cached.
const MAX_TENANTS: usize = 1024;

/// A registered webhook and its health.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub webhook: Webhook,
    pub health: WebhookHealth,
    /// Deliveries that were given up before they were made: to bound the log, or because their event
    /// was purged.
    pub dropped: u64,
    /// It receives rows of its tenant's feed after this position.
    pub(super) feed_start: u64,
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
            feed_start: stored.feed_start,
        })
    }
}

/// The subscriptions of one tenant, with what any of them filters by.
#[derive(Default)]
pub(crate) struct TenantSubscriptions {
    pub(super) list: Vec<Subscription>,
    pub(super) event_types: HashSet<String>,
    pub(super) tags: HashSet<String>,
}

impl TenantSubscriptions {
    fn read(stored: &[StoredWebhook]) -> Result<Self, Fault> {
        let list = stored.iter().map(Subscription::read);
        Ok(list.collect::<Result<Vec<_>, _>>()?.into())
    }
}

impl From<Vec<Subscription>> for TenantSubscriptions {
    fn from(list: Vec<Subscription>) -> Self {
        let hooks = list.iter().map(|subscription| &subscription.webhook);
        Self {
            event_types: hooks.clone().flat_map(|h| h.events.clone()).collect(),
            tags: hooks.flat_map(|h| h.tags.clone()).collect(),
            list,
        }
    }
}

#[derive(Default)]
pub(super) struct Subscriptions {
    by_tenant: Mutex<HashMap<TenantId, Arc<TenantSubscriptions>>>,
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

    fn cached(&self, tenant: &TenantId) -> Option<Arc<TenantSubscriptions>> {
        self.by_tenant.lock().get(tenant).map(Arc::clone)
    }

    fn insert(&self, tenant: &TenantId, version: u64, subscriptions: &Arc<TenantSubscriptions>) {
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

impl Runtime {
    pub(crate) async fn subscriptions(
        &self,
        tenant: &TenantId,
    ) -> Result<Arc<TenantSubscriptions>, Fault> {
        self.refresh_subscription_cache().await?;
        match self.inner.webhooks.subscriptions.cached(tenant) {
            Some(cached) => Ok(cached),
            // Boxed: a rare path must not enlarge a future that is created for every request.
            None => Box::pin(self.read_subscriptions(tenant)).await,
        }
    }

    async fn read_subscriptions(
        &self,
        tenant: &TenantId,
    ) -> Result<Arc<TenantSubscriptions>, Fault> {
        let cache = &self.inner.webhooks.subscriptions;
        let version = cache.version.load(Ordering::Relaxed);
        let stored = self.store().list_webhooks(tenant).await?;
        let read = Arc::new(TenantSubscriptions::read(&stored)?);
        cache.insert(tenant, version, &read);
        Ok(read)
    }

    /// What a decision adds to the feed of its tenant.
    pub(crate) fn feed_rows(
        &self,
        subscriptions: &TenantSubscriptions,
        decision: &Decision,
        now: Timestamp,
    ) -> Vec<WebhookChange> {
        let Some(webhook_sender) = &self.inner.config.webhook_sender else {
            return Vec::new();
        };
        let event_type = |event: &Event| webhook_sender.event_type(event);
        feed::rows_of(decision, subscriptions, event_type, now)
    }
}
