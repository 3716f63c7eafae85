//! Subscriptions to events and the log of their deliveries. Written by commits, read here.
//!
//! A delivery is added in the commit that appends its event, so neither can exist without the
//! other. The log of a subscription keeps its newest [`DELIVERY_LOG_LIMIT`] rows. A row that is
//! removed before it was delivered is counted as dropped.

use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::{RunId, Seq, TenantId, Timestamp, WebhookId};

/// Limit of log rows per subscription, whatever their state.
pub const DELIVERY_LOG_LIMIT: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookChange {
    /// Registers a subscription or changes its body; its health and its log stay. The tenant is
    /// fixed by the first row.
    Put {
        webhook: WebhookId,
        tenant: TenantId,
        /// As JSON, opaque to the store.
        body: String,
    },
    /// Health of its target, as JSON. No effect when the subscription was deleted.
    Health { webhook: WebhookId, health: String },
    /// Removes the subscription and its log.
    Delete { webhook: WebhookId },
    /// Adds a delivery, due at once. No effect when the subscription was deleted.
    Deliver {
        webhook: WebhookId,
        run_id: RunId,
        seq: Seq,
        event_type: String,
        at: Timestamp,
    },
    /// Result of an attempt. No effect when the delivery was removed.
    Settle {
        webhook: WebhookId,
        number: u64,
        progress: DeliveryProgress,
    },
}

/// State of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryProgress {
    pub state: DeliveryState,
    /// How often it was attempted.
    pub attempts: u32,
    pub last_at: Option<Timestamp>,
    /// Result of the last attempt, as text for people.
    pub outcome: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be attempted, at `due` or later.
    Pending {
        due: Timestamp,
    },
    Delivered,
    /// Given up.
    Dead,
}

impl DeliveryState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredWebhook {
    pub webhook: WebhookId,
    pub tenant: TenantId,
    pub body: String,
    pub health: Option<String>,
    /// Deliveries removed from the bounded log before they were made.
    pub dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    pub webhook: WebhookId,
    /// Counts the subscription's deliveries from 1, without gaps.
    pub number: u64,
    pub run_id: RunId,
    pub seq: Seq,
    pub event_type: String,
    pub created_at: Timestamp,
    pub progress: DeliveryProgress,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryListing {
    /// Newest first.
    pub rows: Vec<DeliveryRow>,
    pub more: bool,
}

#[async_trait]
pub trait ReadWebhooks: Send + Sync {
    async fn webhook(&self, webhook: &WebhookId) -> Result<Option<StoredWebhook>, Fault>;

    /// Every subscription of a tenant, by id.
    async fn list_webhooks(&self, tenant: &TenantId) -> Result<Vec<StoredWebhook>, Fault>;

    async fn delivery(
        &self,
        webhook: &WebhookId,
        number: u64,
    ) -> Result<Option<DeliveryRow>, Fault>;

    /// Pending deliveries due at or before `now`, in the order they were added.
    async fn due_deliveries(
        &self,
        webhook: &WebhookId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, Fault>;

    /// When the next pending delivery is due, if there is one.
    async fn next_delivery(&self, webhook: &WebhookId) -> Result<Option<Timestamp>, Fault>;

    /// The log, newest first, below `before`.
    async fn list_deliveries(
        &self,
        webhook: &WebhookId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DeliveryListing, Fault>;
}
