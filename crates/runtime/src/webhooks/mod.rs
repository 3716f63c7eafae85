//! Telling others what happens to runs: subscriptions of events that occur, and the callback of a run
//! of its questions (`callback.rs`).
//!
//! Which deliveries an event causes is decided with the event, in its commit. One outbox entry for
//! each subscription then stands for "there is something to deliver", so a target that hangs holds
//! one worker, however much waits for it, and others go on.
//!
//! Invariants:
//! - A subscription hears only of runs of its own tenant and, if it names one, its own workspace.
//! - A delivery is repeated under the same id until it succeeds or is given up; it is never lost
//!   without a trace in the subscription's log.
//! - What a delivery says, and how it is signed, is the webhook_sender's; nothing here knows a secret.

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

/// Kind of the outbox entries that stand for pending deliveries.
pub(crate) const KIND: &str = "webhook";

pub(crate) struct Webhooks {
    subscriptions: Subscriptions,
    /// Registrations and deletions one after the other, so that limits hold.
    change_lock: tokio::sync::Mutex<()>,
}

impl Webhooks {
    pub(crate) fn new(is_single_process: bool) -> Self {
        Self {
            subscriptions: Subscriptions::new(is_single_process),
            change_lock: tokio::sync::Mutex::default(),
        }
    }
}

/// The one entry of a subscription.
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
