//! Storage usage of one tenant or of all.

use crate::events::{SEQ_BITS, seq};
use rusqlite::types::ToSql;
use rusqlite::{Connection, Result};
use tandem_record::{RunId, TenantId, Timestamp, WorkflowId};
use tandem_store::{
    RunCounts, RunSize, ScopeSize, StorageUsage, USAGE_MAX_RUNS, USAGE_MAX_WRITES, USAGE_TOP_COUNT,
    WorkflowSize,
};

pub(crate) fn storage_usage(view: &Connection, tenant: Option<&TenantId>) -> Result<StorageUsage> {
    let query = UsageQuery::new(tenant);
    Ok(StorageUsage {
        runs: query.runs(view)?,
        workflows: query.workflows(view)?,
        largest_runs: query.largest(view)?,
        memory: query.memory(view)?,
        oldest_ends: tenant.map_or(Ok(Vec::new()), |tenant| oldest_ends(view, tenant))?,
    })
}

/// When the oldest retained run of each workflow ended.
fn oldest_ends(view: &Connection, tenant: &TenantId) -> Result<Vec<(WorkflowId, Timestamp)>> {
    view.prepare_cached(
        "SELECT workflow_id, min(ended_at) FROM (
             SELECT workflow_id, ended_at, tombstone FROM runs WHERE tenant = ?1
             ORDER BY position DESC LIMIT ?2)
         WHERE ended_at IS NOT NULL AND tombstone IS NULL GROUP BY workflow_id",
    )?
    .query_map((tenant.as_str(), limit(USAGE_MAX_RUNS)), |row| {
        let workflow = WorkflowId::new(row.get_ref(0)?.as_str()?);
        Ok((workflow, Timestamp(row.get(1)?)))
    })?
    .collect()
}

/// Queries about one tenant, or about all of them.
struct UsageQuery<'a> {
    tenant: Option<&'a str>,
    /// Follows `FROM runs` or `FROM memory`; the tenant is the third value.
    of: &'static str,
}

impl<'a> UsageQuery<'a> {
    fn new(tenant: Option<&'a TenantId>) -> Self {
        let tenant = tenant.map(AsRef::<str>::as_ref);
        let of = if tenant.is_some() {
            "WHERE tenant = ?3"
        } else {
            "WHERE ?3 IS NULL"
        };
        Self { tenant, of }
    }

    fn runs(&self, view: &Connection) -> Result<RunCounts> {
        let sql = format!(
            "SELECT count(*) FILTER (WHERE ended_at IS NULL AND tombstone IS NULL),
                    count(*) FILTER (WHERE ended_at IS NOT NULL AND tombstone IS NULL),
                    count(*) FILTER (WHERE tombstone IS NOT NULL), count(*) >= ?2
             FROM (SELECT ended_at, tombstone FROM runs {} ORDER BY position DESC LIMIT ?1)",
            self.of
        );
        let bound = limit(USAGE_MAX_RUNS);
        let values: [&dyn ToSql; 3] = [&bound, &bound, &self.tenant];
        view.query_row(&sql, values.as_slice(), |row| {
            Ok(RunCounts {
                live: count(row, 0)?,
                retained: count(row, 1)?,
                purged: count(row, 2)?,
                more: row.get(3)?,
            })
        })
    }

    fn workflows(&self, view: &Connection) -> Result<Vec<WorkflowSize>> {
        let sql = format!(
            "SELECT r.tenant, r.workflow_id, count(*) AS runs, sum(s.head + 1) AS events
             FROM (SELECT run_id, tenant, workflow_id FROM runs {} AND tombstone IS NULL
                   ORDER BY position DESC LIMIT ?1) r
             JOIN streams s ON s.stream = 'run:' || r.run_id
             GROUP BY r.tenant, r.workflow_id
             ORDER BY events DESC, runs DESC, r.tenant, r.workflow_id LIMIT ?2",
            self.of
        );
        self.largest_rows(view, &sql, USAGE_MAX_RUNS, |row| {
            Ok(WorkflowSize {
                tenant: TenantId::new(row.get_ref(0)?.as_str()?),
                workflow_id: WorkflowId::new(row.get_ref(1)?.as_str()?),
                runs: count(row, 2)?,
                events: count(row, 3)?,
            })
        })
    }

    fn largest(&self, view: &Connection) -> Result<Vec<RunSize>> {
        let sql = format!(
            "SELECT r.run_id, r.tenant, r.workflow_id, r.status, s.head + 1,
                    (SELECT coalesce(sum(length(coalesce(e.compressed, CAST(e.bodies AS BLOB))) + 1), 0) - s.head - 1
                     FROM events e WHERE e.place BETWEEN s.stream_no << {SEQ_BITS}
                         AND (s.stream_no << {SEQ_BITS}) + s.head)
             FROM (SELECT position, run_id, tenant, workflow_id, status FROM runs
                   {} AND tombstone IS NULL ORDER BY position DESC LIMIT ?1) r
             JOIN streams s ON s.stream = 'run:' || r.run_id
             ORDER BY s.head DESC, r.position DESC LIMIT ?2",
            self.of
        );
        self.largest_rows(view, &sql, USAGE_MAX_RUNS, |row| {
            Ok(RunSize {
                run_id: RunId::new(row.get_ref(0)?.as_str()?),
                tenant: TenantId::new(row.get_ref(1)?.as_str()?),
                workflow_id: WorkflowId::new(row.get_ref(2)?.as_str()?),
                status: row.get(3)?,
                events: seq(row.get(4)?).0,
                bytes: count(row, 5)?,
            })
        })
    }

    fn memory(&self, view: &Connection) -> Result<Vec<ScopeSize>> {
        let sql = format!(
            "SELECT tenant, scope, count(*), sum(coalesce(length(CAST(body AS BLOB)), 0)) AS bytes
             FROM (SELECT tenant, scope, body FROM memory {} AND tenant <> '' LIMIT ?1)
             GROUP BY tenant, scope ORDER BY bytes DESC, tenant, scope LIMIT ?2",
            self.of
        );
        self.largest_rows(view, &sql, USAGE_MAX_WRITES, |row| {
            Ok(ScopeSize {
                tenant: TenantId::new(row.get_ref(0)?.as_str()?),
                scope: row.get(1)?,
                writes: count(row, 2)?,
                bytes: count(row, 3)?,
            })
        })
    }

    fn largest_rows<T>(
        &self,
        view: &Connection,
        sql: &str,
        scan_limit: usize,
        read: impl FnMut(&rusqlite::Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (scan_limit, named) = (limit(scan_limit), limit(USAGE_TOP_COUNT));
        let values: [&dyn ToSql; 3] = [&scan_limit, &named, &self.tenant];
        let mut select = view.prepare(sql)?;
        let found = select.query_map(values.as_slice(), read)?;
        found.collect()
    }
}

fn limit(bound: usize) -> i64 {
    i64::try_from(bound).unwrap_or(i64::MAX)
}

fn count(row: &rusqlite::Row<'_>, place: usize) -> Result<u64> {
    Ok(row.get::<_, i64>(place)?.unsigned_abs())
}
