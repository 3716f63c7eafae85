//! Subscriptions, each with its log of deliveries, and the feeds of tenants.

use super::MemoryStore;
use super::state::State;
use crate::fault::Fault;
use crate::webhooks::{
    DELIVERY_LOG_LIMIT, DeliveryListing, DeliveryProgress, DeliveryRow, DeliveryState, FeedRow,
    ReadWebhooks, StoredWebhook, WebhookChange, WebhookFeed,
};
use async_trait::async_trait;
use std::collections::BTreeMap;
use tandem_record::{TenantId, Timestamp, WebhookId};

pub(super) struct Subscription {
    tenant: TenantId,
    body: String,
    health: Option<String>,
    last_number: u64,
    dropped: u64,
    feed_start: u64,
    log: BTreeMap<u64, DeliveryRow>,
}

/// Events of a tenant that are not expanded to deliveries yet.
#[derive(Default)]
pub(super) struct Feed {
    head: u64,
    chunk: Option<(u64, WebhookId)>,
    rows: BTreeMap<u64, String>,
}

impl Subscription {
    pub(super) fn body(&self) -> &str {
        &self.body
    }

    /// When the next pending delivery is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.log.values().filter_map(due).min()
    }

    fn append(&mut self, row: DeliveryRow) {
        self.last_number = row.number;
        self.log.insert(row.number, row);
        let oldest = (self.last_number + 1).saturating_sub(DELIVERY_LOG_LIMIT);
        let retained = self.log.split_off(&oldest);
        let removed = std::mem::replace(&mut self.log, retained);
        self.dropped += removed.values().filter_map(due).count() as u64;
    }

    fn stored(&self, webhook: &WebhookId) -> StoredWebhook {
        StoredWebhook {
            webhook: webhook.clone(),
            tenant: self.tenant.clone(),
            body: self.body.clone(),
            health: self.health.clone(),
            dropped: self.dropped,
            feed_start: self.feed_start,
        }
    }
}

fn due(row: &DeliveryRow) -> Option<Timestamp> {
    match row.progress.state {
        DeliveryState::Pending { due } => Some(due),
        DeliveryState::Delivered | DeliveryState::Dead => None,
    }
}

impl State {
    pub(super) fn feed_head(&self, tenant: &TenantId) -> u64 {
        self.feeds.get(tenant).map_or(0, |feed| feed.head)
    }

    fn expand_feed(&mut self, tenant: TenantId, chunk_end: u64, through: Option<WebhookId>) {
        let feed = self.feeds.entry(tenant).or_default();
        if through.is_none() {
            feed.rows = feed.rows.split_off(&(chunk_end + 1));
        }
        feed.chunk = through.map(|webhook| (chunk_end, webhook));
    }

    pub(super) fn change_webhook(&mut self, change: WebhookChange) {
        match change {
            WebhookChange::Put {
                webhook,
                tenant,
                body,
            } => match self.webhooks.get_mut(&webhook) {
                Some(there) => there.body = body,
                None => {
                    let fresh = Subscription {
                        feed_start: self.feed_head(&tenant),
                        tenant,
                        body,
                        health: None,
                        last_number: 0,
                        dropped: 0,
                        log: BTreeMap::new(),
                    };
                    self.webhooks.insert(webhook, fresh);
                }
            },
            WebhookChange::Health { webhook, health } => {
                if let Some(there) = self.webhooks.get_mut(&webhook) {
                    there.health = Some(health);
                }
            }
            WebhookChange::Delete { webhook } => {
                self.webhooks.remove(&webhook);
            }
            WebhookChange::Publish { tenant, body } => {
                let feed = self.feeds.entry(tenant).or_default();
                feed.head += 1;
                feed.rows.insert(feed.head, body);
            }
            WebhookChange::Expand {
                tenant,
                chunk_end,
                through,
            } => self.expand_feed(tenant, chunk_end, through),
            WebhookChange::Drop { webhook, count } => {
                if let Some(there) = self.webhooks.get_mut(&webhook) {
                    there.dropped += count;
                }
            }
            WebhookChange::Deliver {
                webhook,
                run_id,
                seq,
                event_type,
                at,
            } => {
                if let Some(there) = self.webhooks.get_mut(&webhook) {
                    there.append(DeliveryRow {
                        webhook,
                        number: there.last_number + 1,
                        run_id,
                        seq,
                        event_type,
                        created_at: at,
                        progress: DeliveryProgress {
                            state: DeliveryState::Pending { due: at },
                            attempts: 0,
                            last_at: None,
                            outcome: None,
                        },
                    });
                }
            }
            WebhookChange::Settle {
                webhook,
                number,
                progress,
            } => {
                let log = self.webhooks.get_mut(&webhook).map(|there| &mut there.log);
                if let Some(row) = log.and_then(|log| log.get_mut(&number)) {
                    row.progress = progress;
                }
            }
        }
    }
}

#[async_trait]
impl ReadWebhooks for MemoryStore {
    async fn webhook(&self, webhook: &WebhookId) -> Result<Option<StoredWebhook>, Fault> {
        let state = self.state()?;
        Ok(state.webhooks.get(webhook).map(|sub| sub.stored(webhook)))
    }

    async fn list_webhooks(&self, tenant: &TenantId) -> Result<Vec<StoredWebhook>, Fault> {
        let state = self.state()?;
        Ok(state
            .webhooks
            .iter()
            .filter(|(_, sub)| sub.tenant == *tenant)
            .map(|(webhook, sub)| sub.stored(webhook))
            .collect())
    }

    async fn webhook_feed(&self, tenant: &TenantId, limit: usize) -> Result<WebhookFeed, Fault> {
        let state = self.state()?;
        let Some(feed) = state.feeds.get(tenant) else {
            return Ok(WebhookFeed::default());
        };
        let rows = feed.rows.iter().take(limit);
        Ok(WebhookFeed {
            head: feed.head,
            chunk: feed.chunk.clone(),
            rows: rows
                .map(|(&position, body)| FeedRow {
                    position,
                    body: body.clone(),
                })
                .collect(),
        })
    }

    async fn delivery(
        &self,
        webhook: &WebhookId,
        number: u64,
    ) -> Result<Option<DeliveryRow>, Fault> {
        let state = self.state()?;
        let log = state.webhooks.get(webhook).map(|sub| &sub.log);
        Ok(log.and_then(|log| log.get(&number)).cloned())
    }

    async fn due_deliveries(
        &self,
        webhook: &WebhookId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, Fault> {
        let state = self.state()?;
        let log = state.webhooks.get(webhook).map(|sub| sub.log.values());
        Ok(log
            .into_iter()
            .flatten()
            .filter(|row| due(row).is_some_and(|due| due <= now))
            .take(limit)
            .cloned()
            .collect())
    }

    async fn next_delivery(&self, webhook: &WebhookId) -> Result<Option<Timestamp>, Fault> {
        let state = self.state()?;
        Ok(state.webhooks.get(webhook).and_then(Subscription::next))
    }

    async fn list_deliveries(
        &self,
        webhook: &WebhookId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DeliveryListing, Fault> {
        let state = self.state()?;
        let log = state.webhooks.get(webhook).map(|sub| &sub.log);
        let mut older = log
            .into_iter()
            .flat_map(|log| log.range(..before.unwrap_or(u64::MAX)).rev())
            .map(|(_, row)| row);
        let rows = older.by_ref().take(limit).cloned().collect();
        Ok(DeliveryListing {
            rows,
            more: older.next().is_some(),
        })
    }
}
