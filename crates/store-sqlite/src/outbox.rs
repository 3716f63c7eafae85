//! The outbox. An entry waits in its lane, is leased, is parked, or is held by its order
//! (`outbox_order.rs`). Each state has its own index, so that finding work does not depend on the
//! number of waiting entries.

use crate::SqliteStore;
use crate::outbox_order;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{EffectId, OrderKey, StreamId, TenantId, Timestamp};
use tandem_store::{
    Committed, DueLane, Fault, Lane, LaneQuery, Lease, LeaseId, LeaseRenewal, LeaseRequest, Outbox,
    OutboxChange, OutboxEntry, WorkClass,
};

pub(crate) fn change(
    connection: &Connection,
    change: &OutboxChange,
    committed: &mut Committed,
) -> Result<()> {
    match change {
        OutboxChange::Put(entry) => put(connection, entry, committed),
        OutboxChange::Wake(entry) => {
            let moved = connection
                .prepare_cached(
                    "UPDATE outbox SET available_at = min(available_at, ?2) WHERE effect = ?1",
                )?
                .execute(params![entry.effect.as_str(), entry.available_at.0])?;
            if moved == 0 {
                put(connection, entry, committed)?;
            }
            Ok(())
        }
        OutboxChange::Remove(effect) => {
            committed.has_released |= outbox_order::remove(connection, effect)?;
            Ok(())
        }
    }
}

fn put(connection: &Connection, entry: &OutboxEntry, committed: &mut Committed) -> Result<()> {
    let key = entry.order_key.as_ref();
    let order = key
        .map(|key| outbox_order::end(connection, &entry.lane.tenant, key))
        .transpose()?;
    let is_held = order.as_ref().is_some_and(|order| order.held);
    let lease = entry.lease.as_ref().filter(|_| !is_held);
    let attempts = match entry.lease.is_some() && is_held {
        true => {
            committed.held.push(entry.effect.clone());
            0
        }
        false => entry.attempts,
    };
    // A replaced entry keeps its order.
    connection
        .prepare_cached(
            "INSERT INTO outbox (effect, stream, kind, body, class, tenant, target, available_at,
                                 attempts, owner, lease_no, leased_until, order_key, order_no, held)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (effect) DO UPDATE SET stream = excluded.stream, kind = excluded.kind,
                 body = excluded.body, class = excluded.class, tenant = excluded.tenant,
                 target = excluded.target, available_at = excluded.available_at,
                 attempts = excluded.attempts, owner = excluded.owner,
                 lease_no = excluded.lease_no, leased_until = excluded.leased_until,
                 failures = 0, error = NULL, failed_at = NULL, parked = 0",
        )?
        .execute(params![
            entry.effect.as_str(),
            entry.stream.as_str(),
            entry.kind,
            entry.body,
            entry.lane.class.number(),
            entry.lane.tenant.as_str(),
            entry.lane.target,
            entry.available_at.0,
            attempts,
            lease.map(|lease| &lease.id.owner),
            lease.map(|lease| stored_number(lease.id.number)),
            lease.map(|lease| lease.until.0),
            key.map(AsRef::<str>::as_ref),
            order.as_ref().map(|order| order.number),
            is_held,
        ])
        .map(drop)
}

/// Numbers of leases count up from 0, so they fit.
pub(crate) fn stored_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn holds_lease(
    connection: &Connection,
    effect: &EffectId,
    lease: &LeaseId,
) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM outbox WHERE effect = ?1 AND owner = ?2 AND lease_no = ?3")?
        .exists(params![
            effect.as_str(),
            lease.owner,
            stored_number(lease.number)
        ])
}

/// Returns the entries whose lease is not held any more.
fn renew(connection: &Connection, renewal: &LeaseRenewal) -> Result<Vec<EffectId>> {
    let mut extend = connection.prepare_cached(
        "UPDATE outbox SET leased_until = ?4 WHERE effect = ?1 AND owner = ?2 AND lease_no = ?3",
    )?;
    let mut lost = Vec::new();
    for (effect, number) in &renewal.leases {
        let extended = extend.execute(params![
            effect.as_str(),
            renewal.owner,
            stored_number(*number),
            renewal.until.0
        ])?;
        if extended == 0 {
            lost.push(effect.clone());
        }
    }
    Ok(lost)
}

fn lease(connection: &Connection, request: &LeaseRequest) -> Result<Vec<OutboxEntry>> {
    let mut taken = Vec::new();
    for (lane, limit) in &request.lane_limits {
        let limit = sql_limit(*limit);
        // Read all rows before the index that is read changes.
        let due: Vec<(i64, OutboxEntry)> = connection
            .prepare_cached(
                "SELECT entry_no, effect, stream, kind, body, available_at, attempts, failures,
                     order_key
                 FROM outbox WHERE owner IS NULL AND parked = 0 AND held = 0
                     AND class = ?1 AND tenant = ?2 AND target = ?3 AND available_at <= ?4
                 ORDER BY available_at, entry_no LIMIT ?5",
            )?
            .query_map(
                params![
                    lane.class.number(),
                    lane.tenant.as_str(),
                    lane.target,
                    request.now.0,
                    limit
                ],
                |row| Ok((row.get(0)?, leased(row, lane, request)?)),
            )?
            .collect::<Result<_>>()?;
        let mut take = connection.prepare_cached(
            "UPDATE outbox SET owner = ?2, lease_no = ?3, leased_until = ?4, attempts = ?5
             WHERE entry_no = ?1",
        )?;
        for (entry_no, entry) in due {
            take.execute(params![
                entry_no,
                request.lease.owner,
                stored_number(request.lease.number),
                request.until.0,
                entry.attempts
            ])?;
            taken.push(entry);
        }
    }
    Ok(taken)
}

/// The entry with its new lease.
fn leased(row: &Row<'_>, lane: &Lane, request: &LeaseRequest) -> Result<OutboxEntry> {
    Ok(OutboxEntry {
        effect: EffectId::new(row.get_ref(1)?.as_str()?),
        stream: StreamId::new(row.get_ref(2)?.as_str()?),
        kind: row.get(3)?,
        body: row.get(4)?,
        lane: lane.clone(),
        available_at: Timestamp(row.get(5)?),
        attempts: row.get::<_, u32>(6)?.saturating_add(1),
        failures: row.get(7)?,
        order_key: row.get::<_, Option<String>>(8)?.map(OrderKey::from),
        lease: Some(Lease {
            id: request.lease.clone(),
            until: request.until,
        }),
    })
}

/// Jumps in the index of lanes from tenant to tenant and from target to target.
fn due_lanes(connection: &Connection, query: &LaneQuery) -> Result<Vec<DueLane>> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    for_each_in_a_circle(
        query.after_tenant.as_ref().map(|tenant| tenant.as_str()),
        |after, up_to| {
            if looked_at >= query.tenants {
                return Ok(None);
            }
            let tenant = next_tenant(connection, query.class, after, up_to)?;
            if let Some(tenant) = &tenant {
                let before = found.len();
                due_targets(connection, query, tenant, &mut found)?;
                looked_at += usize::from(found.len() > before);
            }
            Ok(tenant)
        },
    )?;
    Ok(found)
}

fn due_targets(
    connection: &Connection,
    query: &LaneQuery,
    tenant: &str,
    found: &mut Vec<DueLane>,
) -> Result<()> {
    let tenant_id = TenantId::new(tenant);
    let mut left = query.targets;
    let after = query.after_target.get(&tenant_id).map(String::as_str);
    for_each_in_a_circle(after, |after, up_to| {
        if left == 0 {
            return Ok(None);
        }
        let next = next_target(connection, query.class, tenant, after, up_to)?;
        let Some((target, first)) = next else {
            return Ok(None);
        };
        if first <= query.now {
            left -= 1;
            let lane = Lane {
                class: query.class,
                tenant: tenant_id.clone(),
                target: target.clone(),
            };
            let due = count_due(connection, &lane, query)?;
            found.push(DueLane { lane, due });
        }
        Ok(Some(target))
    })
}

/// Calls `next` with the name to search after and the last one allowed (`None`: all): first from
/// `start` to the end, then from the beginning up to `start`, each time until it finds nothing
/// more.
fn for_each_in_a_circle(
    start: Option<&str>,
    mut next: impl FnMut(Option<&str>, Option<&str>) -> Result<Option<String>>,
) -> Result<()> {
    let mut last = start.map(str::to_owned);
    while let Some(name) = next(last.as_deref(), None)? {
        last = Some(name);
    }
    if start.is_none() {
        return Ok(());
    }
    let mut last: Option<String> = None;
    while let Some(name) = next(last.as_deref(), start)? {
        last = Some(name);
    }
    Ok(())
}

fn next_tenant(
    connection: &Connection,
    class: WorkClass,
    after: Option<&str>,
    up_to: Option<&str>,
) -> Result<Option<String>> {
    // Separate statements, because an optional condition prevents the use of the index.
    let first =
        "SELECT tenant FROM outbox WHERE owner IS NULL AND parked = 0 AND held = 0 AND class = ?1
                 ORDER BY tenant LIMIT 1";
    let further =
        "SELECT tenant FROM outbox WHERE owner IS NULL AND parked = 0 AND held = 0 AND class = ?1
                       AND tenant > ?2 ORDER BY tenant LIMIT 1";
    let class = class.number();
    let found: Option<String> = match after {
        None => connection
            .prepare_cached(first)?
            .query_row([class], |row| row.get(0))
            .optional()?,
        Some(after) => connection
            .prepare_cached(further)?
            .query_row(params![class, after], |row| row.get(0))
            .optional()?,
    };
    Ok(found.filter(|name| up_to.is_none_or(|last| name.as_str() <= last)))
}

/// The next target of a tenant, and when its first entry is due.
fn next_target(
    connection: &Connection,
    class: WorkClass,
    tenant: &str,
    after: Option<&str>,
    up_to: Option<&str>,
) -> Result<Option<(String, Timestamp)>> {
    let first =
        "SELECT target, available_at FROM outbox WHERE owner IS NULL AND parked = 0 AND held = 0
                     AND class = ?1 AND tenant = ?2 ORDER BY target, available_at LIMIT 1";
    let further =
        "SELECT target, available_at FROM outbox WHERE owner IS NULL AND parked = 0 AND held = 0
                       AND class = ?1 AND tenant = ?2 AND target > ?3
                   ORDER BY target, available_at LIMIT 1";
    let class = class.number();
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, Timestamp(row.get(1)?)));
    let found = match after {
        None => connection
            .prepare_cached(first)?
            .query_row(params![class, tenant], read)
            .optional()?,
        Some(after) => connection
            .prepare_cached(further)?
            .query_row(params![class, tenant, after], read)
            .optional()?,
    };
    Ok(found.filter(|(name, _)| up_to.is_none_or(|last| name.as_str() <= last)))
}

fn count_due(connection: &Connection, lane: &Lane, query: &LaneQuery) -> Result<usize> {
    let counted: i64 = connection
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE owner IS NULL AND parked = 0 AND held = 0
                 AND class = ?1 AND tenant = ?2 AND target = ?3 AND available_at <= ?4 LIMIT ?5)",
        )?
        .query_row(
            params![
                lane.class.number(),
                lane.tenant.as_str(),
                lane.target,
                query.now.0,
                sql_limit(query.count_up_to)
            ],
            |row| row.get(0),
        )?;
    Ok(usize::try_from(counted).unwrap_or(0))
}

fn has_expired(connection: &Connection, now: Timestamp) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM outbox WHERE owner IS NOT NULL AND leased_until <= ?1")?
        .exists([now.0])
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn due_lanes(&self, query: LaneQuery) -> Result<Vec<DueLane>, Fault> {
        let now = query.now;
        let looked = query.clone();
        let found = self
            .readers
            .read(move |connection| match has_expired(connection, now)? {
                true => Ok(None),
                false => due_lanes(connection, &looked).map(Some),
            })
            .await?;
        if let Some(found) = found {
            return Ok(found);
        }
        // Clear expired leases, so that their entries wait in their lanes like the others.
        self.writer
            .write_internal(move |tx| {
                let free = "UPDATE outbox SET owner = NULL, leased_until = NULL
                            WHERE owner IS NOT NULL AND leased_until <= ?1";
                tx.connection.prepare_cached(free)?.execute([now.0])?;
                Ok(())
            })
            .await?;
        self.readers
            .read(move |connection| due_lanes(connection, &query))
            .await
    }

    async fn lease(&self, request: LeaseRequest) -> Result<Vec<OutboxEntry>, Fault> {
        self.writer
            .write_internal(move |tx| Ok(lease(tx.connection, &request)?))
            .await
    }

    async fn release(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        available_at: Timestamp,
    ) -> Result<(), Fault> {
        let (effect, lease) = (effect.clone(), lease.clone());
        self.writer
            .write_internal(move |tx| {
                tx.connection
                    .prepare_cached(
                        "UPDATE outbox SET owner = NULL, leased_until = NULL, available_at = ?4
                         WHERE effect = ?1 AND owner = ?2 AND lease_no = ?3",
                    )?
                    .execute(params![
                        effect.as_str(),
                        lease.owner,
                        stored_number(lease.number),
                        available_at.0
                    ])?;
                Ok(())
            })
            .await
    }

    async fn renew_leases(&self, renewal: LeaseRenewal) -> Result<Vec<EffectId>, Fault> {
        self.writer
            .write_internal(move |tx| Ok(renew(tx.connection, &renewal)?))
            .await
    }

    async fn break_leases(&self, owner: &str) -> Result<u64, Fault> {
        let owner = owner.to_owned();
        self.writer
            .write_internal(move |tx| {
                let broken = tx
                    .connection
                    .prepare_cached(
                        "UPDATE outbox SET owner = NULL, leased_until = NULL
                         WHERE owner IS NOT NULL AND owner <> ?1",
                    )?
                    .execute([&owner])?;
                Ok(broken as u64)
            })
            .await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Fault> {
        let first = |connection: &Connection, sql| {
            connection
                .prepare_cached(sql)?
                .query_row((), |row| Ok(row.get::<_, Option<i64>>(0)?.map(Timestamp)))
        };
        self.readers
            .read(move |connection| {
                let waiting = first(
                    connection,
                    "SELECT min(available_at) FROM outbox WHERE owner IS NULL AND parked = 0 AND held = 0",
                )?;
                let leased = first(
                    connection,
                    "SELECT min(leased_until) FROM outbox WHERE owner IS NOT NULL",
                )?;
                Ok(waiting.into_iter().chain(leased).min())
            })
            .await
    }

    async fn depth(&self) -> Result<u64, Fault> {
        self.readers
            .read(|connection| {
                connection
                    .prepare_cached("SELECT count(*) FROM outbox")?
                    .query_row((), |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
            })
            .await
    }
}
