//! Reading subscriptions and what became of their deliveries, and asking for one again.

use super::webhooks::{courier, done, find, shown};
use crate::api::{Doors, Shared};
use crate::at::At;
use crate::caller::{Caller, WebhooksManage};
use crate::mutation::{Begun, Mutation};
use crate::params::Params;
use crate::problem::Problem;
use crate::said::Said;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tandem_access::fingerprint;
use tandem_runtime::{DeliveryRow, DeliveryState, Subscription, standing};
use tandem_wire::v1::time::rfc3339;

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

#[utoipa::path(
    get, path = "/v1/host/tandem/webhooks", tag = "webhooks", operation_id = "listWebhooks",
    responses((status = 200, description = "Subscriptions, oldest first, without secrets", body = Value))
)]
pub(super) async fn list(
    State(doors): State<Shared>,
    caller: Caller<WebhooksManage>,
) -> Result<Json<Value>, Problem> {
    courier(&doors)?;
    let (tenant, workspace) = (&caller.tenant, caller.workspace.as_ref());
    let found = doors.runtime.webhooks(tenant, workspace).await?;
    let mut webhooks = Vec::with_capacity(found.len());
    for subscription in &found {
        webhooks.push(item(&doors, subscription).await?);
    }
    Ok(Json(json!({"webhooks": webhooks})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/webhooks/{webhookId}", tag = "webhooks",
    operation_id = "readWebhook", params(("webhookId" = String, Path)),
    responses((status = 200, description = "The subscription, without its secret", body = Value))
)]
pub(super) async fn read(
    State(doors): State<Shared>,
    caller: Caller<WebhooksManage>,
    At(id): At<String>,
) -> Result<Json<Value>, Problem> {
    courier(&doors)?;
    let found = find(&doors, &caller, id).await?;
    Ok(Json(item(&doors, &found).await?))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/webhooks/{webhookId}/deliveries", tag = "webhooks",
    operation_id = "listDeliveries",
    params(("webhookId" = String, Path), ("limit" = Option<u64>, Query),
           ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Deliveries, newest first", body = Value))
)]
pub(super) async fn deliveries(
    State(doors): State<Shared>,
    caller: Caller<WebhooksManage>,
    At(id): At<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    courier(&doors)?;
    let webhook = find(&doors, &caller, id).await?.webhook;
    params.only(&["limit", "cursor"])?;
    let limit = params.number("limit", 1..=MAX_LIMIT)?;
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let before = params.number("cursor", 1..=u64::MAX)?;
    let listing = doors
        .runtime
        .webhook_deliveries(&webhook.id, before, limit)
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
    State(doors): State<Shared>,
    caller: Caller<WebhooksManage>,
    At((id, number)): At<(String, String)>,
    request: Mutation,
) -> Result<Response, Problem> {
    courier(&doors)?;
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let subscription = find(&doors, &caller, id).await?;
    let number: u64 = number.parse().map_err(|_| Problem::not_found("delivery"))?;
    let said = Said::accepted(json!({
        "webhookId": subscription.webhook.id, "number": number, "state": "pending",
    }));
    let runtime = doors.runtime_of(&caller);
    ticket
        .together(&doors, said, |answer| async move {
            done(runtime.redeliver(&subscription, number, answer).await)
        })
        .await
}

async fn item(doors: &Doors, subscription: &Subscription) -> Result<Value, Problem> {
    let (webhook, health) = (&subscription.webhook, &subscription.health);
    let mut item = shown(webhook);
    let now = doors.now();
    item["state"] = json!(standing(health, now).as_str());
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
    if let Some(courier) = doors.runtime.courier() {
        // Nothing is delivered while whoever registered it may not read.
        item["suspended"] = json!(!courier.may_receive(webhook, now).await?);
        let secret = courier.secret(&webhook.id, webhook.generation);
        item["secretFingerprint"] = json!(fingerprint(&secret));
    }
    if let Some(until) = webhook.overlap_until.filter(|until| *until > now) {
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
        "state": shown_state(progress.state),
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

/// The protocol's word for a state.
pub(crate) fn shown_state(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending { .. } => "pending",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Dead => "dead-lettered",
    }
}
