//! One attempt at one delivery: reads its event, sends it, and computes its progress.

use super::health::{self, MAX_ATTEMPTS};
use super::{Subscription, WebhookDelivery};
use crate::codec;
use crate::runtime::Runtime;
use tandem_record::{Seq, StreamId, Timestamp};
use tandem_store::{DeliveryProgress, DeliveryRow, DeliveryState, Fault, WebhookChange};

/// Result of an attempt.
pub(super) enum Attempt {
    Delivered(String),
    Failed(String),
    /// There is nothing left to deliver.
    NothingToDeliver(&'static str),
}

/// A fault means that nothing was sent.
pub(super) async fn attempt(
    runtime: &Runtime,
    subscription: &Subscription,
    row: &DeliveryRow,
    now: Timestamp,
) -> Result<Attempt, Fault> {
    let Some(webhook_sender) = runtime.webhook_sender() else {
        return Ok(Attempt::Failed("this host delivers nothing".to_owned()));
    };
    let run = runtime.store().run_of_any_tenant(&row.run_id).await?;
    let Some(run) = run.filter(|run| run.row.tenant == subscription.webhook.tenant) else {
        return Ok(Attempt::NothingToDeliver("the run is gone"));
    };
    let after = row.seq.0.checked_sub(1).map(Seq);
    let stream = StreamId::of_run(&row.run_id);
    let slice = runtime.store().events(&stream, after, 1).await?;
    let Some(event) = slice.events.first().filter(|event| event.seq == row.seq) else {
        return Ok(Attempt::NothingToDeliver("the event is gone"));
    };
    let sensitivity = runtime.sensitivity(&run).await?;
    let trace = runtime.trace_of(&row.run_id).await?;
    let delivery = WebhookDelivery {
        webhook: &subscription.webhook,
        run: &run.row,
        recorded: &codec::decode(event)?,
        sensitivity: &sensitivity,
        trace: trace.as_ref(),
        sent_at: now,
    };
    Ok(match webhook_sender.deliver(&delivery).await {
        Ok(response) => Attempt::Delivered(response),
        Err(response) => Attempt::Failed(response),
    })
}

/// Whether a delivery is lost with this attempt: its event was purged before the delivery was made.
/// One that is redelivered by hand was made or counted before.
pub(super) fn loses_delivery(row: &DeliveryRow, attempt: &Attempt) -> bool {
    let redelivered = row.progress.attempts == 0 && row.progress.last_at.is_some();
    matches!(attempt, Attempt::NothingToDeliver(_)) && !redelivered
}

/// Progress of a delivery after an attempt.
pub(super) fn progress_after(
    row: &DeliveryRow,
    attempt: Attempt,
    now: Timestamp,
) -> DeliveryProgress {
    let attempts = row.progress.attempts.saturating_add(1);
    let (state, outcome) = match attempt {
        Attempt::Delivered(response) => (DeliveryState::Delivered, response),
        Attempt::NothingToDeliver(why) => (DeliveryState::Dead, why.to_owned()),
        Attempt::Failed(why) if attempts >= MAX_ATTEMPTS => (DeliveryState::Dead, why),
        Attempt::Failed(why) => {
            let pause = health::pause_ms(attempts, &row.webhook, row.number);
            let due = now.plus_ms(pause);
            (DeliveryState::Pending { due }, why)
        }
    };
    DeliveryProgress {
        state,
        attempts,
        last_at: Some(now),
        outcome: Some(outcome),
    }
}

/// Progress of a delivery that is given up without another attempt.
pub(super) fn given_up(row: &DeliveryRow, why: &str) -> DeliveryProgress {
    DeliveryProgress {
        state: DeliveryState::Dead,
        outcome: Some(match &row.progress.outcome {
            Some(last) => format!("{why}; last: {last}"),
            None => why.to_owned(),
        }),
        ..row.progress.clone()
    }
}

/// Adds the progress to the commit and to the metrics.
pub(super) fn record_attempt(
    runtime: &Runtime,
    row: DeliveryRow,
    progress: DeliveryProgress,
) -> WebhookChange {
    let counted = match progress.state {
        DeliveryState::Delivered => "delivered",
        DeliveryState::Pending { .. } => "failed",
        DeliveryState::Dead => "dead",
    };
    if progress.state == DeliveryState::Dead {
        let why = progress.outcome.as_deref();
        tracing::warn!(webhook = %row.webhook, number = row.number, why, "delivery given up");
    }
    runtime.inner.metrics.webhook_delivery(counted);
    WebhookChange::Settle {
        webhook: row.webhook,
        number: row.number,
        progress,
    }
}
