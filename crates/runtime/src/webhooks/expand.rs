//! Expands the feed of a tenant to the deliveries of its subscriptions, after the commits that
//! filled it. One outbox entry per tenant means "there is something to expand". Its commits are
//! bounded and take the tenant's own turns of the store, so they delay no other tenant.
//!
//! The work is never urgent: after a commit the worker pauses for as long as the commit took, so a
//! busy store spends at most half of its transactions on expansions of one tenant.
//!
//! The deliveries of a commit and how far the feed is expanded are written together: a crash at any
//! point neither loses a delivery nor adds it twice.

use super::feed::{Chunk, ROWS_PER_CHUNK};
use super::health::hold_until_after;
use super::leased_entry::LeasedEntry;
use super::{FEED_KIND, Subscription, feed_entry_id, wake};
use crate::effects::WorkAssignment;
use crate::runtime::Runtime;
use crate::worker_slots::WorkerSlot;
use tandem_record::WebhookId;
use tandem_store::{
    Commit, CommitGuard, Fault, Lease, OutboxChange, OutboxEntry, WebhookChange, WebhookFeed,
};
use tokio::time::Instant;

/// Changes after which a commit is complete. The last subscription may add a few more.
const CHANGES_PER_COMMIT: usize = 32;
/// Chunks before the worker is released for others.
const CHUNKS: usize = 16;

impl Runtime {
    /// Works on a tenant's feed entry that is leased to this process.
    pub(crate) fn start_expansion(&self, leased: OutboxEntry, slot: WorkerSlot, lease: Lease) {
        let worker = ExpansionWorker(LeasedEntry {
            runtime: self.clone(),
            tenant: slot.lane.tenant.clone(),
            effect: leased.effect.clone(),
            lease: lease.id.clone(),
            kind: FEED_KIND,
            failures: leased.failures,
        });
        let assignment = WorkAssignment {
            effect: leased.effect,
            kind: FEED_KIND,
            slot,
            lease,
            failures: leased.failures,
        };
        self.spawn_worker(assignment, async move {
            worker.0.retry_until_done(|| worker.expand_feed()).await;
        });
    }
}

/// Work on one tenant's feed entry.
struct ExpansionWorker(LeasedEntry);

/// Whether the worker goes on.
enum Expansion {
    Continues,
    /// The entry is removed, or leased to another process.
    Over,
}

impl ExpansionWorker {
    async fn expand_feed(&self) -> Result<(), Fault> {
        for _ in 0..CHUNKS {
            if self.0.runtime.is_stopping() {
                break;
            }
            if let Expansion::Over = self.expand_chunk().await? {
                return Ok(());
            }
        }
        self.0.release(0).await;
        Ok(())
    }

    async fn expand_chunk(&self) -> Result<Expansion, Fault> {
        let feed = self.read_feed().await?;
        let head = feed.head;
        let Some(chunk) = Chunk::select(feed)? else {
            return self.finish(Commit::default(), head).await;
        };
        let runtime = &self.0.runtime;
        let stored = runtime.store().list_webhooks(&self.0.tenant).await?;
        let left = stored.iter().filter(|sub| chunk.is_left_for(&sub.webhook));
        let now = runtime.clock().now();
        let mut commit = Commit::default();
        for stored in left {
            let subscription = Subscription::read(stored)?;
            let deliveries = chunk.deliveries_for(&subscription);
            if deliveries.is_empty() {
                continue;
            }
            let at = hold_until_after(&subscription.health, now).unwrap_or(now);
            commit.outbox.push(wake(&subscription.webhook, at));
            commit.webhooks.extend(deliveries);
            if commit.webhooks.len() + commit.outbox.len() >= CHANGES_PER_COMMIT {
                let through = Some(stored.webhook.clone());
                let complete = std::mem::take(&mut commit);
                if !self.commit(complete, chunk.end, through).await? {
                    return Ok(Expansion::Over);
                }
            }
        }
        if chunk.end == head {
            commit.webhooks.push(self.progress(chunk.end, None));
            return self.finish(commit, head).await;
        }
        Ok(match self.commit(commit, chunk.end, None).await? {
            true => Expansion::Continues,
            false => Expansion::Over,
        })
    }

    async fn read_feed(&self) -> Result<WebhookFeed, Fault> {
        let (store, tenant) = (self.0.runtime.store(), &self.0.tenant);
        let feed = store.webhook_feed(tenant, ROWS_PER_CHUNK).await?;
        match Chunk::rows_needed(&feed) {
            0..=ROWS_PER_CHUNK => Ok(feed),
            more => store.webhook_feed(tenant, more).await,
        }
    }

    fn progress(&self, chunk_end: u64, through: Option<WebhookId>) -> WebhookChange {
        WebhookChange::Expand {
            tenant: self.0.tenant.clone(),
            chunk_end,
            through,
        }
    }

    /// `false` when the entry is not leased to this process any more.
    async fn commit(
        &self,
        mut commit: Commit,
        chunk_end: u64,
        through: Option<WebhookId>,
    ) -> Result<bool, Fault> {
        commit.webhooks.push(self.progress(chunk_end, through));
        let started = Instant::now();
        let committed = self.0.commit(commit).await?;
        if committed {
            self.0.runtime.inner.effects.bell.notify_one();
            tokio::time::sleep(started.elapsed()).await;
        }
        Ok(committed)
    }

    /// Commits the rest and removes the entry, unless a row was added in the meantime.
    async fn finish(&self, rest: Commit, head: u64) -> Result<Expansion, Fault> {
        let mut last = rest.clone();
        let entry = feed_entry_id(&self.0.tenant);
        last.outbox.push(OutboxChange::Remove(entry));
        last.guards.push(CommitGuard::FeedEndsAt {
            tenant: self.0.tenant.clone(),
            position: head,
        });
        let bell = &self.0.runtime.inner.effects.bell;
        if self.0.commit(last).await? {
            bell.notify_one();
            return Ok(Expansion::Over);
        }
        if self.0.commit(rest).await? {
            bell.notify_one();
            return Ok(Expansion::Continues);
        }
        Ok(Expansion::Over)
    }
}
