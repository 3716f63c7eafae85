//! Epochs: how often each kind of cached data was changed. With several processes on one store, a cache
//! is valid only as long as the epoch of its kind stays the same.

use crate::commit::Commit;
use crate::fault::Fault;
use crate::webhooks::WebhookChange;
use async_trait::async_trait;

/// Data that processes cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedData {
    /// Which document each workflow id stands for.
    Registry,
    /// Webhook subscriptions and their health.
    Subscriptions,
    Keys,
}

impl CachedData {
    pub const ALL: [Self; 3] = [Self::Registry, Self::Subscriptions, Self::Keys];

    /// The number stored in rows. Part of the stored format.
    pub fn number(self) -> i64 {
        match self {
            Self::Registry => 0,
            Self::Subscriptions => 1,
            Self::Keys => 2,
        }
    }

    /// Whether a commit changes such data.
    pub fn is_changed_by(self, commit: &Commit) -> bool {
        match self {
            Self::Registry => !commit.registry.is_empty(),
            Self::Subscriptions => commit.webhooks.iter().any(|change| match change {
                WebhookChange::Put { .. }
                | WebhookChange::Health { .. }
                | WebhookChange::Delete { .. } => true,
                WebhookChange::Publish { .. }
                | WebhookChange::Expand { .. }
                | WebhookChange::Deliver { .. }
                | WebhookChange::Drop { .. }
                | WebhookChange::Settle { .. } => false,
            }),
            Self::Keys => commit.key.is_some(),
        }
    }
}

#[async_trait]
pub trait ReadEpochs: Send + Sync {
    /// The number of changes. It is raised in the transaction of each change, so data that is read
    /// after an epoch is at least as new.
    async fn epoch(&self, of: CachedData) -> Result<u64, Fault>;
}
