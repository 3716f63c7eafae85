//! Users of agents. `chat_user_lists` has a row for each tag of a user, so that every segment is
//! one range. A touch of a user changes no index.

use crate::SqliteStore;
use crate::fault;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::{AgentId, ChatUserId, TenantId, Timestamp};
use tandem_store::{
    ChatUserFilter, ChatUserRow, Fault, Listing, ListingPage, ReadChatUsers, listing,
};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "u.user_id, u.tenant, u.agent, u.external_user_id, u.created_at, u.last_active_at, u.tags, \
         u.body"
    };
}

/// The rows of `chat_user_lists` that follow from users.
macro_rules! lists {
    ($of:literal) => {
        concat!(
            "SELECT u.tenant, u.agent, tag.value, u.user_id
             FROM chat_users u, json_each(json_insert(u.tags, '$[#]', '')) tag",
            $of
        )
    };
}

const REMOVE_FROM_LISTS: &str = concat!(
    "DELETE FROM chat_user_lists WHERE (tenant, agent, tag, user_id) IN (",
    lists!(" WHERE u.user_id = ?1"),
    ")"
);

/// A repeated tag, and the empty one, add nothing.
const ADD_TO_LISTS: &str = concat!(
    "INSERT OR IGNORE INTO chat_user_lists ",
    lists!(" WHERE u.user_id = ?1")
);

pub(crate) fn put(connection: &Connection, row: &ChatUserRow) -> Result<()> {
    let tags = serde_json::to_string(&row.tags).expect("tags are text");
    let id = row.user_id.as_str();
    let stored_tags: Option<String> = connection
        .prepare_cached("SELECT tags FROM chat_users WHERE user_id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let changes_lists = stored_tags.as_ref() != Some(&tags);
    if changes_lists && stored_tags.is_some() {
        connection
            .prepare_cached(REMOVE_FROM_LISTS)?
            .execute([id])?;
    }
    connection
        .prepare_cached(
            "INSERT INTO chat_users (user_id, tenant, agent, external_user_id, created_at,
                 last_active_at, tags, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (user_id) DO UPDATE SET tags = excluded.tags, body = excluded.body,
                 last_active_at = max(last_active_at, excluded.last_active_at)",
        )?
        .execute(params![
            id,
            row.tenant.as_str(),
            row.agent.as_str(),
            row.external_user_id,
            row.created_at.0,
            row.last_active_at.0,
            tags,
            row.body,
        ])?;
    if changes_lists {
        connection.prepare_cached(ADD_TO_LISTS)?.execute([id])?;
    }
    Ok(())
}

pub(crate) fn touch(connection: &Connection, user: &ChatUserId, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE chat_users SET last_active_at = ?2 WHERE user_id = ?1 AND last_active_at < ?2",
        )?
        .execute(params![user.as_str(), at.0])
        .map(drop)
}

/// After an import.
pub(crate) fn rebuild_lists(connection: &Connection) -> Result<()> {
    connection.execute_batch(concat!(
        "DELETE FROM chat_user_lists; INSERT OR IGNORE INTO chat_user_lists ",
        lists!("")
    ))
}

fn from_row(row: &Row<'_>) -> Result<ChatUserRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    Ok(ChatUserRow {
        user_id: ChatUserId::new(text(0)?),
        tenant: TenantId::new(text(1)?),
        agent: AgentId::new(text(2)?),
        external_user_id: row.get(3)?,
        created_at: Timestamp(row.get(4)?),
        last_active_at: Timestamp(row.get(5)?),
        tags: serde_json::from_str(text(6)?).map_err(|error| fault::malformed(6, error))?,
        body: row.get(7)?,
    })
}

fn find(connection: &Connection, user: &ChatUserId) -> Result<Option<ChatUserRow>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            " FROM chat_users u WHERE u.user_id = ?1"
        ))?
        .query_row([user.as_str()], from_row)
        .optional()
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM chat_user_lists l CROSS JOIN chat_users u ON u.user_id = l.user_id
     WHERE l.tenant = ?1 AND l.agent = ?2 AND l.tag = ?3 AND l.user_id > ?4 ORDER BY l.user_id"
);

fn list(
    connection: &Connection,
    tenant: &TenantId,
    agent: &AgentId,
    filter: &ChatUserFilter,
    page: &ListingPage<ChatUserId>,
) -> Result<Listing<ChatUserId, ChatUserRow>> {
    let mut select = connection.prepare_cached(LIST)?;
    let rows = select.query_map(
        [
            tenant.as_str(),
            agent.as_str(),
            filter.tag.as_deref().unwrap_or_default(),
            page.after.as_ref().map_or("", ChatUserId::as_str),
        ],
        from_row,
    )?;
    listing(
        rows,
        page.limit,
        |row| row.user_id.clone(),
        |row| row.body.len(),
        |row| filter.matches(row),
    )
}

#[async_trait]
impl ReadChatUsers for SqliteStore {
    async fn chat_user(
        &self,
        tenant: &TenantId,
        user: &ChatUserId,
    ) -> Result<Option<ChatUserRow>, Fault> {
        let user = user.clone();
        let found = self
            .readers
            .read(move |connection| find(connection, &user))
            .await?;
        Ok(found.filter(|row| row.tenant == *tenant))
    }

    async fn list_chat_users(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        filter: &ChatUserFilter,
        page: &ListingPage<ChatUserId>,
    ) -> Result<Listing<ChatUserId, ChatUserRow>, Fault> {
        let (tenant, agent) = (tenant.clone(), agent.clone());
        let (filter, page) = (filter.clone(), page.clone());
        self.readers
            .read(move |connection| list(connection, &tenant, &agent, &filter, &page))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_plan::assert_searches;

    #[test]
    fn every_page_is_one_range_of_one_index() {
        assert_searches(LIST, "tag=? AND user_id>?");
    }

    #[test]
    fn lists_of_a_user_are_changed_without_a_scan() {
        assert_searches(REMOVE_FROM_LISTS, "tag=? AND user_id=?");
        assert_searches(ADD_TO_LISTS, "user_id=?");
    }
}
