//! Deliveries to webhooks: the projection's words, signed with the subscription's secret, sent
//! through the guarded client. Announcements to callbacks: the same client and the same words, with a
//! link that is signed for this attempt and kept nowhere.

use super::links;
use anyhow::Context as _;
use async_trait::async_trait;
use std::sync::Arc;
use tandem_access::{
    Keyring, LinkClaims, LinkIntent, LinkSigner, WebhookKeys, signature, signed_time,
};
use tandem_nodes::{Guard, WebhookCaller};
use tandem_record::{Event, Partition, Timestamp, TraceContext, Webhook, WebhookId};
use tandem_runtime::{Announcement, Courier, Parcel};
use tandem_store::{Fault, Settings as _};
use tandem_store_sqlite::SqliteStore;
use tandem_wire::v1::{announcement, project, webhook};

/// Name of the setting that keeps the key secrets are derived from.
const KEY: &str = "webhooks.key";

pub(super) struct WireCourier {
    caller: WebhookCaller,
    keys: WebhookKeys,
    keyring: Arc<Keyring>,
    links: LinkSigner,
    /// Where this host is reached; without it a link is a path.
    base: String,
}

impl WireCourier {
    /// The key is made once and kept, so that secrets outlive a restart.
    pub(super) async fn open(
        store: &SqliteStore,
        keyring: Arc<Keyring>,
        guard: Guard,
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

    fn headers(&self, parcel: &Parcel<'_>, body: &[u8]) -> Vec<(&'static str, String)> {
        let hook = parcel.webhook;
        let time = signed_time(parcel.sent_at);
        let sign = |generation: u32| {
            let secret = self.keys.secret(&hook.id, generation);
            signature(secret.expose(), &time, body)
        };
        let overlap = hook.overlap_until.is_some_and(|at| at > parcel.sent_at);
        let signing = hook.generation.saturating_sub(u32::from(overlap));
        let mut headers = webhook::headers(&webhook::Stamp {
            webhook: hook.id.as_str(),
            event_type: project::event_type(&parcel.recorded.event),
            timestamp: &time,
            signature: &sign(signing),
        });
        if overlap {
            headers.push((webhook::NEXT_SIGNATURE, sign(hook.generation)));
        }
        // The same for every attempt, for receivers that know the header.
        headers.push(("Idempotency-Key", parcel.id()));
        headers
    }
}

impl WireCourier {
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
impl Courier for WireCourier {
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
        // One registered before its maker was kept has nobody to ask.
        let Some(by) = &webhook.created_by else {
            return Ok(true);
        };
        let of = Partition {
            tenant: webhook.tenant.clone(),
            workspace: webhook.workspace.clone(),
        };
        self.keyring.may_read_runs(by, &of, now).await
    }

    async fn deliver(&self, parcel: &Parcel<'_>) -> Result<String, String> {
        let run = parcel.run;
        let workspace = run.workspace.as_ref().map(AsRef::as_ref);
        let body = webhook::body(
            &run.run_id,
            workspace.unwrap_or(run.tenant.as_str()),
            parcel.recorded,
            parcel.sensitivity,
        );
        let body = body.to_string().into_bytes();
        let headers = self.headers(parcel, &body);
        self.post(&parcel.webhook.url, &headers, body, parcel.trace)
            .await
    }

    async fn announce(&self, asked: &Announcement<'_>) -> Result<String, String> {
        let intent = LinkIntent::of(asked.may_answer);
        let claims = LinkClaims::to(asked.run, asked.question, intent, asked.sent_at);
        let link = project::Link {
            token: self.links.sign(&claims),
            expires_at: claims.expires_at,
        };
        let body = announcement::body(&announcement::Asked {
            run: asked.run,
            workflow: asked.workflow,
            family: asked.family,
            question: asked.question,
            link: &link,
            base: &self.base,
        });
        let headers = announcement::headers(asked.id.as_str(), &signed_time(asked.sent_at));
        let body = body.to_string().into_bytes();
        self.post(asked.url, &headers, body, asked.trace).await
    }
}
