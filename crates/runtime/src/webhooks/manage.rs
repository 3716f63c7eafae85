//! Subscriptions coming, change_lock and going. Each change is one commit, together with the answer
//! kept under the caller's idempotency key.

use super::{Subscription, WebhookSender, entry_id, wake};
use crate::runtime::Runtime;
use serde_json::json;
use std::sync::Arc;
use tandem_record::{Object, TenantId, Timestamp, Webhook, WebhookId, WorkspaceId};
use tandem_store::{
    AuditDraft, Commit, Conflict, DeliveryListing, DeliveryProgress, DeliveryState, Error, Fault,
    IdempotencyRecord, OutboxChange, WebhookChange,
};

/// Subscriptions each workspace may have at once, and the tenant itself.
pub const MAX_WEBHOOKS: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("there is no such webhook")]
    NotFound,
    #[error(
        "a tenant or workspace has at most {MAX_WEBHOOKS} webhooks; delete one that is not needed"
    )]
    TooMany,
    #[error("the webhook failed too often; register it anew")]
    Failed,
    /// The key was answered meanwhile; the stored answer is the answer.
    #[error("the request was answered before")]
    IdempotencyKeyUsed,
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Runtime {
    /// Who delivers; `None` when this host has no webhooks.
    pub fn webhook_sender(&self) -> Option<&Arc<dyn WebhookSender>> {
        self.inner.config.webhook_sender.as_ref()
    }

    pub async fn register_webhook(
        &self,
        webhook: &Webhook,
        answer: Option<IdempotencyRecord>,
    ) -> Result<(), WebhookError> {
        let _guard = self.inner.webhooks.change_lock.lock().await;
        let stored = self.store().list_webhooks(&webhook.tenant).await?;
        let all: Vec<Subscription> = stored
            .iter()
            .map(Subscription::read)
            .collect::<Result<_, _>>()?;
        // Each workspace has its own share: none keeps the others out.
        let same_workspace = |sub: &&Subscription| sub.webhook.workspace == webhook.workspace;
        if all.iter().filter(same_workspace).count() >= MAX_WEBHOOKS {
            return Err(WebhookError::TooMany);
        }
        let change = put(webhook);
        self.change_webhook("webhook.register", webhook, change, Vec::new(), answer)
            .await
    }

    /// Makes a new secret the one to come. Until `overlap_until` the one before it signs.
    pub async fn rotate_webhook(
        &self,
        webhook: &Webhook,
        overlap_until: Option<Timestamp>,
        answer: Option<IdempotencyRecord>,
    ) -> Result<(), WebhookError> {
        let _guard = self.inner.webhooks.change_lock.lock().await;
        let rotated = Webhook {
            generation: webhook.generation + 1,
            overlap_until,
            ..webhook.clone()
        };
        // A webhook that was deleted meanwhile must not come back.
        if self.store().webhook(&webhook.id).await?.is_none() {
            return Err(WebhookError::NotFound);
        }
        let change = put(&rotated);
        self.change_webhook("webhook.rotate", webhook, change, Vec::new(), answer)
            .await
    }

    /// Nothing is delivered any more once this returns.
    pub async fn delete_webhook(
        &self,
        webhook: &Webhook,
        answer: Option<IdempotencyRecord>,
    ) -> Result<(), WebhookError> {
        let _guard = self.inner.webhooks.change_lock.lock().await;
        if self.store().webhook(&webhook.id).await?.is_none() {
            return Err(WebhookError::NotFound);
        }
        let change = WebhookChange::Delete {
            webhook: webhook.id.clone(),
        };
        let entry = entry_id(&webhook.id);
        let outbox = vec![OutboxChange::Remove(entry.clone())];
        self.change_webhook("webhook.unregister", webhook, change, outbox, answer)
            .await?;
        self.inner.effects.abort(&entry);
        Ok(())
    }

    /// Attempts a delivery again, whatever became of it.
    pub async fn redeliver(
        &self,
        subscription: &Subscription,
        number: u64,
        answer: Option<IdempotencyRecord>,
    ) -> Result<(), WebhookError> {
        if subscription.health.failed_at.is_some() {
            return Err(WebhookError::Failed);
        }
        let webhook = &subscription.webhook;
        let row = self.store().delivery(&webhook.id, number).await?;
        let row = row.ok_or(WebhookError::NotFound)?;
        let now = self.clock().now();
        let change = WebhookChange::Settle {
            webhook: webhook.id.clone(),
            number,
            progress: DeliveryProgress {
                state: DeliveryState::Pending { due: now },
                attempts: 0,
                ..row.progress
            },
        };
        let outbox = vec![wake(webhook, now)];
        self.change_webhook("webhook.redeliver", webhook, change, outbox, answer)
            .await?;
        self.inner.effects.bell.notify_one();
        Ok(())
    }

    /// Subscriptions of a tenant and, if a workspace is given, of that one only; oldest first.
    pub async fn webhooks(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
    ) -> Result<Vec<Subscription>, Fault> {
        let stored = self.store().list_webhooks(tenant).await?;
        let mut found = stored
            .iter()
            .map(Subscription::read)
            .collect::<Result<Vec<_>, _>>()?;
        if workspace.is_some() {
            found.retain(|sub| sub.webhook.workspace.as_ref() == workspace);
        }
        Ok(found)
    }

    /// One subscription, bound like the listing.
    pub async fn webhook(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
        id: &WebhookId,
    ) -> Result<Option<Subscription>, Fault> {
        let stored = self.store().webhook(id).await?;
        let stored = stored.filter(|stored| stored.tenant == *tenant);
        let found = stored.as_ref().map(Subscription::read).transpose()?;
        Ok(found.filter(|sub| workspace.is_none() || sub.webhook.workspace.as_ref() == workspace))
    }

    /// The log of a subscription the caller may see, newest first.
    pub async fn webhook_deliveries(
        &self,
        id: &WebhookId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DeliveryListing, Fault> {
        self.store().list_deliveries(id, before, limit).await
    }

    /// `action` is what the audit log calls it. The target's address is not told: it may carry a
    /// secret.
    async fn change_webhook(
        &self,
        action: &str,
        webhook: &Webhook,
        change: WebhookChange,
        outbox: Vec<OutboxChange>,
        answer: Option<IdempotencyRecord>,
    ) -> Result<(), WebhookError> {
        let now = self.clock().now();
        let (tenant, id) = (&webhook.tenant, webhook.id.as_str());
        let details = Object::from_iter([("events".to_owned(), json!(webhook.events))]);
        let audit = AuditDraft::new(now, Some(tenant), self.actor(), action, id, details);
        let commit = Commit {
            tenant: Some(tenant.clone()),
            webhooks: vec![change],
            outbox,
            idempotency: answer,
            audit: vec![audit],
            ..Commit::default()
        };
        let result = self.store().commit(commit).await;
        // Whether or not it failed: a fault may hide a commit that stands.
        self.inner
            .webhooks
            .subscriptions
            .invalidate(&webhook.tenant);
        match result {
            Ok(()) => Ok(()),
            Err(Error::Conflict(Conflict::KeyUsed)) => Err(WebhookError::IdempotencyKeyUsed),
            Err(Error::Conflict(conflict)) => {
                Err(Fault::retryable("contended", conflict.to_string()).into())
            }
            Err(Error::Fault(fault)) => Err(fault.into()),
        }
    }
}

fn put(webhook: &Webhook) -> WebhookChange {
    WebhookChange::Put {
        webhook: webhook.id.clone(),
        tenant: webhook.tenant.clone(),
        body: serde_json::to_string(webhook).expect("a webhook is plain data"),
    }
}
