//! Where a page of a list continues: the position of the row that its cursor names. A row of
//! another tenant or workspace has none.

use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::{TenantId, WorkspaceId};

/// The query for [`cursor_position`] in one table.
macro_rules! position_query {
    ($table:literal, $id:literal) => {
        concat!(
            "SELECT position FROM ",
            $table,
            " WHERE ",
            $id,
            " = ?1 AND tenant = ?2 AND (?3 IS NULL OR workspace = ?3)"
        )
    };
}

pub(crate) use position_query;

pub(crate) fn cursor_position(
    connection: &Connection,
    query: &str,
    id: &str,
    tenant: &TenantId,
    workspace: Option<&WorkspaceId>,
) -> Result<Option<i64>> {
    let workspace: Option<&str> = workspace.map(AsRef::as_ref);
    connection
        .prepare_cached(query)?
        .query_row(params![id, tenant.as_str(), workspace], |row| row.get(0))
        .optional()
}
