//! Outbox entries with an order key. The first of an order waits in its lane like any entry; the
//! others are held and are in no lane. Removing an entry releases the next one, so leasing never reads
//! an entry that has to wait.

use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::{EffectId, OrderKey, TenantId};

/// Where a new entry is in its order.
pub(crate) struct OrderPlace {
    pub(crate) number: i64,
    /// Another is before it.
    pub(crate) held: bool,
}

const LAST: &str = "SELECT max(order_no) FROM outbox WHERE tenant = ?1 AND order_key = ?2";
const RELEASE: &str = "UPDATE outbox SET held = 0 WHERE entry_no = (
         SELECT entry_no FROM outbox WHERE tenant = ?1 AND order_key = ?2
         ORDER BY order_no LIMIT 1)";

/// The end of an order.
pub(crate) fn end(
    connection: &Connection,
    tenant: &TenantId,
    key: &OrderKey,
) -> Result<OrderPlace> {
    let last: Option<i64> = connection
        .prepare_cached(LAST)?
        .query_row(params![tenant.as_str(), key.as_str()], |row| row.get(0))?;
    Ok(OrderPlace {
        number: last.map_or(0, |last| last + 1),
        held: last.is_some(),
    })
}

/// Removes an entry, and releases the next of its order. Whether there was one.
pub(crate) fn remove(connection: &Connection, effect: &EffectId) -> Result<bool> {
    let removed: Option<Option<(String, String)>> = connection
        .prepare_cached("DELETE FROM outbox WHERE effect = ?1 RETURNING order_key, tenant")?
        .query_row([effect.as_str()], |row| {
            let key: Option<String> = row.get(0)?;
            key.map(|key| Ok((row.get(1)?, key))).transpose()
        })
        .optional()?;
    let Some(Some((tenant, key))) = removed else {
        return Ok(false);
    };
    let released = connection
        .prepare_cached(RELEASE)?
        .execute(params![tenant, key])?;
    Ok(released > 0)
}

/// Determines again which entries are held, after rows were inserted without [`end`].
pub(crate) fn rebuild(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "UPDATE outbox SET held = EXISTS (
             SELECT 1 FROM outbox earlier WHERE earlier.tenant = outbox.tenant
                 AND earlier.order_key = outbox.order_key
                 AND (earlier.order_no, earlier.entry_no) < (outbox.order_no, outbox.entry_no))
         WHERE order_key IS NOT NULL",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However long an order is, adding to it and releasing its next entry read one range of one
    /// index.
    #[test]
    fn order_is_read_from_its_index() {
        let connection = Connection::open_in_memory().unwrap();
        for script in crate::migrations::SCRIPTS {
            connection.execute_batch(script).unwrap();
        }
        for sql in [LAST, RELEASE] {
            let mut plan = connection
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                .unwrap();
            let steps: Vec<String> = plan
                .raw_query()
                .mapped(|row| row.get(3))
                .collect::<Result<_>>()
                .unwrap();
            let text = steps.join("\n");
            assert!(
                text.contains("outbox_by_order (tenant=? AND order_key=?"),
                "{text}"
            );
            assert!(!text.contains("SCAN"), "{text}");
            assert!(!text.contains("TEMP B-TREE"), "{text}");
        }
    }
}
