//! The feed of each tenant: events that are not expanded to deliveries yet.

use crate::webhooks::signed;
use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::{TenantId, WebhookId};
use tandem_store::{FeedRow, WebhookFeed};

pub(crate) fn publish(connection: &Connection, tenant: &TenantId, body: &str) -> Result<()> {
    let position: i64 = connection
        .prepare_cached(
            "INSERT INTO webhook_feeds (tenant, head) VALUES (?1, 1)
             ON CONFLICT (tenant) DO UPDATE SET head = head + 1 RETURNING head",
        )?
        .query_row([tenant.as_str()], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT INTO webhook_feed_rows (tenant, position, body) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![tenant.as_str(), position, body])
        .map(drop)
}

/// Records the progress of a chunk; removes its rows when every subscription is done.
pub(crate) fn expand(
    connection: &Connection,
    tenant: &TenantId,
    chunk_end: u64,
    through: Option<&WebhookId>,
) -> Result<()> {
    let chunk_end = signed(chunk_end);
    if through.is_none() {
        connection
            .prepare_cached("DELETE FROM webhook_feed_rows WHERE tenant = ?1 AND position <= ?2")?
            .execute(params![tenant.as_str(), chunk_end])?;
    }
    connection
        .prepare_cached("UPDATE webhook_feeds SET chunk_end = ?2, through = ?3 WHERE tenant = ?1")?
        .execute(params![
            tenant.as_str(),
            through.map(|_| chunk_end),
            through.map(WebhookId::as_str),
        ])
        .map(drop)
}

/// Position of the last row that was ever added.
pub(crate) fn head(connection: &Connection, tenant: &TenantId) -> Result<u64> {
    let head: Option<i64> = connection
        .prepare_cached("SELECT head FROM webhook_feeds WHERE tenant = ?1")?
        .query_row([tenant.as_str()], |row| row.get(0))
        .optional()?;
    Ok(head.unwrap_or(0).unsigned_abs())
}

pub(crate) fn read(
    connection: &Connection,
    tenant: &TenantId,
    limit: usize,
) -> Result<WebhookFeed> {
    // One transaction: the head fits the rows.
    let view = connection.unchecked_transaction()?;
    let feed = view
        .prepare_cached("SELECT head, chunk_end, through FROM webhook_feeds WHERE tenant = ?1")?
        .query_row([tenant.as_str()], |row| {
            let chunk_end: Option<i64> = row.get(1)?;
            let through: Option<String> = row.get(2)?;
            let chunk = chunk_end.zip(through);
            Ok(WebhookFeed {
                head: row.get::<_, i64>(0)?.unsigned_abs(),
                chunk: chunk.map(|(end, webhook)| (end.unsigned_abs(), WebhookId::from(webhook))),
                rows: Vec::new(),
            })
        })
        .optional()?;
    let Some(mut feed) = feed else {
        return Ok(WebhookFeed::default());
    };
    feed.rows = view
        .prepare_cached(
            "SELECT position, body FROM webhook_feed_rows WHERE tenant = ?1
             ORDER BY position LIMIT ?2",
        )?
        .query_map(params![tenant.as_str(), signed(limit as u64)], |row| {
            Ok(FeedRow {
                position: row.get::<_, i64>(0)?.unsigned_abs(),
                body: row.get(1)?,
            })
        })?
        .collect::<Result<_>>()?;
    Ok(feed)
}
