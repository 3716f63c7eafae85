//! Console pages for webhooks and their deliveries: state, last attempts, and a button to
//! redeliver.

use super::page::{PageError, chrome};
use super::session::{PostedForm, SignedIn};
use crate::api::{ApiState, SharedState};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::routes::delivery_state_name;
use axum::extract::State;
use axum::response::{Html, Redirect};
use tandem_access::Scope;
use tandem_app::{DeliveryRow, DeliveryState, Idempotency, Subscription, webhook_status};
use tandem_console::{
    WebhookListView, WebhookPageView, WebhookRow, webhook_list_page, webhook_page,
};
use tandem_record::WebhookId;
use tandem_wire::v1::time::rfc3339;

const ROWS: usize = 50;

pub(super) async fn list(
    State(api): State<SharedState>,
    reader: SignedIn,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::WebhooksManage)?;
    let found = api.app.list_webhooks(&reader).await?;
    let view = WebhookListView {
        rows: found.iter().map(|sub| row(&api, sub)).collect(),
    };
    Ok(Html(webhook_list_page(&chrome(&api, &reader), &view)))
}

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(id): PathParams<String>,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::WebhooksManage)?;
    let id = WebhookId::from(id);
    let subscription = api.app.find_webhook(&reader, &id).await?;
    let webhook = &subscription.webhook;
    api.app.require_webhook_reader(&reader, webhook)?;
    let before = params.number("cursor", 1..=u64::MAX)?;
    let log = api.app.list_deliveries(&reader, webhook, before, ROWS);
    let log = log.await?;
    let last = log.rows.last().filter(|_| log.more);
    let sender = api.app.webhook_sender_view(webhook).await?;
    let failed = subscription.health.failed_at.is_some();
    let view = WebhookPageView {
        webhook: row(&api, &subscription),
        secret_fingerprint: sender.map(|s| s.secret_fingerprint).unwrap_or_default(),
        next_cursor: last.map(|row| row.number.to_string()),
        deliveries: log.rows.iter().map(|row| delivery(row, failed)).collect(),
        csrf: reader.csrf(),
    };
    Ok(Html(webhook_page(&chrome(&api, &reader), &view)))
}

pub(super) async fn redeliver(
    State(api): State<SharedState>,
    PathParams((id, number)): PathParams<(String, String)>,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::WebhooksManage)?;
    let (id, number) = (WebhookId::from(id), number.parse().ok());
    let queued = api.app.redeliver(by, &id, number, Idempotency::none());
    queued.await?;
    Ok(Redirect::to(&format!("/console/webhooks/{id}")))
}

fn row(api: &ApiState, subscription: &Subscription) -> WebhookRow {
    let (webhook, health) = (&subscription.webhook, &subscription.health);
    let now = api.now();
    WebhookRow {
        webhook_id: webhook.id.to_string(),
        url: webhook.url.clone(),
        state: webhook_status(health, now).as_str().to_owned(),
        events: webhook.events.clone(),
        tags: webhook.tags.clone(),
        created_at: rfc3339(webhook.created_at),
        paused_until: health.hold_until.filter(|at| *at > now).map(rfc3339),
        consecutive_failures: health.consecutive_failures,
        dropped: subscription.dropped,
    }
}

fn delivery(row: &DeliveryRow, failed: bool) -> tandem_console::WebhookDeliveryRow {
    let progress = &row.progress;
    let next = match progress.state {
        DeliveryState::Pending { due } => Some(due),
        DeliveryState::Delivered | DeliveryState::Dead => None,
    };
    tandem_console::WebhookDeliveryRow {
        number: row.number,
        event_type: row.event_type.clone(),
        run_id: row.run_id.to_string(),
        sequence: row.seq.0,
        state: delivery_state_name(progress.state).to_owned(),
        attempts: progress.attempts,
        created_at: rfc3339(row.created_at),
        next_attempt_at: next.map(rfc3339),
        outcome: progress.outcome.clone(),
        can_redeliver: next.is_none() && !failed,
    }
}
