//! Sessions. A row's `position` is the order of creation. `session_lists` has a row for each
//! selection that shows a session, so that every page is one range of one index whatever the
//! filter. It changes only when a session starts or ends.

use crate::SqliteStore;
use crate::cursor_position::{cursor_position, position_query};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{AgentId, ChatUserId, SessionId, TenantId, Timestamp};
use tandem_store::{
    EndedSession, Fault, Listing, ListingPage, ReadSessions, SessionFilter, SessionRow, listing,
};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "s.session_id, s.tenant, s.workspace, s.agent, s.user_id, s.user_external_id, \
         s.started_at, s.last_active_at, s.ended_at, s.body"
    };
}

/// The rows of `session_lists` that follow from sessions. The bits of `choice` say which fields a
/// selection names.
macro_rules! lists {
    ($of:literal) => {
        concat!(
            "SELECT s.tenant, iif(choice.value & 1, s.workspace, ''),
                 iif(choice.value & 2, s.agent, ''),
                 iif(choice.value & 4, s.user_external_id, ''),
                 iif(choice.value & 8, iif(s.ended_at IS NULL, 1, 2), 0), s.position
             FROM sessions s, json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]') choice
             WHERE (choice.value & 1 = 0 OR s.workspace IS NOT NULL)",
            $of
        )
    };
}

const REMOVE_FROM_LISTS: &str = concat!(
    "DELETE FROM session_lists
     WHERE (tenant, workspace, agent, user_external_id, state, position) IN (",
    lists!(" AND s.session_id = ?1"),
    ")"
);

/// An empty user id is the same as any.
const ADD_TO_LISTS: &str = concat!(
    "INSERT OR IGNORE INTO session_lists ",
    lists!(" AND s.session_id = ?1")
);

pub(crate) fn put(connection: &Connection, row: &SessionRow) -> Result<()> {
    let id = row.session_id.as_str();
    let stored: Option<bool> = connection
        .prepare_cached("SELECT ended_at IS NULL FROM sessions WHERE session_id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let changes_lists = stored != Some(row.ended_at.is_none());
    if changes_lists && stored.is_some() {
        connection
            .prepare_cached(REMOVE_FROM_LISTS)?
            .execute([id])?;
    }
    if stored.is_some() {
        connection
            .prepare_cached(
                "UPDATE sessions SET last_active_at = ?2, ended_at = ?3, body = ?4
                 WHERE session_id = ?1",
            )?
            .execute(params![
                id,
                row.last_active_at.0,
                row.ended_at.map(|at| at.0),
                row.body,
            ])?;
    } else {
        connection
            .prepare_cached(
                "INSERT INTO sessions (session_id, tenant, workspace, agent, user_id,
                     user_external_id, started_at, last_active_at, ended_at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                id,
                row.tenant.as_str(),
                row.workspace.as_ref().map(AsRef::as_ref),
                row.agent.as_str(),
                row.user_id.as_str(),
                row.user_external_id,
                row.started_at.0,
                row.last_active_at.0,
                row.ended_at.map(|at| at.0),
                row.body,
            ])?;
    }
    if changes_lists {
        connection.prepare_cached(ADD_TO_LISTS)?.execute([id])?;
    }
    Ok(())
}

/// Must repeat the condition of the index it names.
const ENDED: &str = "SELECT session_id, tenant, agent, ended_at
    FROM sessions INDEXED BY sessions_by_end
    WHERE ended_at IS NOT NULL AND (ended_at, session_id) > (?1, ?2) AND ended_at < ?3
    ORDER BY ended_at, session_id LIMIT ?4";

pub(crate) fn ended(
    connection: &Connection,
    after: Option<&(Timestamp, SessionId)>,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<EndedSession>> {
    let (at, session) = after.map_or((i64::MIN, ""), |(at, id)| (at.0, id.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(ENDED)?
        .query_map(params![at, session, before.0, limit], |row| {
            Ok(EndedSession {
                session_id: SessionId::new(row.get_ref(0)?.as_str()?),
                tenant: TenantId::new(row.get_ref(1)?.as_str()?),
                agent: AgentId::new(row.get_ref(2)?.as_str()?),
                ended_at: Timestamp(row.get(3)?),
            })
        })?
        .collect()
}

/// Removes the row of a session unless it is active. Whether there was one.
pub(crate) fn remove_ended(connection: &Connection, session: &SessionId) -> Result<bool> {
    let id = [session.as_str()];
    let has_ended = connection
        .prepare_cached("SELECT 1 FROM sessions WHERE session_id = ?1 AND ended_at IS NOT NULL")?
        .exists(id)?;
    if has_ended {
        connection.prepare_cached(REMOVE_FROM_LISTS)?.execute(id)?;
        connection
            .prepare_cached("DELETE FROM sessions WHERE session_id = ?1")?
            .execute(id)?;
    }
    Ok(has_ended)
}

/// After an import.
pub(crate) fn rebuild_lists(connection: &Connection) -> Result<()> {
    connection.execute_batch(concat!(
        "DELETE FROM session_lists; INSERT OR IGNORE INTO session_lists ",
        lists!("")
    ))
}

fn from_row(row: &Row<'_>) -> Result<SessionRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    Ok(SessionRow {
        session_id: SessionId::new(text(0)?),
        tenant: TenantId::new(text(1)?),
        workspace: row.get_ref(2)?.as_str_or_null()?.map(Into::into),
        agent: AgentId::new(text(3)?),
        user_id: ChatUserId::new(text(4)?),
        user_external_id: row.get(5)?,
        started_at: Timestamp(row.get(6)?),
        last_active_at: Timestamp(row.get(7)?),
        ended_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
        body: row.get(9)?,
    })
}

fn find(connection: &Connection, session: &SessionId) -> Result<Option<SessionRow>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            " FROM sessions s WHERE s.session_id = ?1"
        ))?
        .query_row([session.as_str()], from_row)
        .optional()
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM session_lists l CROSS JOIN sessions s ON s.position = l.position
     WHERE l.tenant = ?1 AND l.workspace = ?2 AND l.agent = ?3 AND l.user_external_id = ?4
         AND l.state = ?5 AND l.position < ?6
     ORDER BY l.position DESC"
);

fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &SessionFilter,
    page: &ListingPage<SessionId>,
) -> Result<Option<Listing<SessionId, SessionRow>>> {
    let before = match &page.after {
        None => i64::MAX,
        Some(session) => {
            const QUERY: &str = position_query!("sessions", "session_id");
            let workspace = filter.workspace.as_ref();
            match cursor_position(connection, QUERY, session.as_str(), tenant, workspace)? {
                None => return Ok(None),
                Some(position) => position,
            }
        }
    };
    let state = match filter.active {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    };
    let mut select = connection.prepare_cached(LIST)?;
    let rows = select.query_map(
        params![
            tenant.as_str(),
            filter.workspace.as_ref().map_or("", AsRef::as_ref),
            filter.agent.as_ref().map_or("", AsRef::as_ref),
            filter.user_external_id.as_deref().unwrap_or_default(),
            state,
            before,
        ],
        from_row,
    )?;
    let page = listing(
        rows,
        page.limit,
        |row| row.session_id.clone(),
        |row| row.body.len(),
        |row| filter.matches(row),
    )?;
    Ok(Some(page))
}

#[async_trait]
impl ReadSessions for SqliteStore {
    async fn session_of_any_tenant(
        &self,
        session: &SessionId,
    ) -> Result<Option<SessionRow>, Fault> {
        let session = session.clone();
        self.readers
            .read(move |connection| find(connection, &session))
            .await
    }

    async fn list_sessions(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        page: &ListingPage<SessionId>,
    ) -> Result<Option<Listing<SessionId, SessionRow>>, Fault> {
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
        assert_searches(LIST, "state=? AND position<?");
        assert_searches(ENDED, "ended_at");
    }

    #[test]
    fn lists_of_a_session_are_changed_without_a_scan() {
        assert_searches(REMOVE_FROM_LISTS, "state=? AND position=?");
        assert_searches(ADD_TO_LISTS, "session_id=?");
    }
}
