//! Bridges. A row's `position` is the order of their start. `proxy_lists` has a row for each list that shows a bridge,
//! of any status and of its own. `proxy_messages` says which bridge sent a message to a desk.

use crate::SqliteStore;
use crate::cursor_position::{cursor_position, position_query};
use crate::fault;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::conversation::ProxyStatus;
use tandem_record::{AgentId, ProxyId, SessionId, TenantId, Timestamp};
use tandem_store::{
    Desk, DeskSelection, Fault, Listing, ListingPage, ProxyFilter, ProxyRow, ReadProxies, listing,
};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "p.proxy_id, p.session_id, p.tenant, p.workspace, p.agent, p.user_external_id, \
         p.transport, p.address, p.status, p.started_at, p.body"
    };
}

/// The rows of `proxy_lists` that follow from bridges. The bits of `choice` say which fields a
/// selection names. The names of lists are those of [`list_name`].
macro_rules! lists {
    ($of:literal) => {
        concat!(
            "SELECT p.tenant, iif(choice.value & 1, p.workspace, ''), list.value,
                 iif(choice.value & 2, p.status, ''), p.position
             FROM proxies p, json_each('[0,1,2,3]') choice,
                 json_each(json_array('', 'session:' || p.session_id, 'agent:' || p.agent)) list
             WHERE (choice.value & 1 = 0 OR p.workspace IS NOT NULL)",
            $of
        )
    };
}

fn list_name(filter: &ProxyFilter) -> String {
    match (&filter.session, &filter.agent) {
        (Some(session), _) => format!("session:{session}"),
        (None, Some(agent)) => format!("agent:{agent}"),
        (None, None) => String::new(),
    }
}

const REMOVE_FROM_LISTS: &str = concat!(
    "DELETE FROM proxy_lists WHERE (tenant, workspace, list, status, position) IN (",
    lists!(" AND p.proxy_id = ?1"),
    ")"
);

const REMOVE_SESSION_FROM_LISTS: &str = concat!(
    "DELETE FROM proxy_lists WHERE (tenant, workspace, list, status, position) IN (",
    lists!(" AND p.session_id = ?1"),
    ")"
);

const REMOVE_MESSAGES: &str = "DELETE FROM proxy_messages WHERE proxy_id IN (
    SELECT proxy_id FROM proxies WHERE session_id = ?1)";

const ADD_TO_LISTS: &str = concat!("INSERT INTO proxy_lists ", lists!(" AND p.proxy_id = ?1"));

pub(crate) fn put(connection: &Connection, row: &ProxyRow) -> Result<()> {
    let id = row.proxy_id.as_str();
    connection
        .prepare_cached(REMOVE_FROM_LISTS)?
        .execute([id])?;
    connection
        .prepare_cached(
            "INSERT INTO proxies (proxy_id, session_id, tenant, workspace, agent,
                 user_external_id, transport, address, short_id, status, started_at, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (proxy_id) DO UPDATE SET status = excluded.status, body = excluded.body",
        )?
        .execute(params![
            id,
            row.session_id.as_str(),
            row.tenant.as_str(),
            row.workspace.as_ref().map(AsRef::as_ref),
            row.agent.as_str(),
            row.user_external_id,
            row.transport,
            row.address,
            row.proxy_id.short(),
            row.status.as_str(),
            row.started_at.0,
            row.body,
        ])?;
    connection.prepare_cached(ADD_TO_LISTS)?.execute([id])?;
    Ok(())
}

/// A message that a bridge sent to its desk.
pub(crate) fn add_message(connection: &Connection, proxy: &ProxyId, message: &str) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO proxy_messages
             SELECT tenant, agent, transport, address, ?2, proxy_id FROM proxies WHERE proxy_id = ?1",
        )?
        .execute([proxy.as_str(), message])?;
    Ok(())
}

pub(crate) fn remove_session(connection: &Connection, session: &SessionId) -> Result<()> {
    let id = [session.as_str()];
    connection.prepare_cached(REMOVE_MESSAGES)?.execute(id)?;
    connection
        .prepare_cached(REMOVE_SESSION_FROM_LISTS)?
        .execute(id)?;
    connection
        .prepare_cached("DELETE FROM proxies WHERE session_id = ?1")?
        .execute(id)
        .map(drop)
}

/// After an import.
pub(crate) fn rebuild_lists(connection: &Connection) -> Result<()> {
    connection.execute_batch(concat!(
        "DELETE FROM proxy_lists; INSERT INTO proxy_lists ",
        lists!("")
    ))
}

fn from_row(row: &Row<'_>) -> Result<ProxyRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let status = text(8)?;
    let unknown = || fault::malformed(8, format!("bridge status {status}"));
    Ok(ProxyRow {
        proxy_id: ProxyId::new(text(0)?),
        session_id: SessionId::new(text(1)?),
        tenant: TenantId::new(text(2)?),
        workspace: row.get_ref(3)?.as_str_or_null()?.map(Into::into),
        agent: AgentId::new(text(4)?),
        user_external_id: row.get(5)?,
        transport: row.get(6)?,
        address: row.get(7)?,
        status: ProxyStatus::parse(status).ok_or_else(unknown)?,
        started_at: Timestamp(row.get(9)?),
        body: row.get(10)?,
    })
}

fn find(connection: &Connection, proxy: &ProxyId) -> Result<Option<ProxyRow>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            " FROM proxies p WHERE p.proxy_id = ?1"
        ))?
        .query_row([proxy.as_str()], from_row)
        .optional()
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM proxy_lists l CROSS JOIN proxies p ON p.position = l.position
     WHERE l.tenant = ?1 AND l.workspace = ?2 AND l.list = ?3 AND l.status = ?4
         AND l.position < ?5
     ORDER BY l.position DESC"
);

fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &ProxyFilter,
    page: &ListingPage<ProxyId>,
) -> Result<Option<Listing<ProxyId, ProxyRow>>> {
    let before = match &page.after {
        None => i64::MAX,
        Some(proxy) => {
            const QUERY: &str = position_query!("proxies", "proxy_id");
            let workspace = filter.workspace.as_ref();
            match cursor_position(connection, QUERY, proxy.as_str(), tenant, workspace)? {
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
            filter.status.map_or("", ProxyStatus::as_str),
            before,
        ],
        from_row,
    )?;
    let page = listing(
        rows,
        page.limit,
        |row| row.proxy_id.clone(),
        |row| row.body.len(),
        |row| filter.matches(row),
    )?;
    Ok(Some(page))
}

macro_rules! of_desk {
    ($from:literal, $which:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM ",
            $from,
            " WHERE p.tenant = ?1 AND p.agent = ?2 AND p.transport = ?3 AND p.address = ?4
                 AND (?5 IS NULL OR p.workspace = ?5) AND ",
            $which,
            " ORDER BY p.position DESC LIMIT ?6"
        )
    };
}

const ACTIVE_OF_DESK: &str = of_desk!(
    "proxies p INDEXED BY proxies_by_desk",
    "p.status = 'active' AND ?7 IS NULL"
);

const SHORT_OF_DESK: &str = of_desk!(
    "proxies p INDEXED BY proxies_by_short_id",
    "p.short_id = ?7"
);

const MESSAGE_OF_DESK: &str = of_desk!(
    "proxy_messages m CROSS JOIN proxies p ON p.proxy_id = m.proxy_id",
    "m.tenant = ?1 AND m.agent = ?2 AND m.transport = ?3 AND m.address = ?4 AND m.message_id = ?7"
);

fn of_desk(
    connection: &Connection,
    desk: &Desk,
    selection: &DeskSelection,
    limit: usize,
) -> Result<Vec<ProxyRow>> {
    let (select, of) = match selection {
        DeskSelection::Active => (ACTIVE_OF_DESK, None),
        DeskSelection::Short(short) => (SHORT_OF_DESK, Some(short.as_str())),
        DeskSelection::Message(message) => (MESSAGE_OF_DESK, Some(message.as_str())),
    };
    let workspace: Option<&str> = desk.workspace.as_ref().map(AsRef::as_ref);
    connection
        .prepare_cached(select)?
        .query_map(
            params![
                desk.tenant.as_str(),
                desk.agent.as_str(),
                desk.transport,
                desk.address,
                workspace,
                i64::try_from(limit).unwrap_or(i64::MAX),
                of,
            ],
            from_row,
        )?
        .collect()
}

#[async_trait]
impl ReadProxies for SqliteStore {
    async fn proxy(&self, tenant: &TenantId, proxy: &ProxyId) -> Result<Option<ProxyRow>, Fault> {
        let proxy = proxy.clone();
        let found = self
            .readers
            .read(move |connection| find(connection, &proxy))
            .await?;
        Ok(found.filter(|row| row.tenant == *tenant))
    }

    async fn list_proxies(
        &self,
        tenant: &TenantId,
        filter: &ProxyFilter,
        page: &ListingPage<ProxyId>,
    ) -> Result<Option<Listing<ProxyId, ProxyRow>>, Fault> {
        let (tenant, filter, page) = (tenant.clone(), filter.clone(), page.clone());
        self.readers
            .read(move |connection| list(connection, &tenant, &filter, &page))
            .await
    }

    async fn proxies_of_desk(
        &self,
        desk: &Desk,
        selection: &DeskSelection,
        limit: usize,
    ) -> Result<Vec<ProxyRow>, Fault> {
        let (desk, selection) = (desk.clone(), selection.clone());
        self.readers
            .read(move |connection| of_desk(connection, &desk, &selection, limit))
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
        assert_searches(ACTIVE_OF_DESK, "address=? AND status=?");
        assert_searches(SHORT_OF_DESK, "address=? AND short_id=?");
        assert_searches(MESSAGE_OF_DESK, "address=? AND message_id=?");
    }

    #[test]
    fn lists_of_a_bridge_are_changed_without_a_scan() {
        assert_searches(REMOVE_FROM_LISTS, "status=? AND position=?");
        assert_searches(ADD_TO_LISTS, "proxy_id=?");
        assert_searches(REMOVE_SESSION_FROM_LISTS, "session_id=?");
        assert_searches(REMOVE_MESSAGES, "proxy_id=?");
    }
}
