//! Subscriptions to events, the feed of each tenant, and the log of deliveries of each
//! subscription. Written by commits, read here.
//!
//! The commit that appends an event also adds a row to its tenant's feed, so neither can exist
//! without the other, and the cost does not depend on the number of subscriptions. Later commits
//! expand the feed: they add the deliveries of a chunk of rows, one subscription after the other in
//! order of their ids, and record how far they are. The last one removes the chunk.
//!
//! The log of a subscription keeps its newest [`DELIVERY_LOG_LIMIT`] rows. A row that is removed
//! before it was delivered is counted as dropped.

use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::{RunId, Seq, TenantId, Timestamp, WebhookId};

/// Limit of log rows per subscription, whatever their state.
pub const DELIVERY_LOG_LIMIT: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookChange {
    /// Registers a subscription or changes its body; its health and its log stay. The tenant is
    /// fixed by the first row, and so is the position in the feed after which it receives events.
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
    /// Adds a row to the tenant's feed.
    Publish {
        tenant: TenantId,
        /// As JSON, opaque to the store.
        body: String,
    },
    /// Records how far the tenant's feed is expanded.
    Expand {
        tenant: TenantId,
        /// The last row of the chunk.
        chunk_end: u64,
        /// The last subscription that has its deliveries of the chunk; `None` when all have them,
        /// which removes the rows of the chunk.
        through: Option<WebhookId>,
    },
    /// Counts deliveries as dropped: those that were not added because the feed was too long, or whose
    /// event was purged. No effect when the subscription was deleted.
    Drop { webhook: WebhookId, count: u64 },
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
    /// Deliveries removed from the bounded log before they were made, never added to it, or without
    /// an event to deliver.
    pub dropped: u64,
    /// It receives rows of the feed after this position: the end of the feed when it was
    /// registered.
    pub feed_start: u64,
}

/// The feed of a tenant from its first row on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookFeed {
    /// Position of the last row that was ever added; 0 before the first.
    pub head: u64,
    /// The chunk under way: its last row, and the last subscription that has its deliveries.
    pub chunk: Option<(u64, WebhookId)>,
    /// In order of their positions, without gaps.
    pub rows: Vec<FeedRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRow {
    /// Counts the tenant's rows from 1.
    pub position: u64,
    pub body: String,
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

    /// The feed of a tenant with its first rows, up to the limit.
    async fn webhook_feed(&self, tenant: &TenantId, limit: usize) -> Result<WebhookFeed, Fault>;

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
