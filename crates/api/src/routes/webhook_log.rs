//! Reading webhook subscriptions and their deliveries, and redelivery.

use super::webhooks::to_json;
use crate::api::{ApiState, SharedState};
use crate::caller::{Caller, WebhooksManage};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tandem_app::{DeliveryRow, DeliveryState, QueuedDelivery, Subscription, webhook_status};
use tandem_record::WebhookId;
use tandem_wire::v1::time::rfc3339;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

#[utoipa::path(
    get, path = "/v1/host/tandem/webhooks", tag = "webhooks", operation_id = "listWebhooks",
    responses((status = 200, description = "Subscriptions, oldest first, without secrets", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<WebhooksManage>,
) -> Result<Json<Value>, Problem> {
    api.app.require_webhooks()?;
    let found = api.app.list_webhooks(&caller).await?;
    let mut webhooks = Vec::with_capacity(found.len());
    for subscription in &found {
        webhooks.push(item(&api, subscription).await?);
    }
    Ok(Json(json!({"webhooks": webhooks})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/webhooks/{webhookId}", tag = "webhooks",
    operation_id = "readWebhook", params(("webhookId" = String, Path)),
    responses((status = 200, description = "The subscription, without its secret", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<WebhooksManage>,
    PathParams(id): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    api.app.require_webhooks()?;
    let id = WebhookId::from(id);
    let found = api.app.find_webhook(&caller, &id).await?;
    Ok(Json(item(&api, &found).await?))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/webhooks/{webhookId}/deliveries", tag = "webhooks",
    operation_id = "listDeliveries",
    params(("webhookId" = String, Path), ("limit" = Option<u64>, Query),
           ("cursor" = Option<String>, Query)),
    description = "Takes the scope runs:read besides webhooks:manage, unless the caller registered it.",
    responses((status = 200, description = "Deliveries, newest first", body = Value))
)]
pub(super) async fn deliveries(
    State(api): State<SharedState>,
    caller: Caller<WebhooksManage>,
    PathParams(id): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    api.app.require_webhooks()?;
    let id = WebhookId::from(id);
    let webhook = api.app.find_webhook(&caller, &id).await?.webhook;
    api.app.require_webhook_reader(&caller, &webhook)?;
    params.only(&["limit", "cursor"])?;
    let limit = params.number("limit", 1..=MAX_LIMIT)?;
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let before = params.number("cursor", 1..=u64::MAX)?;
    let listing = api
        .app
        .list_deliveries(&caller, &webhook, before, limit)
        .await?;
    let items: Vec<Value> = listing.rows.iter().map(delivery).collect();
    let mut body = json!({"deliveries": items});
    if let Some(last) = listing.rows.last().filter(|_| listing.more) {
        body["nextCursor"] = json!(last.number.to_string());
    }
    Ok(Json(body))
}

#[utoipa::path(
    post, path = "/v1/host/tandem/webhooks/{webhookId}/deliveries/{number}/redeliver",
    tag = "webhooks", operation_id = "redeliver",
    params(("webhookId" = String, Path), ("number" = u64, Path)),
    responses((status = 202, description = "It is attempted again", body = Value))
)]
pub(super) async fn redeliver(
    State(api): State<SharedState>,
    caller: Caller<WebhooksManage>,
    PathParams((id, number)): PathParams<(String, String)>,
    request: Mutation,
) -> Result<Response, Problem> {
    api.app.require_webhooks()?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let id = WebhookId::from(id);
    respond(ticket, render_queued, |idempotency| {
        let number = number.parse().ok();
        api.app.redeliver(&caller, &id, number, idempotency)
    })
    .await
}

fn render_queued(QueuedDelivery { webhook, number }: &QueuedDelivery) -> ApiResponse {
    ApiResponse::accepted(json!({"webhookId": webhook, "number": number, "state": "pending"}))
}

async fn item(api: &ApiState, subscription: &Subscription) -> Result<Value, Problem> {
    let (webhook, health) = (&subscription.webhook, &subscription.health);
    let mut item = to_json(webhook);
    let now = api.now();
    item["state"] = json!(webhook_status(health, now).as_str());
    item["consecutiveFailures"] = json!(health.consecutive_failures);
    item["dropped"] = json!(subscription.dropped);
    if let Some(until) = health.hold_until.filter(|until| *until > now) {
        item["pausedUntil"] = json!(rfc3339(until));
    }
    if let Some(at) = health.failed_at {
        item["failedAt"] = json!(rfc3339(at));
    }
    if let Some(by) = &webhook.created_by {
        item["createdBy"] = json!(by);
    }
    if let Some(sender) = api.app.webhook_sender_view(webhook).await? {
        item["suspended"] = json!(sender.suspended);
        item["secretFingerprint"] = json!(sender.secret_fingerprint);
    }
    if let Some(until) = webhook.newest_signs_from(now) {
        item["signsFrom"] = json!(rfc3339(until));
    }
    Ok(item)
}

fn delivery(row: &DeliveryRow) -> Value {
    let progress = &row.progress;
    let mut item = json!({
        "number": row.number,
        "runId": row.run_id,
        "sequence": row.seq,
        "eventId": row.run_id.event_id(row.seq),
        "type": row.event_type,
        "state": delivery_state_name(progress.state),
        "attempts": progress.attempts,
        "createdAt": rfc3339(row.created_at),
    });
    if let DeliveryState::Pending { due } = progress.state {
        item["nextAttemptAt"] = json!(rfc3339(due));
    }
    if let Some(at) = progress.last_at {
        item["lastAttemptAt"] = json!(rfc3339(at));
    }
    if let Some(outcome) = &progress.outcome {
        item["outcome"] = json!(outcome);
    }
    item
}

/// The protocol's name of a delivery state.
pub(crate) fn delivery_state_name(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending { .. } => "pending",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Dead => "dead-lettered",
    }
}
