//! Subscriptions to events, and the bounded delivery log of each. The feed is in `webhook_feed.rs`.

use crate::SqliteStore;
use crate::{fault, webhook_feed};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{RunId, Seq, TenantId, Timestamp, WebhookId};
use tandem_store::{
    DELIVERY_LOG_LIMIT, DeliveryListing, DeliveryProgress, DeliveryRow, DeliveryState, Fault,
    ReadWebhooks, StoredWebhook, WebhookChange, WebhookFeed,
};

pub(crate) fn change(connection: &Connection, change: &WebhookChange) -> Result<()> {
    match change {
        WebhookChange::Put {
            webhook,
            tenant,
            body,
        } => connection
            .prepare_cached(
                "INSERT INTO webhooks (webhook, tenant, body, feed_start)
                 VALUES (?1, ?2, ?3,
                         coalesce((SELECT head FROM webhook_feeds WHERE tenant = ?2), 0))
                 ON CONFLICT (webhook) DO UPDATE SET body = excluded.body",
            )?
            .execute([webhook.as_str(), tenant.as_str(), body])
            .map(drop),
        WebhookChange::Health { webhook, health } => connection
            .prepare_cached("UPDATE webhooks SET health = ?2 WHERE webhook = ?1")?
            .execute([webhook.as_str(), health])
            .map(drop),
        WebhookChange::Delete { webhook } => {
            for delete in [
                "DELETE FROM webhook_deliveries WHERE webhook = ?1",
                "DELETE FROM webhooks WHERE webhook = ?1",
            ] {
                connection
                    .prepare_cached(delete)?
                    .execute([webhook.as_str()])?;
            }
            Ok(())
        }
        WebhookChange::Publish { tenant, body } => webhook_feed::publish(connection, tenant, body),
        WebhookChange::Expand {
            tenant,
            chunk_end,
            through,
        } => webhook_feed::expand(connection, tenant, *chunk_end, through.as_ref()),
        WebhookChange::Drop { webhook, count } => add_dropped(connection, webhook, *count),
        WebhookChange::Deliver {
            webhook,
            run_id,
            seq,
            event_type,
            at,
        } => deliver(connection, webhook, run_id, *seq, event_type, *at),
        WebhookChange::Settle {
            webhook,
            number,
            progress,
        } => connection
            .prepare_cached(
                "UPDATE webhook_deliveries
                 SET state = ?3, due = ?4, attempts = ?5, last_at = ?6, outcome = ?7
                 WHERE webhook = ?1 AND number = ?2",
            )?
            .execute(params![
                webhook.as_str(),
                signed(*number),
                progress.state.as_str(),
                due_of(progress.state).map(|due| due.0),
                progress.attempts,
                progress.last_at.map(|at| at.0),
                progress.outcome,
            ])
            .map(drop),
    }
}

fn deliver(
    connection: &Connection,
    webhook: &WebhookId,
    run_id: &RunId,
    seq: Seq,
    event_type: &str,
    at: Timestamp,
) -> Result<()> {
    let number: Option<i64> = connection
        .prepare_cached(
            "UPDATE webhooks SET last_number = last_number + 1 WHERE webhook = ?1
             RETURNING last_number",
        )?
        .query_row([webhook.as_str()], |row| row.get(0))
        .optional()?;
    let Some(number) = number else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "INSERT INTO webhook_deliveries
                 (webhook, number, run_id, seq, event_type, created_at, state, due, attempts)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?6, 0)",
        )?
        .execute(params![
            webhook.as_str(),
            number,
            run_id.as_str(),
            signed(seq.0),
            event_type,
            at.0,
        ])?;
    trim_log(connection, webhook, number - signed(DELIVERY_LOG_LIMIT))
}

/// Deletes log rows up to `last`, one at a time as the log grows; pending ones are counted.
fn trim_log(connection: &Connection, webhook: &WebhookId, last: i64) -> Result<()> {
    if last <= 0 {
        return Ok(());
    }
    let mut forget = connection.prepare_cached(
        "DELETE FROM webhook_deliveries WHERE webhook = ?1 AND number <= ?2 RETURNING due",
    )?;
    let removed: Vec<Option<i64>> = forget
        .query_map(params![webhook.as_str(), last], |row| row.get(0))?
        .collect::<Result<_>>()?;
    let dropped = removed.iter().flatten().count();
    match dropped {
        0 => Ok(()),
        _ => add_dropped(connection, webhook, dropped as u64),
    }
}

fn add_dropped(connection: &Connection, webhook: &WebhookId, count: u64) -> Result<()> {
    connection
        .prepare_cached("UPDATE webhooks SET dropped = dropped + ?2 WHERE webhook = ?1")?
        .execute(params![webhook.as_str(), signed(count)])
        .map(drop)
}

pub(crate) fn has_body(connection: &Connection, webhook: &WebhookId, body: &str) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM webhooks WHERE webhook = ?1 AND body = ?2")?
        .exists([webhook.as_str(), body])
}

/// When the next pending delivery is due.
pub(crate) fn next(connection: &Connection, webhook: &WebhookId) -> Result<Option<Timestamp>> {
    connection
        .prepare_cached(
            "SELECT min(due) FROM webhook_deliveries WHERE webhook = ?1 AND due IS NOT NULL",
        )?
        .query_row([webhook.as_str()], |row| {
            Ok(row.get::<_, Option<i64>>(0)?.map(Timestamp))
        })
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn due_of(state: DeliveryState) -> Option<Timestamp> {
    match state {
        DeliveryState::Pending { due } => Some(due),
        DeliveryState::Delivered | DeliveryState::Dead => None,
    }
}

const SUBSCRIPTION: &str =
    "SELECT webhook, tenant, body, health, dropped, feed_start FROM webhooks";

fn subscription(row: &Row<'_>) -> Result<StoredWebhook> {
    Ok(StoredWebhook {
        webhook: WebhookId::new(row.get_ref(0)?.as_str()?),
        tenant: TenantId::new(row.get_ref(1)?.as_str()?),
        body: row.get(2)?,
        health: row.get(3)?,
        dropped: row.get::<_, i64>(4)?.unsigned_abs(),
        feed_start: row.get::<_, i64>(5)?.unsigned_abs(),
    })
}

const DELIVERY: &str = "SELECT webhook, number, run_id, seq, event_type, created_at, state, due,
    attempts, last_at, outcome FROM webhook_deliveries";

fn delivery(row: &Row<'_>) -> Result<DeliveryRow> {
    let due: Option<i64> = row.get(7)?;
    let state = match (row.get_ref(6)?.as_str()?, due) {
        ("pending", Some(due)) => DeliveryState::Pending {
            due: Timestamp(due),
        },
        ("delivered", None) => DeliveryState::Delivered,
        ("dead", None) => DeliveryState::Dead,
        (other, _) => return Err(fault::malformed(6, format!("{other:?} is no state"))),
    };
    Ok(DeliveryRow {
        webhook: WebhookId::new(row.get_ref(0)?.as_str()?),
        number: row.get::<_, i64>(1)?.unsigned_abs(),
        run_id: RunId::new(row.get_ref(2)?.as_str()?),
        seq: Seq(row.get::<_, i64>(3)?.unsigned_abs()),
        event_type: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
        progress: DeliveryProgress {
            state,
            attempts: row.get(8)?,
            last_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
            outcome: row.get(10)?,
        },
    })
}

#[async_trait]
impl ReadWebhooks for SqliteStore {
    async fn webhook(&self, webhook: &WebhookId) -> Result<Option<StoredWebhook>, Fault> {
        let webhook = webhook.clone();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(&format!("{SUBSCRIPTION} WHERE webhook = ?1"))?
                    .query_row([webhook.as_str()], subscription)
                    .optional()
            })
            .await
    }

    async fn list_webhooks(&self, tenant: &TenantId) -> Result<Vec<StoredWebhook>, Fault> {
        let tenant = tenant.clone();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(&format!(
                        "{SUBSCRIPTION} WHERE tenant = ?1 ORDER BY webhook"
                    ))?
                    .query_map([tenant.as_str()], subscription)?
                    .collect()
            })
            .await
    }

    async fn webhook_feed(&self, tenant: &TenantId, limit: usize) -> Result<WebhookFeed, Fault> {
        let tenant = tenant.clone();
        self.readers
            .read(move |connection| webhook_feed::read(connection, &tenant, limit))
            .await
    }

    async fn delivery(
        &self,
        webhook: &WebhookId,
        number: u64,
    ) -> Result<Option<DeliveryRow>, Fault> {
        let webhook = webhook.clone();
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(&format!("{DELIVERY} WHERE webhook = ?1 AND number = ?2"))?
                    .query_row(params![webhook.as_str(), signed(number)], delivery)
                    .optional()
            })
            .await
    }

    async fn due_deliveries(
        &self,
        webhook: &WebhookId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, Fault> {
        let (webhook, limit) = (webhook.clone(), signed(limit as u64));
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(&format!(
                        "{DELIVERY} INDEXED BY webhook_deliveries_by_due
                         WHERE webhook = ?1 AND due <= ?2 ORDER BY number LIMIT ?3"
                    ))?
                    .query_map(params![webhook.as_str(), now.0, limit], delivery)?
                    .collect()
            })
            .await
    }

    async fn next_delivery(&self, webhook: &WebhookId) -> Result<Option<Timestamp>, Fault> {
        let webhook = webhook.clone();
        self.readers
            .read(move |connection| next(connection, &webhook))
            .await
    }

    async fn list_deliveries(
        &self,
        webhook: &WebhookId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DeliveryListing, Fault> {
        let webhook = webhook.clone();
        let before = before.map_or(i64::MAX, signed);
        self.readers
            .read(move |connection| {
                let one_more = signed(limit as u64).saturating_add(1);
                let mut rows: Vec<DeliveryRow> = connection
                    .prepare_cached(&format!(
                        "{DELIVERY} WHERE webhook = ?1 AND number < ?2
                         ORDER BY number DESC LIMIT ?3"
                    ))?
                    .query_map(params![webhook.as_str(), before, one_more], delivery)?
                    .collect::<Result<_>>()?;
                let more = rows.len() > limit;
                rows.truncate(limit);
                Ok(DeliveryListing { rows, more })
            })
            .await
    }
}
