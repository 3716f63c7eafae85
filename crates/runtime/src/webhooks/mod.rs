//! Notifies others of what happens to runs: subscriptions get events, and a run's callback URL gets
//! its open questions (`callback.rs`).
//!
//! The deliveries of an event are decided with the event, in its commit. Each subscription has one
//! outbox entry that means "there is something to deliver", so a hanging target uses one worker,
//! however many deliveries wait for it, and others continue.
//!
//! Invariants:
//! - A subscription gets only events of runs of its own tenant and, if it names one, its own
//!   workspace.
//! - A delivery is repeated under the same id until it succeeds or is given up; a lost delivery
//!   always has a record in the subscription's log.
//! - The webhook sender owns the content of a delivery and its signature; no code here has access
//!   to a secret.

mod attempt;
mod callback;
mod deliver;
mod health;
mod manage;
mod sender;
mod subscriptions;

pub use health::{WebhookStatus, webhook_status};
pub use manage::{MAX_WEBHOOKS, WebhookError};
pub use sender::{Announcement, StarterAccess, WebhookDelivery, WebhookSender};
pub use subscriptions::Subscription;

use crate::worker_slots::delivery_lane;
use subscriptions::Subscriptions;
use tandem_record::{EffectId, StreamId, Timestamp, Webhook, WebhookId};
use tandem_store::{OutboxChange, OutboxEntry};

/// Kind of the outbox entries for pending deliveries.
pub(crate) const KIND: &str = "webhook";

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
        available_at,
        attempts: 0,
        failures: 0,
        lease: None,
    }
}

fn wake(webhook: &Webhook, at: Timestamp) -> OutboxChange {
    OutboxChange::Wake(entry(webhook, at))
}
