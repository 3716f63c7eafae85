//! Notifies others of what happens to runs: subscriptions get events, and a run's callback URL gets
//! its open questions (`callback.rs`).
//!
//! The commit of an event adds one row to the feed of its tenant, however many subscriptions there
//! are (`feed.rs`). Later commits expand the feed to deliveries (`expand.rs`). Each subscription has
//! one outbox entry that means "there is something to deliver", so a hanging target uses one worker,
//! however many deliveries wait for it, and others continue.
//!
//! Invariants:
//! - A subscription gets the events committed after it was registered, in their order.
//! - A subscription gets only events of runs of its own tenant and, if it names one, its own
//!   workspace.
//! - A delivery is repeated under the same id until it succeeds or is given up; a lost delivery
//!   always has a record in the subscription's log.
//! - The webhook sender owns the content of a delivery and its signature; no code here has access
//!   to a secret.

mod attempt;
mod callback;
mod deliver;
mod expand;
mod feed;
mod health;
mod leased_entry;
mod manage;
mod sender;
mod subscriptions;

pub(crate) use callback::NotifyOutcome;
pub use health::{WebhookStatus, webhook_status};
pub use manage::{MAX_WEBHOOKS, WebhookError};
pub use sender::{Announcement, StarterAccess, WebhookDelivery, WebhookSender};
pub use subscriptions::Subscription;
pub(crate) use subscriptions::TenantSubscriptions;

use crate::worker_slots::{delivery_lane, internal_lane};
use subscriptions::Subscriptions;
use tandem_record::{EffectId, StreamId, TenantId, Timestamp, Webhook, WebhookId};
use tandem_store::{OutboxChange, OutboxEntry};

/// Kind of the outbox entries for pending deliveries.
pub(crate) const KIND: &str = "webhook";
/// Kind of the outbox entries for feeds that are to be expanded.
pub(crate) const FEED_KIND: &str = "webhook_feed";

#[derive(Default)]
pub(crate) struct Webhooks {
    subscriptions: Subscriptions,
    /// Serializes registrations and deletions, so that limits hold.
    change_lock: tokio::sync::Mutex<()>,
}

impl Webhooks {
    /// Another process changed subscriptions.
    pub(crate) fn invalidate_subscriptions(&self) {
        self.subscriptions.invalidate_all();
    }
}

/// The id of a subscription's only outbox entry.
fn entry_id(webhook: &WebhookId) -> EffectId {
    EffectId::new(format!("webhook:{webhook}"))
}

fn entry(webhook: &Webhook, available_at: Timestamp) -> OutboxEntry {
    OutboxEntry {
        effect: entry_id(&webhook.id),
        stream: StreamId::new(format!("webhook:{}", webhook.id)),
        kind: KIND.to_owned(),
        body: webhook.id.to_string(),
        lane: delivery_lane(&webhook.tenant, &webhook.url),
        order_key: None,
        available_at,
        attempts: 0,
        failures: 0,
        lease: None,
    }
}

/// The id of the only outbox entry of a tenant's feed, and the name of its stream.
fn feed_entry_id(tenant: &TenantId) -> EffectId {
    EffectId::new(format!("{FEED_KIND}:{tenant}"))
}

/// The stream of a tenant's feed entry: parked work is listed and retried by it.
pub(crate) fn feed_stream(tenant: &TenantId) -> StreamId {
    StreamId::new(format!("{FEED_KIND}:{tenant}"))
}

/// Makes the tenant's feed due to be expanded.
pub(crate) fn wake_feed(tenant: &TenantId, at: Timestamp) -> OutboxChange {
    OutboxChange::Wake(OutboxEntry {
        effect: feed_entry_id(tenant),
        stream: feed_stream(tenant),
        kind: FEED_KIND.to_owned(),
        body: String::new(),
        lane: internal_lane(tenant),
        order_key: None,
        available_at: at,
        attempts: 0,
        failures: 0,
        lease: None,
    })
}

fn wake(webhook: &Webhook, at: Timestamp) -> OutboxChange {
    OutboxChange::Wake(entry(webhook, at))
}
