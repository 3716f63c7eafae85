//! Creating, changing and deleting subscriptions. Each change is one commit, together with the
//! idempotency record of the request.

use super::{Subscription, WebhookSender, entry_id, wake};
use crate::runtime::Runtime;
use serde_json::json;
use std::sync::Arc;
use tandem_record::{
    MAX_SIGNING_SECRETS, Object, TenantId, Timestamp, TooManySecrets, Webhook, WebhookId,
    WorkspaceId,
};
use tandem_store::{
    AuditDraft, Commit, CommitGuard, Conflict, DeliveryListing, DeliveryProgress, DeliveryState,
    Error, Fault, IdempotencyRecord, OutboxChange, WebhookChange,
};

/// Limit of subscriptions per workspace, and for the tenant itself.
pub const MAX_WEBHOOKS: usize = 100;

#[derive(Debug, Clone, thiserror::Error)]
pub enum WebhookError {
    #[error("there is no such webhook")]
    NotFound,
    #[error(
        "a tenant or workspace has at most {MAX_WEBHOOKS} webhooks; delete one that is not needed"
    )]
    TooMany,
    #[error("the webhook failed too often; register it anew")]
    Failed,
    /// As many secrets sign as may.
    #[error(
        "{MAX_SIGNING_SECRETS} secrets of the webhook sign already; rotate again from {} on, or with \
         overlapSeconds 0, which ends all old secrets at once", .next_rotation_at.rfc3339()
    )]
    TooManySecrets { next_rotation_at: Timestamp },
    /// The key was used in the meantime; the stored response is the response.
    #[error("the request was answered before")]
    IdempotencyKeyUsed,
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<TooManySecrets> for WebhookError {
    fn from(refused: TooManySecrets) -> Self {
        Self::TooManySecrets {
            next_rotation_at: refused.next_rotation_at,
        }
    }
}

impl Runtime {
    /// The webhook sender; `None` when this host has no webhooks.
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
        // Each workspace has its own limit, so that none blocks the others.
        let same_workspace = |sub: &&Subscription| sub.webhook.workspace == webhook.workspace;
        if all.iter().filter(same_workspace).count() >= MAX_WEBHOOKS {
            return Err(WebhookError::TooMany);
        }
        let commit = Commit {
            webhooks: vec![put(webhook)],
            ..Commit::default()
        };
        self.change_webhook("webhook.register", webhook, commit, answer)
            .await
    }

    /// Adds the secret after that of `webhook`. Until `overlap_until` the previous one still signs;
    /// without it no old secret signs any more. Earlier overlaps end when they were promised to.
    /// Of two concurrent rotations of the same secret one succeeds, so that the other cannot shorten
    /// or extend its overlap.
    pub async fn rotate_webhook(
        &self,
        webhook: &Webhook,
        overlap_until: Option<Timestamp>,
        answer: Option<IdempotencyRecord>,
    ) -> Result<(), WebhookError> {
        let stored = self.store().webhook(&webhook.id).await?;
        let stored = stored.ok_or(WebhookError::NotFound)?;
        let current = Subscription::read(&stored)?.webhook;
        if current.generation != webhook.generation {
            return Err(changed_meanwhile(webhook));
        }
        let rotated = current.rotated(overlap_until, self.clock().now())?;
        // A webhook rotated or deleted from here on must not be overwritten or restored.
        let guard = CommitGuard::WebhookUnchanged {
            webhook: webhook.id.clone(),
            body: stored.body,
        };
        let commit = Commit {
            webhooks: vec![put(&rotated)],
            guards: vec![guard],
            ..Commit::default()
        };
        self.change_webhook("webhook.rotate", webhook, commit, answer)
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
        let commit = Commit {
            webhooks: vec![change],
            outbox: vec![OutboxChange::Remove(entry.clone())],
            ..Commit::default()
        };
        self.change_webhook("webhook.unregister", webhook, commit, answer)
            .await?;
        self.inner.effects.abort(&entry);
        Ok(())
    }

    /// Attempts a delivery again, whatever its state.
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
        let commit = Commit {
            webhooks: vec![change],
            outbox: vec![wake(webhook, now)],
            ..Commit::default()
        };
        self.change_webhook("webhook.redeliver", webhook, commit, answer)
            .await?;
        self.inner.effects.bell.notify_one();
        Ok(())
    }

    /// Subscriptions of a tenant, or of one workspace if given; oldest first.
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

    /// One subscription, with the same restrictions as the listing.
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

    /// The delivery log of a subscription the caller may see, newest first.
    pub async fn webhook_deliveries(
        &self,
        id: &WebhookId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DeliveryListing, Fault> {
        self.store().list_deliveries(id, before, limit).await
    }

    /// `action` is the name in the audit log. The entry omits the target's URL: it may contain a
    /// secret.
    async fn change_webhook(
        &self,
        action: &str,
        webhook: &Webhook,
        changes: Commit,
        answer: Option<IdempotencyRecord>,
    ) -> Result<(), WebhookError> {
        let now = self.clock().now();
        let (tenant, id) = (&webhook.tenant, webhook.id.as_str());
        let details = Object::from_iter([("events".to_owned(), json!(webhook.events))]);
        let audit = AuditDraft::new(now, Some(tenant), self.actor(), action, id, details);
        let commit = Commit {
            tenant: Some(tenant.clone()),
            idempotency: answer.into_iter().collect(),
            audit: vec![audit],
            ..changes
        };
        let result = self.store().commit(commit).await;
        // Also after an error: the commit may have succeeded although an error was returned.
        self.inner
            .webhooks
            .subscriptions
            .invalidate(&webhook.tenant);
        match result {
            Ok(_) => Ok(()),
            Err(Error::Conflict(Conflict::KeyUsed)) => Err(WebhookError::IdempotencyKeyUsed),
            Err(Error::Conflict(_)) => Err(changed_meanwhile(webhook)),
            Err(Error::Fault(fault)) => Err(fault.into()),
        }
    }
}

fn changed_meanwhile(webhook: &Webhook) -> WebhookError {
    let message = format!("webhook {} was changed by another request", webhook.id);
    Fault::retryable("contended", message).into()
}

fn put(webhook: &Webhook) -> WebhookChange {
    WebhookChange::Put {
        webhook: webhook.id.clone(),
        tenant: webhook.tenant.clone(),
        body: serde_json::to_string(webhook).expect("a webhook is plain data"),
    }
}
