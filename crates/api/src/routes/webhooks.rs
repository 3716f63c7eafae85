//! Subscriptions to run events: registering, rotating the secret, deleting.

use crate::api::SharedState;
use crate::caller::{Caller, WebhooksManage};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_access::fingerprint;
use tandem_app::{RegisterWebhook, RegisteredWebhook, RotatedWebhook};
use tandem_record::{Webhook, WebhookId};
use tandem_wire::v1::time::rfc3339;
use tandem_wire::v1::webhook::{SIGNATURE_ALGORITHM, is_event_name};
use utoipa::ToSchema;

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
    /// How long deliveries are still signed with the old secret; a day when left out. 0 ends all old
    /// secrets at once.
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
    api.app.admit_webhook_registration(&caller)?;
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: WebhookRequest = request.json()?;
    let requested = RegisterWebhook {
        url: requested.url,
        events: requested.events,
        tenant: requested.tenant_id,
        tags: requested.tags.unwrap_or_default(),
        is_event_name,
    };
    respond(ticket, render_registered, |idempotency| {
        api.app.register_webhook(&caller, requested, idempotency)
    })
    .await
}

fn render_registered(registered: &RegisteredWebhook) -> ApiResponse {
    let mut body = to_json(&registered.webhook);
    show_secret(&mut body, &registered.secret);
    ApiResponse::created(body)
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
    api.app.require_webhooks()?;
    api.app
        .check_webhook_tenant(&caller, params.get("tenantId"))?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let id = WebhookId::from(id);
    respond(
        ticket,
        |(): &()| ApiResponse::no_content(),
        |idempotency| api.app.delete_webhook(&caller, &id, idempotency),
    )
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
    api.app.require_webhooks()?;
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let Rotation { overlap_seconds } = request.optional_json()?;
    let id = WebhookId::from(id);
    respond(ticket, render_rotated, |idempotency| {
        api.app
            .rotate_webhook(&caller, &id, overlap_seconds, idempotency)
    })
    .await
}

fn render_rotated(rotated: &RotatedWebhook) -> ApiResponse {
    let mut body = json!({"webhookId": rotated.webhook});
    show_secret(&mut body, &rotated.secret);
    body["signsFrom"] = json!(rfc3339(rotated.signs_from));
    ApiResponse::created(body)
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
