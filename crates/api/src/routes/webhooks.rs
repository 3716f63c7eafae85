//! Subscriptions to run events: registering, rotating the secret, deleting.
//!
//! A secret is derived, never stored. It is in the response that registers or rotates, and in a
//! replay of that response for the same idempotency key: otherwise a caller whose connection broke
//! could not verify deliveries.

use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, WebhooksManage};
use crate::known_secrets::items;
use crate::mutation::{IdempotencyCheck, Mutation, MutationOutcome};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_access::{Identity, Scope, fingerprint};
use tandem_record::{Webhook, WebhookId};
use tandem_runtime::{Subscription, WebhookError, WebhookSender};
use tandem_wire::v1::time::rfc3339;
use tandem_wire::v1::webhook::{SIGNATURE_ALGORITHM, is_event_name};
use utoipa::ToSchema;

const MAX_URL_CHARS: usize = 2048;
const MAX_EVENTS: usize = 100;
const MAX_TAGS: usize = 100;
const MAX_TAG_CHARS: usize = 256;
/// How long the old secret still signs after a rotation, unless the request sets it.
const OVERLAP_SECONDS: u64 = 24 * 3600;
const MAX_OVERLAP_SECONDS: u64 = 7 * 24 * 3600;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewWebhook)]
pub(super) struct WebhookRequest {
    /// https, and reachable from the internet.
    url: String,
    /// Names of run events, for example `run.completed`.
    #[serde(alias = "eventTypes")]
    events: Vec<String>,
    /// The caller's own tenant or workspace, which is also the default.
    #[serde(default)]
    tenant_id: Option<String>,
    /// Only runs that carry one of these tags.
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RotateWebhook)]
pub(super) struct Rotation {
    /// How long deliveries are still signed with the old secret; a day when left out.
    #[serde(default)]
    overlap_seconds: Option<u64>,
}

#[utoipa::path(
    post, path = "/v1/webhooks", tag = "webhooks", operation_id = "registerWebhook",
    request_body = WebhookRequest,
    description = "Takes the scope runs:read besides webhooks:manage. Contents are delivered as long as the \
                   principal that registered it has a key that may read the runs.",
    responses((status = 201, description = "The subscription and its secret", body = Value))
)]
pub(super) async fn register(
    State(api): State<SharedState>,
    caller: Caller<WebhooksManage>,
    request: Mutation,
) -> Result<Response, Problem> {
    let webhook_sender = Arc::clone(require_webhooks(&api)?);
    let may_read = caller.require_scope(Scope::RunsRead);
    may_read.map_err(|denied| Problem::webhook_needs_read_scope(denied.scope))?;
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: WebhookRequest = request.json()?;
    requested.check()?;
    let url = [("/url".to_owned(), requested.url.as_str())];
    let tags = requested.tags.as_deref().unwrap_or_default();
    api.check_no_secrets(url.into_iter().chain(items("/tags", tags)))?;
    check_membership(&caller, requested.tenant_id.as_deref())?;
    let vetted = webhook_sender.vet(&requested.url).await;
    vetted.map_err(|reason| Problem::webhook_url_rejected(&reason))?;
    let webhook = requested.into_webhook(&api, &caller);
    let mut body = to_json(&webhook);
    show_secret(
        &mut body,
        &webhook_sender.secret(&webhook.id, webhook.generation),
    );
    let runtime = api.runtime_of(&caller);
    ticket
        .commit_with_response(&api, ApiResponse::created(body), |answer| async move {
            to_mutation_outcome(runtime.register_webhook(&webhook, answer).await)
        })
        .await
}

#[utoipa::path(
    delete, path = "/v1/webhooks/{webhookId}", tag = "webhooks",
    operation_id = "unregisterWebhook",
    params(("webhookId" = String, Path), ("tenantId" = Option<String>, Query)),
    responses((status = 204, description = "Ended; nothing more is delivered"))
)]
pub(super) async fn unregister(
    State(api): State<SharedState>,
    caller: Caller<WebhooksManage>,
    PathParams(id): PathParams<String>,
    params: Params,
    request: Mutation,
) -> Result<Response, Problem> {
    require_webhooks(&api)?;
    check_membership(&caller, params.get("tenantId"))?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let webhook = find(&api, &caller, id).await?.webhook;
    let runtime = api.runtime_of(&caller);
    ticket
        .commit_with_response(&api, ApiResponse::no_content(), |answer| async move {
            to_mutation_outcome(runtime.delete_webhook(&webhook, answer).await)
        })
        .await
}

#[utoipa::path(
    post, path = "/v1/host/tandem/webhooks/{webhookId}:rotate", tag = "webhooks",
    operation_id = "rotateWebhook",
    params(("webhookId" = String, Path)), request_body = Option<Rotation>,
    description = "Takes the scope runs:read besides webhooks:manage, unless the caller registered it.",
    responses((status = 201, description = "The secret to come, and when it begins to sign", body = Value))
)]
pub(super) async fn rotate(
    State(api): State<SharedState>,
    caller: Caller<WebhooksManage>,
    PathParams(id): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let webhook_sender = Arc::clone(require_webhooks(&api)?);
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let Rotation { overlap_seconds } = request.optional_json()?;
    let seconds = overlap_seconds.unwrap_or(OVERLAP_SECONDS);
    if seconds > MAX_OVERLAP_SECONDS {
        let message = format!("must be at most {MAX_OVERLAP_SECONDS}");
        return Err(Problem::invalid("/overlapSeconds", message));
    }
    let webhook = find(&api, &caller, id).await?.webhook;
    require_reader(&caller, &webhook)?;
    let until = (seconds > 0).then(|| api.now().plus_ms(seconds * 1000));
    let mut body = json!({"webhookId": webhook.id});
    show_secret(
        &mut body,
        &webhook_sender.secret(&webhook.id, webhook.generation + 1),
    );
    body["signsFrom"] = json!(rfc3339(until.unwrap_or_else(|| api.now())));
    let runtime = api.runtime_of(&caller);
    ticket
        .commit_with_response(&api, ApiResponse::created(body), |answer| async move {
            to_mutation_outcome(runtime.rotate_webhook(&webhook, until, answer).await)
        })
        .await
}

impl WebhookRequest {
    fn check(&self) -> Result<(), Problem> {
        let mut errors = Vec::new();
        let mut wrong = |path: String, message: String| errors.push((path, message));
        if !(1..=MAX_URL_CHARS).contains(&self.url.chars().count()) {
            let message = format!("must have 1 to {MAX_URL_CHARS} characters");
            wrong("/url".to_owned(), message);
        }
        if !(1..=MAX_EVENTS).contains(&self.events.len()) {
            let message = format!("must name 1 to {MAX_EVENTS} events");
            wrong("/events".to_owned(), message);
        }
        for (i, name) in self.events.iter().enumerate().take(MAX_EVENTS) {
            if !is_event_name(name) {
                let message = "is not the name of an event, such as run.completed";
                wrong(format!("/events/{i}"), message.to_owned());
            }
        }
        let tags = self.tags.as_deref().unwrap_or_default();
        if tags.len() > MAX_TAGS {
            wrong("/tags".to_owned(), format!("may hold {MAX_TAGS} tags"));
        }
        for (i, tag) in tags.iter().enumerate().take(MAX_TAGS) {
            if !(1..=MAX_TAG_CHARS).contains(&tag.chars().count()) {
                let message = format!("must have 1 to {MAX_TAG_CHARS} characters");
                wrong(format!("/tags/{i}"), message);
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Problem::validation(errors))
        }
    }

    fn into_webhook(self, api: &ApiState, caller: &Identity) -> Webhook {
        let mut events = self.events;
        events.sort();
        events.dedup();
        Webhook {
            id: WebhookId::from(format!("wh-{}", uuid::Uuid::now_v7())),
            tenant: caller.tenant.clone(),
            workspace: caller.workspace.clone(),
            url: self.url,
            events,
            tags: self.tags.unwrap_or_default(),
            created_at: api.now(),
            created_by: Some(caller.principal.clone()),
            generation: 0,
            overlap_until: None,
        }
    }
}

/// The protocol calls this member a tenant and means the workspace; the caller's own tenant or
/// workspace is accepted. Checked before anything is looked up.
fn check_membership(caller: &Identity, named: Option<&str>) -> Result<(), Problem> {
    let own = |named: &str| {
        let workspace = caller.workspace.as_ref().map(AsRef::as_ref);
        named == caller.tenant.as_str() || Some(named) == workspace
    };
    match named {
        Some(named) if !own(named) => Err(Problem::tenant_membership_required()),
        _ => Ok(()),
    }
}

/// Deliveries tell of runs, and a secret vouches for them: for readers of runs, and for whoever
/// registered the webhook.
pub(crate) fn require_reader(caller: &Identity, webhook: &Webhook) -> Result<(), Problem> {
    if webhook.created_by.as_ref() == Some(&caller.principal) {
        return Ok(());
    }
    let may_read = caller.require_scope(Scope::RunsRead);
    may_read.map_err(|denied| Problem::webhook_needs_read_scope(denied.scope))
}

pub(super) fn require_webhooks(api: &ApiState) -> Result<&Arc<dyn WebhookSender>, Problem> {
    let webhook_sender = api.runtime.webhook_sender();
    webhook_sender.ok_or_else(|| Problem::capability_not_provided("webhooks"))
}

pub(super) async fn find(
    api: &ApiState,
    caller: &Identity,
    id: String,
) -> Result<Subscription, Problem> {
    let workspace = caller.workspace.as_ref();
    let found = api
        .runtime
        .webhook(&caller.tenant, workspace, &WebhookId::from(id))
        .await?;
    found.ok_or_else(Problem::subscription_not_found)
}

pub(super) fn to_mutation_outcome(
    outcome: Result<(), WebhookError>,
) -> Result<MutationOutcome, Problem> {
    match outcome {
        Ok(()) => Ok(MutationOutcome::Done),
        Err(WebhookError::IdempotencyKeyUsed) => Ok(MutationOutcome::IdempotencyKeyUsed),
        Err(error) => Err(error.into()),
    }
}

/// A subscription without its secret.
pub(super) fn to_json(webhook: &Webhook) -> Value {
    let workspace = webhook.workspace.as_ref().map(AsRef::as_ref);
    json!({
        "webhookId": webhook.id,
        // The same id under the name that published clients read.
        "subscriptionId": webhook.id,
        "url": webhook.url,
        "events": webhook.events,
        "tags": webhook.tags,
        "tenantId": workspace.unwrap_or(webhook.tenant.as_str()),
        "createdAt": rfc3339(webhook.created_at),
        "signatureAlgorithm": SIGNATURE_ALGORITHM,
    })
}

fn show_secret(body: &mut Value, secret: &str) {
    body["secret"] = json!(secret);
    body["secretFingerprint"] = json!(fingerprint(secret));
}
