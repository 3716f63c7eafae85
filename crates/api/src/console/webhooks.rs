//! Webhooks and their deliveries for a person: how they stand, what the last attempts came to,
//! and one button to try again.

use super::page::{Detour, chrome};
use super::session::{Posted, SignedIn};
use crate::api::{Doors, Shared};
use crate::at::At;
use crate::params::Params;
use crate::problem::Problem;
use crate::routes::shown_state;
use crate::to_the_end::to_the_end;
use axum::extract::State;
use axum::response::{Html, Redirect};
use tandem_access::{Identity, Scope, fingerprint};
use tandem_console::{
    WebhookListView, WebhookPageView, WebhookRow, webhook_list_page, webhook_page,
};
use tandem_record::WebhookId;
use tandem_runtime::{DeliveryRow, DeliveryState, Subscription, standing};
use tandem_wire::v1::time::rfc3339;

const ROWS: usize = 50;

pub(super) async fn list(
    State(doors): State<Shared>,
    reader: SignedIn,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::WebhooksManage)?;
    let (tenant, workspace) = (&reader.tenant, reader.workspace.as_ref());
    let found = doors.runtime.webhooks(tenant, workspace).await?;
    let view = WebhookListView {
        rows: found.iter().map(|sub| row(&doors, sub)).collect(),
    };
    Ok(Html(webhook_list_page(&chrome(&doors, &reader), &view)))
}

pub(super) async fn show(
    State(doors): State<Shared>,
    reader: SignedIn,
    At(id): At<String>,
    params: Params,
) -> Result<Html<String>, Detour> {
    reader.may(Scope::WebhooksManage)?;
    let subscription = find(&doors, &reader, id).await?;
    let webhook = &subscription.webhook;
    let before = params.number("cursor", 1..=u64::MAX)?;
    let log = doors
        .runtime
        .webhook_deliveries(&webhook.id, before, ROWS)
        .await?;
    let last = log.rows.last().filter(|_| log.more);
    let secret = doors
        .runtime
        .courier()
        .map(|courier| courier.secret(&webhook.id, webhook.generation));
    let failed = subscription.health.failed_at.is_some();
    let view = WebhookPageView {
        webhook: row(&doors, &subscription),
        secret_fingerprint: secret.as_deref().map(fingerprint).unwrap_or_default(),
        next_cursor: last.map(|row| row.number.to_string()),
        deliveries: log.rows.iter().map(|row| delivery(row, failed)).collect(),
        csrf: reader.csrf(),
    };
    Ok(Html(webhook_page(&chrome(&doors, &reader), &view)))
}

pub(super) async fn redeliver(
    State(doors): State<Shared>,
    At((id, number)): At<(String, String)>,
    posted: Posted,
) -> Result<Redirect, Detour> {
    let by = &posted.by;
    by.may(Scope::WebhooksManage)?;
    let subscription = find(&doors, by, id).await?;
    let number = number.parse().map_err(|_| Problem::not_found("delivery"))?;
    let back = format!("/console/webhooks/{}", subscription.webhook.id);
    let runtime = doors.runtime_of(by);
    let outcome =
        to_the_end(async move { runtime.redeliver(&subscription, number, None).await }).await;
    outcome.map_err(Problem::from)?;
    Ok(Redirect::to(&back))
}

async fn find(doors: &Doors, reader: &Identity, id: String) -> Result<Subscription, Detour> {
    let (tenant, workspace) = (&reader.tenant, reader.workspace.as_ref());
    let id = WebhookId::from(id);
    let found = doors.runtime.webhook(tenant, workspace, &id).await?;
    Ok(found.ok_or_else(Problem::subscription_not_found)?)
}

fn row(doors: &Doors, subscription: &Subscription) -> WebhookRow {
    let (webhook, health) = (&subscription.webhook, &subscription.health);
    let now = doors.now();
    WebhookRow {
        webhook_id: webhook.id.to_string(),
        url: webhook.url.clone(),
        state: standing(health, now).as_str().to_owned(),
        events: webhook.events.clone(),
        tags: webhook.tags.clone(),
        created_at: rfc3339(webhook.created_at),
        paused_until: health.hold_until.filter(|at| *at > now).map(rfc3339),
        consecutive_failures: health.consecutive_failures,
        dropped: subscription.dropped,
    }
}

fn delivery(row: &DeliveryRow, failed: bool) -> tandem_console::DeliveryRow {
    let progress = &row.progress;
    let next = match progress.state {
        DeliveryState::Pending { due } => Some(due),
        DeliveryState::Delivered | DeliveryState::Dead => None,
    };
    tandem_console::DeliveryRow {
        number: row.number,
        event_type: row.event_type.clone(),
        run_id: row.run_id.to_string(),
        sequence: row.seq.0,
        state: shown_state(progress.state).to_owned(),
        attempts: progress.attempts,
        created_at: rfc3339(row.created_at),
        next_attempt_at: next.map(rfc3339),
        outcome: progress.outcome.clone(),
        can_redeliver: next.is_none() && !failed,
    }
}
