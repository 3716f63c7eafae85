//! Webhook deliveries: projected events, signed with the subscription's secret, sent through the
//! guarded client. Callback notifications: the same client and projection, with a link that is
//! signed for this attempt and not stored.

use super::links;
use anyhow::Context as _;
use async_trait::async_trait;
use std::sync::Arc;
use tandem_access::{
    Keyring, LinkClaims, LinkIntent, LinkSigner, Scope, WebhookKeys, signature, signed_time,
};
use tandem_nodes::{UrlGuard, WebhookCaller};
use tandem_record::{Event, Owner, Partition, Timestamp, TraceContext, Webhook, WebhookId};
use tandem_runtime::{Announcement, StarterAccess, WebhookDelivery, WebhookSender};
use tandem_store::{Fault, SettingsStore as _};
use tandem_store_sqlite::SqliteStore;
use tandem_wire::v1::{callback, project, webhook};

/// Name of the setting with the key that secrets are derived from.
const KEY: &str = "webhooks.key";

pub(super) struct HttpWebhookSender {
    caller: WebhookCaller,
    keys: WebhookKeys,
    keyring: Arc<Keyring>,
    links: LinkSigner,
    /// The public URL of this host; without it a link is a path.
    base: String,
}

impl HttpWebhookSender {
    /// The key is generated once and stored, so that secrets stay the same after a restart.
    pub(super) async fn open(
        store: &SqliteStore,
        keyring: Arc<Keyring>,
        guard: UrlGuard,
        public_url: Option<&str>,
    ) -> anyhow::Result<Self> {
        let key = store.set_if_absent(KEY, &WebhookKeys::fresh()).await?;
        let keys = WebhookKeys::from_stored(&key);
        Ok(Self {
            caller: WebhookCaller::new(guard).context("deliveries cannot be made")?,
            keys: keys.context("the stored key of webhooks is unusable")?,
            keyring,
            links: links::signer(store).await?,
            base: public_url.unwrap_or_default().to_owned(),
        })
    }

    fn headers(&self, delivery: &WebhookDelivery<'_>, body: &[u8]) -> Vec<(&'static str, String)> {
        let hook = delivery.webhook;
        let time = signed_time(delivery.sent_at);
        let sign = |generation: u32| {
            let secret = self.keys.secret(&hook.id, generation);
            signature(secret.expose(), &time, body)
        };
        // Oldest first: each secret signs until the end that its owner was told.
        let mut signatures = hook
            .signing_generations(delivery.sent_at)
            .into_iter()
            .map(sign);
        let first = signatures.next().expect("the newest secret always signs");
        let next: Vec<String> = signatures.collect();
        let mut headers = webhook::headers(&webhook::DeliveryHeaders {
            webhook: hook.id.as_str(),
            event_type: project::event_type(&delivery.recorded.event),
            timestamp: &time,
            signature: &first,
        });
        if !next.is_empty() {
            headers.push((webhook::NEXT_SIGNATURE, next.join(", ")));
        }
        // The same for every attempt, so that receivers can detect repetitions.
        headers.push(("Idempotency-Key", delivery.id()));
        headers
    }
}

impl HttpWebhookSender {
    async fn post(
        &self,
        url: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
        trace: Option<&TraceContext>,
    ) -> Result<String, String> {
        match self.caller.post(url, headers, body, trace).await {
            Ok(status) => Ok(format!("answered {status}")),
            Err(error) => Err(error.message),
        }
    }
}

#[async_trait]
impl WebhookSender for HttpWebhookSender {
    fn event_type(&self, event: &Event) -> &'static str {
        project::event_type(event)
    }

    async fn vet(&self, url: &str) -> Result<(), String> {
        let vetted = self.caller.vet(url).await;
        vetted.map_err(|rejected| rejected.reason)
    }

    fn secret(&self, webhook: &WebhookId, generation: u32) -> String {
        self.keys.secret(webhook, generation).expose().to_owned()
    }

    async fn may_receive(&self, webhook: &Webhook, now: Timestamp) -> Result<bool, Fault> {
        // Old webhooks have no recorded creator to check.
        let Some(by) = &webhook.created_by else {
            return Ok(true);
        };
        let of = Partition {
            tenant: webhook.tenant.clone(),
            workspace: webhook.workspace.clone(),
        };
        self.keyring
            .holds_scope(by, Scope::RunsRead, &of, now)
            .await
    }

    async fn starter_access(&self, owner: &Owner, now: Timestamp) -> Result<StarterAccess, Fault> {
        let Some(by) = &owner.principal else {
            return Ok(StarterAccess {
                may_read: false,
                may_answer: false,
            });
        };
        let (keys, of) = (&self.keyring, Partition::from(owner));
        Ok(StarterAccess {
            may_read: keys.holds_scope(by, Scope::RunsRead, &of, now).await?,
            may_answer: keys
                .holds_scope(by, Scope::ApprovalsRespond, &of, now)
                .await?,
        })
    }

    async fn deliver(&self, delivery: &WebhookDelivery<'_>) -> Result<String, String> {
        let run = delivery.run;
        let workspace = run.workspace.as_ref().map(AsRef::as_ref);
        let body = webhook::body(
            &run.run_id,
            workspace.unwrap_or(run.tenant.as_str()),
            delivery.recorded,
            delivery.sensitivity,
        );
        let body = body.to_string().into_bytes();
        let headers = self.headers(delivery, &body);
        self.post(&delivery.webhook.url, &headers, body, delivery.trace)
            .await
    }

    async fn announce(&self, announcement: &Announcement<'_>) -> Result<String, String> {
        let intent = LinkIntent::of(announcement.may_answer);
        let claims = LinkClaims::for_interrupt(
            announcement.run,
            announcement.question,
            intent,
            announcement.issued_to,
            announcement.sent_at,
        );
        let link = project::SignedLink {
            token: self.links.sign(&claims),
            expires_at: claims.expires_at,
        };
        let body = callback::body(&callback::CallbackNotification {
            run: announcement.run,
            workflow: announcement.workflow,
            parent_and_root: announcement.parent_and_root,
            question: announcement.question,
            link: &link,
            base: &self.base,
        });
        let headers =
            callback::headers(announcement.id.as_str(), &signed_time(announcement.sent_at));
        let body = body.to_string().into_bytes();
        self.post(announcement.url, &headers, body, announcement.trace)
            .await
    }
}
