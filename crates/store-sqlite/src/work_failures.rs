//! Failed work, rescheduled or parked, in the rows of the timers and effects themselves.

use crate::SqliteStore;
use crate::outbox::stored_number;
use crate::timers::PARKED;
use async_trait::async_trait;
use rusqlite::{Connection, Result, Row, params};
use tandem_record::{EffectId, StreamId, TenantId, Timestamp};
use tandem_store::{DueTimer, Fault, LeaseId, ParkedWork, WorkFailure, WorkFailures};

fn record_timer_failure(
    connection: &Connection,
    timer: &DueTimer,
    failure: &WorkFailure,
) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE timers SET due = ?4, failures = ?5, error = ?6, failed_at = ?7
             WHERE stream = ?1 AND key = ?2 AND due = ?3",
        )?
        .execute(params![
            timer.stream.as_str(),
            timer.name.as_str(),
            timer.stored_due().0,
            failure.retry_at.map_or(PARKED, |at| at.0),
            failure.failures,
            failure.error,
            failure.failed_at.0,
        ])
        .map(drop)
}

fn record_effect_failure(
    connection: &Connection,
    effect: &EffectId,
    lease: &LeaseId,
    failure: &WorkFailure,
) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE outbox SET owner = NULL, leased_until = NULL, failures = ?4, error = ?5,
                 failed_at = ?6, available_at = coalesce(?7, available_at), parked = ?7 IS NULL
             WHERE effect = ?1 AND owner = ?2 AND lease_no = ?3",
        )?
        .execute(params![
            effect.as_str(),
            lease.owner,
            stored_number(lease.number),
            failure.failures,
            failure.error,
            failure.failed_at.0,
            failure.retry_at.map(|at| at.0),
        ])
        .map(drop)
}

fn list_parked(
    connection: &Connection,
    tenant: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<ParkedWork>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT * FROM (
             SELECT stream, tenant, 'timer', key, failures, error, failed_at
             FROM timers WHERE due = {PARKED}
             UNION ALL
             SELECT stream, tenant, kind, effect, failures, error, failed_at
             FROM outbox WHERE parked = 1)
         WHERE ?1 IS NULL OR tenant = ?1 LIMIT ?2"
    );
    connection
        .prepare_cached(&sql)?
        .query_map(params![tenant.map(|t| t.as_str()), limit], read)?
        .collect()
}

fn read(row: &Row<'_>) -> Result<ParkedWork> {
    Ok(ParkedWork {
        stream: StreamId::new(row.get_ref(0)?.as_str()?),
        tenant: row.get::<_, Option<String>>(1)?.map(TenantId::from),
        kind: row.get(2)?,
        name: row.get(3)?,
        failures: row.get(4)?,
        error: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
        failed_at: Timestamp(row.get::<_, Option<i64>>(6)?.unwrap_or_default()),
    })
}

fn retry(connection: &Connection, stream: &StreamId, now: Timestamp) -> Result<u64> {
    let timers = connection
        .prepare_cached(&format!(
            "UPDATE timers SET due = ?2, failures = 0, error = NULL, failed_at = NULL
             WHERE stream = ?1 AND due = {PARKED}"
        ))?
        .execute(params![stream.as_str(), now.0])?;
    let effects = connection
        .prepare_cached(
            "UPDATE outbox SET parked = 0, failures = 0, error = NULL, failed_at = NULL,
                 available_at = ?2
             WHERE stream = ?1 AND parked = 1",
        )?
        .execute(params![stream.as_str(), now.0])?;
    Ok((timers + effects) as u64)
}

#[async_trait]
impl WorkFailures for SqliteStore {
    async fn record_timer_failure(
        &self,
        timer: &DueTimer,
        failure: WorkFailure,
    ) -> Result<(), Fault> {
        let timer = timer.clone();
        self.writer
            .write_internal(move |tx| Ok(record_timer_failure(tx.connection, &timer, &failure)?))
            .await
    }

    async fn record_effect_failure(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        failure: WorkFailure,
    ) -> Result<(), Fault> {
        let (effect, lease) = (effect.clone(), lease.clone());
        self.writer
            .write_internal(move |tx| {
                Ok(record_effect_failure(
                    tx.connection,
                    &effect,
                    &lease,
                    &failure,
                )?)
            })
            .await
    }

    async fn list_parked(
        &self,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<ParkedWork>, Fault> {
        let tenant = tenant.cloned();
        self.readers
            .read(move |connection| list_parked(connection, tenant.as_ref(), limit))
            .await
    }

    async fn count_parked(&self) -> Result<u64, Fault> {
        self.readers
            .read(|connection| {
                let sql = format!(
                    "SELECT (SELECT count(*) FROM timers WHERE due = {PARKED})
                          + (SELECT count(*) FROM outbox WHERE parked = 1)"
                );
                connection
                    .prepare_cached(&sql)?
                    .query_row((), |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
            })
            .await
    }

    async fn retry_parked(&self, stream: &StreamId, now: Timestamp) -> Result<u64, Fault> {
        let stream = stream.clone();
        self.writer
            .write_internal(move |tx| Ok(retry(tx.connection, &stream, now)?))
            .await
    }
}
