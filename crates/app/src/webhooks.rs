//! Webhook subscriptions: registering, rotating the secret, deleting, and their deliveries.
//!
//! A secret is derived, never stored. It is in the outcome that registers or rotates, and in a replay of that
//! response for the same idempotency key: otherwise a caller whose connection broke could not verify
//! deliveries.

use crate::admission::items;
use crate::app::App;
use crate::error::{AppError, ForbiddenReason, InvalidField, ResourceKind};
use crate::idempotency::{Committed, Completion, Idempotency};
use std::sync::Arc;
use tandem_access::{Identity, Scope, fingerprint};
use tandem_record::{Timestamp, Webhook, WebhookId};
use tandem_runtime::{
    DeliveryListing, IdempotencyRecord, Subscription, WebhookError, WebhookSender,
};

const MAX_URL_CHARS: usize = 2048;
const MAX_EVENTS: usize = 100;
const MAX_TAGS: usize = 100;
const MAX_TAG_CHARS: usize = 256;
/// How long the old secret still signs after a rotation, unless the request sets it.
const OVERLAP_SECONDS: u64 = 24 * 3600;
const MAX_OVERLAP_SECONDS: u64 = 7 * 24 * 3600;

/// A subscription that a caller asks for.
pub struct RegisterWebhook {
    pub url: String,
    /// Public names of run events.
    pub events: Vec<String>,
    /// The caller's own tenant or workspace, which is also the default.
    pub tenant: Option<String>,
    /// Only runs that carry one of these tags; all without tags.
    pub tags: Vec<String>,
    /// Whether a text is the public name of an event, in the protocol version of the entry point.
    pub is_event_name: fn(&str) -> bool,
}

/// A new subscription with its secret.
pub struct RegisteredWebhook {
    pub webhook: Webhook,
    pub secret: String,
}

/// The next secret of a subscription, and when it begins to sign.
pub struct RotatedWebhook {
    pub webhook: WebhookId,
    pub secret: String,
    pub signs_from: Timestamp,
}

/// A delivery that is attempted again.
pub struct QueuedDelivery {
    pub webhook: WebhookId,
    pub number: u64,
}

/// What a subscription's owner sees of its sender.
pub struct WebhookSenderView {
    /// Nothing is delivered while the principal who registered the webhook may not read runs.
    pub suspended: bool,
    pub secret_fingerprint: String,
}

impl RegisterWebhook {
    fn check(&self) -> Result<(), AppError> {
        let mut errors = Vec::new();
        let mut wrong = |path: String, message: String| {
            errors.push(InvalidField::new(path, message));
        };
        if !(1..=MAX_URL_CHARS).contains(&self.url.chars().count()) {
            let message = format!("must have 1 to {MAX_URL_CHARS} characters");
            wrong("/url".to_owned(), message);
        }
        if !(1..=MAX_EVENTS).contains(&self.events.len()) {
            let message = format!("must name 1 to {MAX_EVENTS} events");
            wrong("/events".to_owned(), message);
        }
        for (i, name) in self.events.iter().enumerate().take(MAX_EVENTS) {
            if !(self.is_event_name)(name) {
                let message = "is not the name of an event, such as run.completed";
                wrong(format!("/events/{i}"), message.to_owned());
            }
        }
        if self.tags.len() > MAX_TAGS {
            wrong("/tags".to_owned(), format!("may hold {MAX_TAGS} tags"));
        }
        for (i, tag) in self.tags.iter().enumerate().take(MAX_TAGS) {
            if !(1..=MAX_TAG_CHARS).contains(&tag.chars().count()) {
                let message = format!("must have 1 to {MAX_TAG_CHARS} characters");
                wrong(format!("/tags/{i}"), message);
            }
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(AppError::Invalid(errors)),
        }
    }

    fn into_webhook(self, caller: &Identity, now: Timestamp) -> Webhook {
        let mut events = self.events;
        events.sort();
        events.dedup();
        Webhook {
            id: WebhookId::from(format!("wh-{}", uuid::Uuid::now_v7())),
            tenant: caller.tenant.clone(),
            workspace: caller.workspace.clone(),
            url: self.url,
            events,
            tags: self.tags,
            created_at: now,
            created_by: Some(caller.principal.clone()),
            generation: 0,
            overlap_until: None,
            earlier_overlaps: Vec::new(),
        }
    }
}

impl App {
    /// Refuses if this host sends no webhooks.
    pub fn require_webhooks(&self) -> Result<(), AppError> {
        self.webhook_sender().map(|_| ())
    }

    fn webhook_sender(&self) -> Result<&Arc<dyn WebhookSender>, AppError> {
        let webhook_sender = self.runtime().webhook_sender();
        webhook_sender.ok_or(AppError::NotProvided("webhooks"))
    }

    /// Whether a caller may register webhooks at all. Deliveries carry what happens in runs.
    pub fn admit_webhook_registration(&self, caller: &Identity) -> Result<(), AppError> {
        caller.require_scope(Scope::WebhooksManage)?;
        self.require_webhooks()?;
        let may_read = caller.require_scope(Scope::RunsRead);
        may_read.map_err(|denied| ForbiddenReason::WebhookReader(denied.scope).into())
    }

    /// The tenant or workspace that a request about webhooks names must be the caller's. Checked before
    /// anything is looked up. The protocol calls it a tenant and means the workspace; both are accepted.
    pub fn check_webhook_tenant(
        &self,
        caller: &Identity,
        named: Option<&str>,
    ) -> Result<(), AppError> {
        let own = |named: &str| {
            let workspace = caller.workspace.as_ref().map(AsRef::as_ref);
            named == caller.tenant.as_str() || Some(named) == workspace
        };
        match named {
            Some(named) if !own(named) => Err(ForbiddenReason::NotMember.into()),
            _ => Ok(()),
        }
    }

    async fn execute_webhook_change<T, F>(
        &self,
        idempotency: Idempotency<T>,
        value: T,
        change: impl FnOnce(Option<IdempotencyRecord>) -> F,
    ) -> Result<Completion<T>, AppError>
    where
        T: Send + 'static,
        F: Future<Output = Result<(), WebhookError>> + Send + 'static,
    {
        let mutation = |response| {
            let changing = change(response);
            async move {
                match changing.await {
                    Ok(()) => Ok(Committed::Done),
                    Err(WebhookError::IdempotencyKeyUsed) => Ok(Committed::KeyUsed),
                    Err(other) => Err(other.into()),
                }
            }
        };
        self.execute_with_response(idempotency, value, mutation)
            .await
    }

    pub async fn register_webhook(
        &self,
        caller: &Identity,
        requested: RegisterWebhook,
        idempotency: Idempotency<RegisteredWebhook>,
    ) -> Result<Completion<RegisteredWebhook>, AppError> {
        self.admit_webhook_registration(caller)?;
        requested.check()?;
        let url = [("/url".to_owned(), requested.url.as_str())];
        self.check_no_secrets(url.into_iter().chain(items("/tags", &requested.tags)))?;
        self.check_webhook_tenant(caller, requested.tenant.as_deref())?;
        let webhook_sender = self.webhook_sender()?;
        let vetted = webhook_sender.vet(&requested.url).await;
        vetted.map_err(AppError::UrlRejected)?;
        let webhook = requested.into_webhook(caller, self.now());
        let registered = RegisteredWebhook {
            secret: webhook_sender.secret(&webhook.id, webhook.generation),
            webhook: webhook.clone(),
        };
        let runtime = self.runtime_for(caller);
        let register = |answer| async move { runtime.register_webhook(&webhook, answer).await };
        self.execute_webhook_change(idempotency, registered, register)
            .await
    }

    /// Adds a new secret. Old ones still sign until their overlaps end, unless this one has none.
    pub async fn rotate_webhook(
        &self,
        caller: &Identity,
        id: &WebhookId,
        overlap_seconds: Option<u64>,
        idempotency: Idempotency<RotatedWebhook>,
    ) -> Result<Completion<RotatedWebhook>, AppError> {
        let webhook_sender = self.webhook_sender()?;
        let seconds = overlap_seconds.unwrap_or(OVERLAP_SECONDS);
        if seconds > MAX_OVERLAP_SECONDS {
            let message = format!("must be at most {MAX_OVERLAP_SECONDS}");
            return Err(AppError::invalid("/overlapSeconds", message));
        }
        let webhook = self.find_webhook(caller, id).await?.webhook;
        self.require_webhook_reader(caller, &webhook)?;
        let now = self.now();
        let until = (seconds > 0).then(|| now.plus_ms(seconds * 1000));
        let after = webhook.rotated(until, now).map_err(WebhookError::from)?;
        let rotated = RotatedWebhook {
            secret: webhook_sender.secret(&after.id, after.generation),
            webhook: after.id.clone(),
            signs_from: after.newest_signs_from(now).unwrap_or(now),
        };
        let runtime = self.runtime_for(caller);
        let rotate = |answer| async move { runtime.rotate_webhook(&webhook, until, answer).await };
        self.execute_webhook_change(idempotency, rotated, rotate)
            .await
    }

    /// Nothing is delivered any more once this returns.
    pub async fn delete_webhook(
        &self,
        caller: &Identity,
        id: &WebhookId,
        idempotency: Idempotency<()>,
    ) -> Result<Completion<()>, AppError> {
        let webhook = self.find_webhook(caller, id).await?.webhook;
        let runtime = self.runtime_for(caller);
        let delete = |answer| async move { runtime.delete_webhook(&webhook, answer).await };
        self.execute_webhook_change(idempotency, (), delete).await
    }

    /// Attempts a delivery again, whatever its state. `number` is `None` if the caller named something
    /// that is no number of a delivery.
    pub async fn redeliver(
        &self,
        caller: &Identity,
        id: &WebhookId,
        number: Option<u64>,
        idempotency: Idempotency<QueuedDelivery>,
    ) -> Result<Completion<QueuedDelivery>, AppError> {
        let subscription = self.find_webhook(caller, id).await?;
        let number = number.ok_or(AppError::NotFound(ResourceKind::Delivery))?;
        let queued = QueuedDelivery {
            webhook: subscription.webhook.id.clone(),
            number,
        };
        let runtime = self.runtime_for(caller);
        let redeliver =
            |answer| async move { runtime.redeliver(&subscription, number, answer).await };
        self.execute_webhook_change(idempotency, queued, redeliver)
            .await
    }

    /// Subscriptions the caller may see, oldest first.
    pub async fn list_webhooks(&self, caller: &Identity) -> Result<Vec<Subscription>, AppError> {
        caller.require_scope(Scope::WebhooksManage)?;
        let (tenant, workspace) = (&caller.tenant, caller.workspace.as_ref());
        Ok(self.runtime().webhooks(tenant, workspace).await?)
    }

    /// One of the subscriptions the caller may see.
    pub async fn find_webhook(
        &self,
        caller: &Identity,
        id: &WebhookId,
    ) -> Result<Subscription, AppError> {
        caller.require_scope(Scope::WebhooksManage)?;
        let (tenant, workspace) = (&caller.tenant, caller.workspace.as_ref());
        let found = self.runtime().webhook(tenant, workspace, id).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Webhook))
    }

    /// The sender's view of a subscription the caller may see; `None` if this host sends no webhooks.
    pub async fn webhook_sender_view(
        &self,
        webhook: &Webhook,
    ) -> Result<Option<WebhookSenderView>, AppError> {
        let Some(webhook_sender) = self.runtime().webhook_sender() else {
            return Ok(None);
        };
        let secret = webhook_sender.secret(&webhook.id, webhook.generation);
        Ok(Some(WebhookSenderView {
            suspended: !webhook_sender.may_receive(webhook, self.now()).await?,
            secret_fingerprint: fingerprint(&secret),
        }))
    }

    /// Deliveries of a subscription, newest first. They tell of runs, so they are for readers of runs, and
    /// for whoever registered the webhook.
    pub async fn list_deliveries(
        &self,
        caller: &Identity,
        webhook: &Webhook,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DeliveryListing, AppError> {
        self.require_webhook_reader(caller, webhook)?;
        let runtime = self.runtime();
        Ok(runtime
            .webhook_deliveries(&webhook.id, before, limit)
            .await?)
    }

    /// Deliveries tell of runs, and a secret vouches for them: for readers of runs, and for whoever
    /// registered the webhook.
    pub fn require_webhook_reader(
        &self,
        caller: &Identity,
        webhook: &Webhook,
    ) -> Result<(), AppError> {
        if webhook.created_by.as_ref() == Some(&caller.principal) {
            return Ok(());
        }
        let may_read = caller.require_scope(Scope::RunsRead);
        may_read.map_err(|denied| ForbiddenReason::WebhookReader(denied.scope).into())
    }
}
