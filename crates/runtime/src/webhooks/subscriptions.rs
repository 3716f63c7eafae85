//! Which deliveries a decision causes. The subscriptions of a tenant are kept in memory, so a
//! tenant without any pays one look into a map per commit.

use super::health::held;
use super::wake;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_engine::run::{Decision, Run};
use tandem_record::{TenantId, Timestamp, Webhook, WebhookHealth};
use tandem_store::{Fault, OutboxChange, StoredWebhook, WebhookChange};
use tokio::time::Instant;

/// Tenants whose subscriptions are kept in memory.
const MAX_TENANTS: usize = 1024;
/// How long another process's registrations may go unseen.
const FRESH: Duration = Duration::from_secs(2);

/// A subscription as it stands.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub webhook: Webhook,
    pub health: WebhookHealth,
    /// Deliveries pushed out of the log before they were made.
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

    /// Whether events of this run concern it.
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

pub(super) struct Subscriptions {
    by_tenant: Mutex<HashMap<TenantId, Known>>,
    /// Grows with every change, so that what was read before one is not kept after it.
    version: AtomicU64,
    /// No other process changes them.
    alone: bool,
}

struct Known {
    subscriptions: Arc<[Subscription]>,
    read_at: Instant,
}

impl Subscriptions {
    pub(super) fn new(alone: bool) -> Self {
        Self {
            by_tenant: Mutex::default(),
            version: AtomicU64::new(0),
            alone,
        }
    }

    pub(super) fn forget(&self, tenant: &TenantId) {
        let mut known = self.by_tenant.lock();
        self.version.fetch_add(1, Ordering::Relaxed);
        known.remove(tenant);
    }

    fn known(&self, tenant: &TenantId) -> Option<Arc<[Subscription]>> {
        let known = self.by_tenant.lock();
        let known = known.get(tenant)?;
        let fresh = self.alone || known.read_at.elapsed() < FRESH;
        fresh.then(|| Arc::clone(&known.subscriptions))
    }

    fn keep(&self, tenant: &TenantId, version: u64, subscriptions: &Arc<[Subscription]>) {
        let mut known = self.by_tenant.lock();
        if self.version.load(Ordering::Relaxed) != version {
            return;
        }
        if known.len() >= MAX_TENANTS {
            known.clear();
        }
        let subscriptions = Arc::clone(subscriptions);
        let read_at = Instant::now();
        known.insert(
            tenant.clone(),
            Known {
                subscriptions,
                read_at,
            },
        );
    }
}

/// What a commit says to subscriptions.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) changes: Vec<WebhookChange>,
    pub(crate) wakes: Vec<OutboxChange>,
}

impl Runtime {
    pub(crate) async fn subscriptions(
        &self,
        tenant: &TenantId,
    ) -> Result<Arc<[Subscription]>, Fault> {
        match self.inner.webhooks.subscriptions.known(tenant) {
            Some(known) => Ok(known),
            // What happens rarely is kept out of a future that is made for every request.
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
        cache.keep(tenant, version, &read);
        Ok(read)
    }

    /// Deliveries of a decision's own events. History that is copied into a fork, and all that a
    /// replay repeats, was told when it happened.
    pub(crate) fn told(
        &self,
        subscriptions: &[Subscription],
        decision: &Decision,
        now: Timestamp,
    ) -> Told {
        let mut told = Told::default();
        let Some(courier) = &self.inner.config.courier else {
            return told;
        };
        if decision.events.is_empty() || decision.run.request().is_replay() {
            return told;
        }
        let own = decision.run.fork_point();
        for subscription in subscriptions.iter().filter(|s| s.follows(&decision.run)) {
            let hook = &subscription.webhook;
            let before = told.changes.len();
            for recorded in decision.events.iter().filter(|r| r.seq >= own) {
                let name = courier.event_type(&recorded.event);
                if hook.events.iter().any(|wanted| wanted == name) {
                    told.changes.push(WebhookChange::Deliver {
                        webhook: hook.id.clone(),
                        run_id: decision.run.id().clone(),
                        seq: recorded.seq,
                        event_type: name.to_owned(),
                        at: now,
                    });
                }
            }
            if told.changes.len() > before {
                let at = held(&subscription.health, now).unwrap_or(now);
                told.wakes.push(wake(hook, at));
            }
        }
        told
    }
}
