//! What a run's commit adds to the feed of its tenant, and which deliveries a subscription gets
//! from a chunk of the feed. No I/O.
//!
//! A chunk is expanded for one subscription after the other, perhaps by several processes, one
//! after the other. Its end is recorded with its first deliveries, and its rows stay until it is
//! done. So everybody who continues it computes the same deliveries.

use super::Subscription;
use super::subscriptions::TenantSubscriptions;
use serde::{Deserialize, Serialize};
use tandem_engine::run::Decision;
use tandem_record::{Event, RunId, Seq, Timestamp, WebhookId, WorkspaceId};
use tandem_store::{DELIVERY_LOG_LIMIT, Fault, WebhookChange, WebhookFeed};

/// Limit of events in one row of the feed. A decision with more adds several rows.
const EVENTS_PER_ROW: usize = EVENTS_PER_CHUNK;
/// Limit of events in a chunk, and so of its deliveries to one subscription.
const EVENTS_PER_CHUNK: usize = 32;
/// Rows that are enough for a chunk: each has at least one event.
pub(super) const ROWS_PER_CHUNK: usize = EVENTS_PER_CHUNK;
/// Length above which the feed is shortened: expanding it takes longer than filling it.
const MAX_FEED_ROWS: u64 = DELIVERY_LOG_LIMIT;
/// Rows of a chunk that shortens the feed.
const ROWS_TO_SHORTEN: usize = 1024;
/// Deliveries that a subscription gets from a chunk that shortens the feed: the newest. The others
/// are counted as dropped. A subscription to rare events loses none.
const KEPT_WHEN_SHORTENED: usize = 16;

/// Events of one decision that some subscription may receive. The body of a feed row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PublishedEvents {
    run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<WorkspaceId>,
    /// Tags of the run by which subscriptions filter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    at: Timestamp,
    /// Sequence and public name.
    events: Vec<(Seq, String)>,
}

impl PublishedEvents {
    /// The events that the subscription receives.
    fn wanted_by<'a>(
        &'a self,
        subscription: &'a Subscription,
    ) -> impl Iterator<Item = &'a (Seq, String)> {
        let hook = &subscription.webhook;
        let failed_before = subscription
            .health
            .failed_at
            .is_some_and(|failed| failed <= self.at);
        let follows = !failed_before
            && (hook.workspace.is_none() || hook.workspace == self.workspace)
            && (hook.tags.is_empty() || hook.tags.iter().any(|tag| self.tags.contains(tag)));
        let events = self.events.iter().filter(move |_| follows);
        events.filter(|(_, name)| hook.events.iter().any(|wanted| wanted == name))
    }
}

/// Rows of the feed for a decision's own events; none when no subscription receives any. Events
/// copied into a fork, and everything a replay repeats, were published when they first happened.
pub(super) fn rows_of(
    decision: &Decision,
    subscriptions: &TenantSubscriptions,
    event_type: impl Fn(&Event) -> &'static str,
    at: Timestamp,
) -> Vec<WebhookChange> {
    let request = decision.after.request();
    if request.is_replay() {
        return Vec::new();
    }
    let own = decision.after.fork_point();
    let named = decision.events.iter().filter(|r| r.seq >= own);
    let events: Vec<(Seq, String)> = named
        .map(|recorded| (recorded.seq, event_type(&recorded.event)))
        .filter(|(_, name)| subscriptions.event_types.contains(*name))
        .map(|(seq, name)| (seq, name.to_owned()))
        .collect();
    if events.is_empty() {
        return Vec::new();
    }
    let tags = request.options.tags.iter().flatten();
    let all = PublishedEvents {
        run: decision.after.id().clone(),
        workspace: request.owner.workspace.clone(),
        tags: tags
            .filter(|tag| subscriptions.tags.contains(*tag))
            .cloned()
            .collect(),
        at,
        events,
    };
    let is_wanted = |subscription| all.wanted_by(subscription).next().is_some();
    if !subscriptions.list.iter().any(is_wanted) {
        return Vec::new();
    }
    let rows = all.events.chunks(EVENTS_PER_ROW);
    rows.map(|events| WebhookChange::Publish {
        tenant: request.owner.tenant.clone(),
        body: serde_json::to_string(&PublishedEvents {
            events: events.to_vec(),
            ..all.clone()
        })
        .expect("published events are plain data"),
    })
    .collect()
}

/// The first rows of a feed, and which subscriptions have their deliveries of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The last row.
    pub(super) end: u64,
    /// The last subscription that has its deliveries.
    through: Option<WebhookId>,
    rows: Vec<(u64, PublishedEvents)>,
}

impl Chunk {
    /// How many rows must be read to select the next chunk of this feed.
    pub(super) fn rows_needed(feed: &WebhookFeed) -> usize {
        let Some(first) = feed.rows.first() else {
            return 0;
        };
        match &feed.chunk {
            Some((end, _)) => usize::try_from(end + 1 - first.position).unwrap_or(usize::MAX),
            None if feed.head - first.position >= MAX_FEED_ROWS => ROWS_TO_SHORTEN,
            None => ROWS_PER_CHUNK,
        }
    }

    /// The chunk under way, or the next one; `None` when the feed is empty.
    pub(super) fn select(feed: WebhookFeed) -> Result<Option<Self>, Fault> {
        let limit = Self::rows_needed(&feed);
        let mut rows: Vec<(u64, PublishedEvents)> = Vec::new();
        let mut events = 0;
        for row in feed.rows.into_iter().take(limit) {
            let published: PublishedEvents = serde_json::from_str(&row.body).map_err(|error| {
                let message = format!("row {} of the feed is unreadable: {error}", row.position);
                Fault::permanent("corrupt", message)
            })?;
            events += published.events.len();
            let is_new = feed.chunk.is_none() && limit <= ROWS_PER_CHUNK;
            if is_new && events > EVENTS_PER_CHUNK && !rows.is_empty() {
                break;
            }
            rows.push((row.position, published));
        }
        Ok(rows.last().map(|(end, _)| *end).map(|end| Self {
            end,
            through: feed.chunk.map(|(_, webhook)| webhook),
            rows,
        }))
    }

    /// Whether the subscription still has to get its deliveries.
    pub(super) fn is_left_for(&self, webhook: &WebhookId) -> bool {
        self.through.as_ref().is_none_or(|last| webhook > last)
    }

    /// What the subscription gets from the rows added after it was registered.
    pub(super) fn deliveries_for(&self, subscription: &Subscription) -> Vec<WebhookChange> {
        let webhook = &subscription.webhook.id;
        let mut deliveries: Vec<WebhookChange> = Vec::new();
        for (position, published) in &self.rows {
            if *position <= subscription.feed_start {
                continue;
            }
            let wanted = published.wanted_by(subscription);
            deliveries.extend(wanted.map(|(seq, name)| WebhookChange::Deliver {
                webhook: webhook.clone(),
                run_id: published.run.clone(),
                seq: *seq,
                event_type: name.clone(),
                at: published.at,
            }));
        }
        let shortens = self.rows.len() > ROWS_PER_CHUNK;
        let surplus = deliveries.len().saturating_sub(KEPT_WHEN_SHORTENED);
        if shortens && surplus > 0 {
            let dropped = WebhookChange::Drop {
                webhook: webhook.clone(),
                count: surplus as u64,
            };
            deliveries.splice(..surplus, [dropped]);
        }
        deliveries
    }
}

#[cfg(test)]
mod tests;
