//! The inbox. A row's `position` is the order of asking; open rows have an index of their own, so
//! that a page costs the same whether a hundred questions wait or a hundred thousand.

use crate::SqliteStore;
use async_trait::async_trait;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{InterruptId, NodeId, RunId, TenantId, Timestamp};
use tandem_store::{
    Fault, InterruptFilter, InterruptListing, InterruptRow, Page, ReadInterrupts, RunPosition,
};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "interrupt, run_id, node, tenant, workspace, kind, created_at, deadline, closed, body"
    };
}
const COLUMNS: usize = 10;

pub(crate) fn project(connection: &Connection, row: &InterruptRow) -> Result<()> {
    let mut upsert = connection.prepare_cached(concat!(
        "INSERT INTO interrupts (",
        columns!(),
        ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (interrupt) DO UPDATE
             SET deadline = excluded.deadline, closed = excluded.closed, body = excluded.body"
    ))?;
    upsert.execute(params![
        row.interrupt.as_str(),
        row.run_id.as_str(),
        row.node.as_str(),
        row.tenant.as_str(),
        row.workspace.as_ref().map(AsRef::as_ref),
        row.kind,
        row.created_at.0,
        row.deadline.map(|at| at.0),
        row.closed,
        row.body,
    ])?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> Result<InterruptRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let workspace = row.get_ref(4)?.as_str_or_null()?;
    Ok(InterruptRow {
        interrupt: InterruptId::new(text(0)?),
        run_id: RunId::new(text(1)?),
        node: NodeId::new(text(2)?),
        tenant: TenantId::new(text(3)?),
        workspace: workspace.map(Into::into),
        kind: row.get(5)?,
        created_at: Timestamp(row.get(6)?),
        deadline: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        closed: row.get(8)?,
        body: row.get(9)?,
    })
}

fn find(connection: &Connection, interrupt: &InterruptId) -> Result<Option<InterruptRow>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            " FROM interrupts WHERE interrupt = ?1"
        ))?
        .query_row([interrupt.as_str()], from_row)
        .optional()
}

/// The index is named: by run when a run is asked for, else the open ones, else all of a tenant.
fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &InterruptFilter,
    page: &Page,
) -> Result<InterruptListing> {
    let before = page.before.map_or(i64::MAX, |before| before.0);
    let tenant = tenant.as_str();
    let mut terms = String::new();
    let mut values: Vec<&dyn ToSql> = vec![&tenant, &before];
    let run = filter.run.as_ref().map(RunId::as_str);
    let workspace: Option<&str> = filter.workspace.as_ref().map(AsRef::as_ref);
    let conditions: [(&str, &Option<&str>); 3] = [
        ("run_id", &run),
        ("kind", &filter.kind.as_deref()),
        ("workspace", &workspace),
    ];
    for (column, value) in conditions {
        if let Some(value) = value {
            terms.push_str(&format!(" AND {column} = ?"));
            values.push(value);
        }
    }
    match filter.open {
        Some(true) => terms.push_str(" AND closed IS NULL"),
        Some(false) => terms.push_str(" AND closed IS NOT NULL"),
        None => {}
    }
    let index = match (run, filter.open) {
        (Some(_), _) => "interrupts_by_run",
        (None, Some(true)) => "interrupts_open",
        (None, _) => "interrupts_by_tenant",
    };
    let limit = i64::try_from(page.limit)
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    values.push(&limit);
    let sql = format!(
        "SELECT {}, position FROM interrupts INDEXED BY {index}
         WHERE tenant = ? AND position < ?{terms} ORDER BY position DESC LIMIT ?",
        columns!()
    );
    let mut rows = connection
        .prepare_cached(&sql)?
        .query_map(values.as_slice(), |row| {
            Ok((RunPosition(row.get(COLUMNS)?), from_row(row)?))
        })?
        .collect::<Result<Vec<_>>>()?;
    let more = rows.len() > page.limit;
    rows.truncate(page.limit);
    Ok(InterruptListing { rows, more })
}

#[async_trait]
impl ReadInterrupts for SqliteStore {
    async fn interrupt(
        &self,
        tenant: &TenantId,
        interrupt: &InterruptId,
    ) -> Result<Option<InterruptRow>, Fault> {
        let interrupt = interrupt.clone();
        let found = self
            .readers
            .read(move |connection| find(connection, &interrupt))
            .await?;
        Ok(found.filter(|row| row.tenant == *tenant))
    }

    async fn list_interrupts(
        &self,
        tenant: &TenantId,
        filter: &InterruptFilter,
        page: &Page,
    ) -> Result<InterruptListing, Fault> {
        let (tenant, filter, page) = (tenant.clone(), filter.clone(), page.clone());
        self.readers
            .read(move |connection| list(connection, &tenant, &filter, &page))
            .await
    }
}
