//! Questions, open and closed. A row's `position` is the order of creation. Open ones are also in
//! `inbox`, so that the cost of a page does not depend on the number of open questions.

use crate::SqliteStore;
use crate::cursor_position::{cursor_position, position_query};
use crate::inbox;
use async_trait::async_trait;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{InterruptId, Partition, StepId, StreamId, TenantId, Timestamp, WorkspaceId};
use tandem_store::{
    Fault, InboxChoices, InboxPage, InboxQuery, InterruptFilter, InterruptListing, InterruptRow,
    Page, ReadInterrupts, RunPosition, question_page,
};

/// In the order [`from_row`] reads them; with a prefix, of a table of that name.
macro_rules! columns {
    () => {
        columns!("")
    };
    ($of:literal) => {
        concat!(
            $of,
            "interrupt, ",
            $of,
            "stream, ",
            $of,
            "step, ",
            $of,
            "tenant, ",
            $of,
            "workspace, ",
            $of,
            "kind, ",
            $of,
            "created_at, ",
            $of,
            "deadline, ",
            $of,
            "closed, ",
            $of,
            "body, ",
            $of,
            "priority, ",
            $of,
            "groups"
        )
    };
}
pub(crate) use columns;

pub(crate) const COLUMNS: usize = 12;

pub(crate) fn project(connection: &Connection, row: &InterruptRow) -> Result<()> {
    let mut upsert = connection.prepare_cached(concat!(
        "INSERT INTO interrupts (",
        columns!(),
        ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (interrupt) DO UPDATE SET closed = excluded.closed, body = excluded.body,
             deadline = excluded.deadline, priority = excluded.priority, groups = excluded.groups
         RETURNING position, tenant, workspace, kind"
    ))?;
    let groups = serde_json::to_string(&row.groups).expect("names are text");
    let values = params![
        row.interrupt.as_str(),
        row.stream.as_str(),
        row.step.as_str(),
        row.tenant.as_str(),
        row.workspace.as_ref().map(AsRef::as_ref),
        row.kind,
        row.created_at.0,
        row.deadline.map(|at| at.0),
        row.closed,
        row.body,
        row.priority,
        groups,
    ];
    // The identity of a question stays as in its first row.
    let identity = upsert.query_row(values, |stored| {
        Ok(inbox::InterruptIdentity {
            position: stored.get(0)?,
            tenant: stored.get(1)?,
            workspace: stored.get(2)?,
            kind: stored.get(3)?,
        })
    })?;
    inbox::project(connection, &identity, row)
}

pub(crate) fn remove_stream(connection: &Connection, stream: &StreamId) -> Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM inbox
             WHERE position IN (SELECT position FROM interrupts WHERE stream = ?1)",
        )?
        .execute([stream.as_str()])?;
    connection
        .prepare_cached("DELETE FROM interrupts WHERE stream = ?1")?
        .execute([stream.as_str()])
        .map(drop)
}

pub(crate) fn from_row(row: &Row<'_>) -> Result<InterruptRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let workspace = row.get_ref(4)?.as_str_or_null()?;
    Ok(InterruptRow {
        interrupt: InterruptId::new(text(0)?),
        stream: StreamId::new(text(1)?),
        step: StepId::new(text(2)?),
        tenant: TenantId::new(text(3)?),
        workspace: workspace.map(Into::into),
        kind: row.get(5)?,
        created_at: Timestamp(row.get(6)?),
        deadline: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        closed: row.get(8)?,
        body: row.get(9)?,
        priority: row.get(10)?,
        groups: serde_json::from_str(text(11)?).unwrap_or_default(),
    })
}

pub(crate) fn find(
    connection: &Connection,
    interrupt: &InterruptId,
) -> Result<Option<InterruptRow>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            " FROM interrupts WHERE interrupt = ?1"
        ))?
        .query_row([interrupt.as_str()], from_row)
        .optional()
}

fn position(
    connection: &Connection,
    of: &Partition,
    interrupt: &InterruptId,
) -> Result<Option<RunPosition>> {
    const QUERY: &str = position_query!("interrupts", "interrupt");
    let workspace = of.workspace.as_ref();
    let position = cursor_position(connection, QUERY, interrupt.as_str(), &of.tenant, workspace)?;
    Ok(position.map(RunPosition))
}

/// The index is named: by stream when one is asked for, else all of a tenant. Open questions of any
/// stream are the inbox.
fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &InterruptFilter,
    page: &Page,
) -> Result<InterruptListing> {
    if filter.stream.is_none() && filter.open == Some(true) {
        return inbox::newest(connection, tenant, filter, page);
    }
    let before = page.before.map_or(i64::MAX, |before| before.0);
    let tenant = tenant.as_str();
    let mut terms = String::new();
    let mut values: Vec<&dyn ToSql> = vec![&tenant, &before];
    let stream = filter.stream.as_ref().map(StreamId::as_str);
    let workspace: Option<&str> = filter.workspace.as_ref().map(AsRef::as_ref);
    let conditions: [(&str, &Option<&str>); 3] = [
        ("stream", &stream),
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
    let index = match stream {
        Some(_) => "interrupts_by_stream",
        None => "interrupts_by_tenant",
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
    let mut select = connection.prepare_cached(&sql)?;
    let rows = select.query_map(values.as_slice(), |row| {
        Ok((RunPosition(row.get(COLUMNS)?), from_row(row)?))
    })?;
    let (rows, more) = question_page(rows, page.limit)?;
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

    async fn interrupt_position(
        &self,
        of: &Partition,
        interrupt: &InterruptId,
    ) -> Result<Option<RunPosition>, Fault> {
        let (of, interrupt) = (of.clone(), interrupt.clone());
        self.readers
            .read(move |connection| position(connection, &of, &interrupt))
            .await
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

    async fn inbox(&self, tenant: &TenantId, query: &InboxQuery) -> Result<InboxPage, Fault> {
        let (tenant, query) = (tenant.clone(), query.clone());
        self.readers
            .read(move |connection| inbox::page(connection, &tenant, &query))
            .await
    }

    async fn inbox_choices(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
    ) -> Result<InboxChoices, Fault> {
        let tenant = tenant.clone();
        let workspace = workspace.map_or_else(String::new, ToString::to_string);
        self.readers
            .read(move |connection| inbox::choices(connection, &tenant, &workspace))
            .await
    }
}
