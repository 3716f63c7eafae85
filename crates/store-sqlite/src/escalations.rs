//! Escalations. A row's `position` is the order of creation. `escalation_lists` has a row for each
//! list that shows an escalation, of any status and of its own. A page is read from the list of the
//! most selective condition; the others filter its rows.

use crate::SqliteStore;
use crate::cursor_position::{cursor_position, position_query};
use crate::fault;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::conversation::EscalationStatus;
use tandem_record::{AgentId, EscalationId, SessionId, TenantId, Timestamp};
use tandem_store::{
    EscalationAssignee, EscalationFilter, EscalationRow, Fault, Listing, ListingPage,
    ReadEscalations, listing,
};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "e.escalation_id, e.session_id, e.tenant, e.workspace, e.agent, e.user_external_id, \
         e.status, e.priority, e.queue, e.assignee, e.created_at, e.deadline, e.body"
    };
}

/// The rows of `escalation_lists` that follow from escalations. The bits of `choice` say which
/// fields a selection names. The names of lists are those of [`list_name`].
macro_rules! lists {
    ($of:literal) => {
        concat!(
            "SELECT e.tenant, iif(choice.value & 1, e.workspace, ''), list.value,
                 iif(choice.value & 2, e.status, ''), e.position
             FROM escalations e, json_each('[0,1,2,3]') choice,
                 json_each(json_array('', 'session:' || e.session_id, 'agent:' || e.agent,
                     'priority:' || e.priority, 'queue:' || e.queue,
                     coalesce('assignee:' || e.assignee, 'nobody'))) list
             WHERE list.value IS NOT NULL
                 AND (choice.value & 1 = 0 OR e.workspace IS NOT NULL)",
            $of
        )
    };
}

fn list_name(filter: &EscalationFilter) -> String {
    if let Some(session) = &filter.session {
        return format!("session:{session}");
    }
    match &filter.assignee {
        Some(EscalationAssignee::Actor(actor)) => return format!("assignee:{actor}"),
        Some(EscalationAssignee::Nobody) => return "nobody".to_owned(),
        None => {}
    }
    if let Some(queue) = &filter.queue {
        return format!("queue:{queue}");
    }
    if let Some(agent) = &filter.agent {
        return format!("agent:{agent}");
    }
    filter
        .priority
        .map_or_else(String::new, |priority| format!("priority:{priority}"))
}

const REMOVE_FROM_LISTS: &str = concat!(
    "DELETE FROM escalation_lists WHERE (tenant, workspace, list, status, position) IN (",
    lists!(" AND e.escalation_id = ?1"),
    ")"
);

const REMOVE_SESSION_FROM_LISTS: &str = concat!(
    "DELETE FROM escalation_lists WHERE (tenant, workspace, list, status, position) IN (",
    lists!(" AND e.session_id = ?1"),
    ")"
);

const ADD_TO_LISTS: &str = concat!(
    "INSERT INTO escalation_lists ",
    lists!(" AND e.escalation_id = ?1")
);

pub(crate) fn put(connection: &Connection, row: &EscalationRow) -> Result<()> {
    let id = row.escalation_id.as_str();
    connection
        .prepare_cached(REMOVE_FROM_LISTS)?
        .execute([id])?;
    connection
        .prepare_cached(
            "INSERT INTO escalations (escalation_id, session_id, tenant, workspace, agent,
                 user_external_id, status, priority, queue, assignee, created_at, deadline, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (escalation_id) DO UPDATE SET status = excluded.status,
                 priority = excluded.priority, queue = excluded.queue,
                 assignee = excluded.assignee, deadline = excluded.deadline, body = excluded.body",
        )?
        .execute(params![
            id,
            row.session_id.as_str(),
            row.tenant.as_str(),
            row.workspace.as_ref().map(AsRef::as_ref),
            row.agent.as_str(),
            row.user_external_id,
            row.status.as_str(),
            row.priority,
            row.queue,
            row.assignee,
            row.created_at.0,
            row.deadline.map(|at| at.0),
            row.body,
        ])?;
    connection.prepare_cached(ADD_TO_LISTS)?.execute([id])?;
    Ok(())
}

pub(crate) fn remove_session(connection: &Connection, session: &SessionId) -> Result<()> {
    let id = [session.as_str()];
    connection
        .prepare_cached(REMOVE_SESSION_FROM_LISTS)?
        .execute(id)?;
    connection
        .prepare_cached("DELETE FROM escalations WHERE session_id = ?1")?
        .execute(id)
        .map(drop)
}

/// After an import.
pub(crate) fn rebuild_lists(connection: &Connection) -> Result<()> {
    connection.execute_batch(concat!(
        "DELETE FROM escalation_lists; INSERT INTO escalation_lists ",
        lists!("")
    ))
}

fn from_row(row: &Row<'_>) -> Result<EscalationRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let status = text(6)?;
    let unknown = || fault::malformed(6, format!("escalation status {status}"));
    Ok(EscalationRow {
        escalation_id: EscalationId::new(text(0)?),
        session_id: SessionId::new(text(1)?),
        tenant: TenantId::new(text(2)?),
        workspace: row.get_ref(3)?.as_str_or_null()?.map(Into::into),
        agent: AgentId::new(text(4)?),
        user_external_id: row.get(5)?,
        status: EscalationStatus::parse(status).ok_or_else(unknown)?,
        priority: row.get(7)?,
        queue: row.get(8)?,
        assignee: row.get(9)?,
        created_at: Timestamp(row.get(10)?),
        deadline: row.get::<_, Option<i64>>(11)?.map(Timestamp),
        body: row.get(12)?,
    })
}

fn find(connection: &Connection, escalation: &EscalationId) -> Result<Option<EscalationRow>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            " FROM escalations e WHERE e.escalation_id = ?1"
        ))?
        .query_row([escalation.as_str()], from_row)
        .optional()
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM escalation_lists l CROSS JOIN escalations e ON e.position = l.position
     WHERE l.tenant = ?1 AND l.workspace = ?2 AND l.list = ?3 AND l.status = ?4
         AND l.position < ?5
     ORDER BY l.position DESC"
);

fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &EscalationFilter,
    page: &ListingPage<EscalationId>,
) -> Result<Option<Listing<EscalationId, EscalationRow>>> {
    let before = match &page.after {
        None => i64::MAX,
        Some(escalation) => {
            const QUERY: &str = position_query!("escalations", "escalation_id");
            let workspace = filter.workspace.as_ref();
            match cursor_position(connection, QUERY, escalation.as_str(), tenant, workspace)? {
                None => return Ok(None),
                Some(position) => position,
            }
        }
    };
    let mut select = connection.prepare_cached(LIST)?;
    let rows = select.query_map(
        params![
            tenant.as_str(),
            filter.workspace.as_ref().map_or("", AsRef::as_ref),
            list_name(filter),
            filter.status.map_or("", EscalationStatus::as_str),
            before,
        ],
        from_row,
    )?;
    let page = listing(
        rows,
        page.limit,
        |row| row.escalation_id.clone(),
        |row| row.body.len(),
        |row| filter.matches(row),
    )?;
    Ok(Some(page))
}

#[async_trait]
impl ReadEscalations for SqliteStore {
    async fn escalation(
        &self,
        tenant: &TenantId,
        escalation: &EscalationId,
    ) -> Result<Option<EscalationRow>, Fault> {
        let escalation = escalation.clone();
        let found = self
            .readers
            .read(move |connection| find(connection, &escalation))
            .await?;
        Ok(found.filter(|row| row.tenant == *tenant))
    }

    async fn list_escalations(
        &self,
        tenant: &TenantId,
        filter: &EscalationFilter,
        page: &ListingPage<EscalationId>,
    ) -> Result<Option<Listing<EscalationId, EscalationRow>>, Fault> {
        let (tenant, filter, page) = (tenant.clone(), filter.clone(), page.clone());
        self.readers
            .read(move |connection| list(connection, &tenant, &filter, &page))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_plan::assert_searches;

    #[test]
    fn every_page_is_one_range_of_one_index() {
        assert_searches(LIST, "status=? AND position<?");
    }

    #[test]
    fn lists_of_an_escalation_are_changed_without_a_scan() {
        assert_searches(REMOVE_FROM_LISTS, "status=? AND position=?");
        assert_searches(ADD_TO_LISTS, "escalation_id=?");
        assert_searches(REMOVE_SESSION_FROM_LISTS, "session_id=?");
    }
}
