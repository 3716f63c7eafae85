//! The run projection. A row's `position` is assigned at insert and orders every listing; its head
//! is its stream's.

use crate::SqliteStore;
use crate::cursor_position::{cursor_position, position_query};
use crate::events::seq;
use crate::fault;
use crate::statement_cache::StatementCache;
use async_trait::async_trait;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{DefinitionHash, Partition, RunId, RunStatus, TenantId, Timestamp, WorkflowId};
use tandem_store::{
    Fault, ListedRun, Page, ReadRuns, RunFilter, RunListing, RunPosition, RunRow, StoredRun,
};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "run_id, tenant, workspace, workflow_id, definition, status, parent, scope, created_at, \
         ended_at, error_code"
    };
}
const COLUMNS: usize = 11;

/// Must repeat the condition of the index it names.
const LIVE: &str = "SELECT run_id FROM runs INDEXED BY runs_by_scope
    WHERE tenant = ?1 AND scope = ?2 AND workspace IS ?3 AND status NOT IN ('completed', 'failed', 'cancelled')
    ORDER BY position LIMIT 1";

const FIND: &str = concat!(
    "SELECT ",
    columns!(),
    ", (SELECT head FROM streams WHERE stream = 'run:' || run_id), tombstone FROM runs \
     WHERE run_id = ?1"
);

pub(crate) fn project(statements: &mut StatementCache<'_>, row: &RunRow) -> Result<()> {
    // An unchanged row is not written, and neither are its indexes.
    let upsert = statements.get(concat!(
        "INSERT INTO runs (",
        columns!(),
        ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (run_id) DO UPDATE
         SET status = excluded.status, ended_at = excluded.ended_at,
             error_code = excluded.error_code
         WHERE status <> excluded.status OR ended_at IS NOT excluded.ended_at
             OR error_code IS NOT excluded.error_code"
    ))?;
    upsert.execute(params![
        row.run_id.as_str(),
        row.tenant.as_str(),
        row.workspace.as_ref().map(AsRef::as_ref),
        row.workflow_id.as_str(),
        row.definition.as_str(),
        row.status.as_str(),
        row.parent.as_ref().map(AsRef::as_ref),
        row.scope,
        row.created_at.0,
        row.ended_at.map(|at| at.0),
        row.error_code,
    ])?;
    Ok(())
}

pub(crate) fn live_in_scope(
    connection: &Connection,
    owner: &Partition,
    scope: &str,
) -> Result<Option<RunId>> {
    let workspace: Option<&str> = owner.workspace.as_ref().map(AsRef::as_ref);
    connection
        .prepare_cached(LIVE)?
        .query_row(params![owner.tenant.as_str(), scope, workspace], |row| {
            Ok(RunId::new(row.get_ref(0)?.as_str()?))
        })
        .optional()
}

/// Must repeat the condition of the index it names, which ends in the position.
pub(crate) fn ended_runs(
    connection: &Connection,
    after: Option<(Timestamp, RunPosition)>,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<ListedRun>> {
    let start = (Timestamp(i64::MIN), RunPosition(i64::MIN));
    let (at, position) = after.unwrap_or(start);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            ", position FROM runs INDEXED BY runs_by_end
             WHERE ended_at IS NOT NULL AND tombstone IS NULL
                 AND (ended_at, position) > (?1, ?2) AND ended_at < ?3
             ORDER BY ended_at, position LIMIT ?4"
        ))?
        .query_map(params![at.0, position.0, before.0, limit], |row| {
            Ok(ListedRun {
                position: RunPosition(row.get(COLUMNS)?),
                row: from_row(row)?,
            })
        })?
        .collect()
}

/// Whether there was a log to purge.
pub(crate) fn mark_purged(connection: &Connection, run: &RunId, tombstone: &str) -> Result<bool> {
    let changed = connection
        .prepare_cached("UPDATE runs SET tombstone = ?2 WHERE run_id = ?1 AND tombstone IS NULL")?
        .execute([run.as_str(), tombstone])?;
    Ok(changed > 0)
}

fn from_row(row: &Row<'_>) -> Result<RunRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let maybe =
        |column: usize| -> Result<Option<&str>> { Ok(row.get_ref(column)?.as_str_or_null()?) };
    Ok(RunRow {
        run_id: RunId::new(text(0)?),
        tenant: TenantId::new(text(1)?),
        workspace: maybe(2)?.map(Into::into),
        workflow_id: WorkflowId::new(text(3)?),
        definition: DefinitionHash::new(text(4)?),
        status: status(text(5)?)?,
        parent: maybe(6)?.map(Into::into),
        scope: maybe(7)?.map(Into::into),
        created_at: Timestamp(row.get(8)?),
        ended_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
        error_code: row.get(10)?,
    })
}

fn status(text: &str) -> Result<RunStatus> {
    RunStatus::parse(text)
        .ok_or_else(|| fault::malformed(5, std::io::Error::other(format!("run status {text}"))))
}

fn find(connection: &Connection, run: &RunId) -> Result<Option<StoredRun>> {
    connection
        .prepare_cached(FIND)?
        .query_row([run.as_str()], |row| {
            Ok(StoredRun {
                row: from_row(row)?,
                head: seq(row.get(COLUMNS)?),
                tombstone: row.get(COLUMNS + 1)?,
            })
        })
        .optional()
}

fn position(connection: &Connection, of: &Partition, run: &RunId) -> Result<Option<RunPosition>> {
    const QUERY: &str = position_query!("runs", "run_id");
    let workspace = of.workspace.as_ref();
    let position = cursor_position(connection, QUERY, run.as_str(), &of.tenant, workspace)?;
    Ok(position.map(RunPosition))
}

/// The index is named rather than left to the planner, which knows nothing of how tenants are
/// spread: the condition most likely to leave few rows leads, the others filter.
fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &RunFilter,
    page: &Page,
) -> Result<RunListing> {
    let status = filter.status.map(RunStatus::as_str);
    let before = page.before.map_or(i64::MAX, |before| before.0);
    let conditions: [(&str, &str, Option<&str>); 4] = [
        (
            "parent",
            "runs_by_parent",
            filter.parent.as_ref().map(AsRef::as_ref),
        ),
        (
            "workflow_id",
            "runs_by_workflow",
            filter.workflow.as_ref().map(AsRef::as_ref),
        ),
        (
            "workspace",
            "runs_by_workspace",
            filter.workspace.as_ref().map(AsRef::as_ref),
        ),
        ("status", "runs_by_status", status),
    ];
    let mut index = "runs_by_tenant";
    let mut terms = String::new();
    let mut values: Vec<&dyn ToSql> = Vec::with_capacity(7);
    let tenant = tenant.as_str();
    values.push(&tenant);
    values.push(&before);
    for (column, its_index, value) in conditions.iter().rev() {
        if let Some(value) = value {
            index = its_index;
            terms.push_str(&format!(" AND {column} = ?"));
            values.push(value);
        }
    }
    // One more than requested shows whether there is more.
    let limit = i64::try_from(page.limit)
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    values.push(&limit);
    let sql = format!(
        "SELECT {}, position FROM runs INDEXED BY {index}
         WHERE tenant = ? AND position < ?{terms} ORDER BY position DESC LIMIT ?",
        columns!()
    );
    let mut runs = connection
        .prepare_cached(&sql)?
        .query_map(values.as_slice(), |row| {
            Ok(ListedRun {
                position: RunPosition(row.get(COLUMNS)?),
                row: from_row(row)?,
            })
        })?
        .collect::<Result<Vec<_>>>()?;
    let more = runs.len() > page.limit;
    runs.truncate(page.limit);
    Ok(RunListing { runs, more })
}

const COUNT_DESCENDANTS: &str = "
    WITH RECURSIVE below (run_id) AS (
        SELECT run_id FROM runs INDEXED BY runs_by_parent WHERE tenant = ?1 AND parent = ?2
        UNION ALL
        SELECT runs.run_id FROM below
        JOIN runs INDEXED BY runs_by_parent ON runs.tenant = ?1 AND runs.parent = below.run_id
        LIMIT ?3
    )
    SELECT count(*) FROM below";

#[async_trait]
impl ReadRuns for SqliteStore {
    async fn run(&self, tenant: &TenantId, run: &RunId) -> Result<Option<StoredRun>, Fault> {
        let found = self.run_of_any_tenant(run).await?;
        Ok(found.filter(|run| run.row.tenant == *tenant))
    }

    async fn run_of_any_tenant(&self, run: &RunId) -> Result<Option<StoredRun>, Fault> {
        let run = run.clone();
        self.readers
            .read(move |connection| find(connection, &run))
            .await
    }

    async fn list_runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<RunListing, Fault> {
        let (tenant, filter, page) = (tenant.clone(), filter.clone(), page.clone());
        self.readers
            .read(move |connection| list(connection, &tenant, &filter, &page))
            .await
    }

    async fn run_position(
        &self,
        of: &Partition,
        run: &RunId,
    ) -> Result<Option<RunPosition>, Fault> {
        let (of, run) = (of.clone(), run.clone());
        self.readers
            .read(move |connection| position(connection, &of, &run))
            .await
    }

    async fn live_run_in_scope(
        &self,
        owner: &Partition,
        scope: &str,
    ) -> Result<Option<RunId>, Fault> {
        let (owner, scope) = (owner.clone(), scope.to_owned());
        self.readers
            .read(move |connection| live_in_scope(connection, &owner, &scope))
            .await
    }

    async fn count_descendants(
        &self,
        tenant: &TenantId,
        run: &RunId,
        limit: u64,
    ) -> Result<u64, Fault> {
        let (tenant, run) = (tenant.clone(), run.clone());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.readers
            .read(move |connection| {
                let mut count = connection.prepare_cached(COUNT_DESCENDANTS)?;
                let bound = params![tenant.as_str(), run.as_str(), limit];
                count.query_row(bound, |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
            })
            .await
    }

    async fn count_by_status(&self) -> Result<Vec<(String, u64)>, Fault> {
        self.readers
            .read(|connection| {
                connection
                    .prepare_cached("SELECT status, count(*) FROM runs GROUP BY status")?
                    .query_map((), |row| {
                        Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
                    })?
                    .collect()
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::LIVE;
    use tandem_record::RunStatus;

    #[test]
    fn live_means_not_terminal() {
        for status in RunStatus::ALL {
            let listed = LIVE.contains(&format!("'{}'", status.as_str()));
            assert_eq!(listed, status.is_terminal(), "{status:?}");
        }
    }
}
