//! The inbox: open questions by age, deadline or priority, of one kind or group.
//!
//! A question has one row in `inbox` for each filter that includes it, so every page is one range
//! of one index whatever the filter. Groups can change while a question is open; its rows are then
//! rewritten.

use crate::interrupts::{COLUMNS, columns, from_row};
use rusqlite::types::ToSql;
use rusqlite::{Connection, Result, params};
use tandem_record::TenantId;
use tandem_store::{
    InboxChoices, InboxCursor, InboxPage, InboxQuery, InboxSort, InterruptFilter, InterruptListing,
    InterruptRow, Page, RunPosition, question_page,
};

/// Limit of names offered as a filter.
const MAX_NAMES: i64 = 100;

/// The distinct names in a column of one reader's inbox.
macro_rules! distinct_names {
    ($column:literal, $within:literal) => {
        concat!(
            "WITH RECURSIVE named(name) AS (
                 SELECT min(",
            $column,
            ") FROM inbox
                 WHERE tenant = ?1 AND workspace = ?2",
            $within,
            " AND ",
            $column,
            " > ''
                 UNION ALL
                 SELECT (SELECT min(",
            $column,
            ") FROM inbox
                         WHERE tenant = ?1 AND workspace = ?2",
            $within,
            "
                           AND ",
            $column,
            " > named.name)
                 FROM named WHERE named.name IS NOT NULL)
             SELECT name FROM named WHERE name IS NOT NULL LIMIT ?3"
        )
    };
}

/// The fields a question keeps from its first row.
pub(crate) struct InterruptIdentity {
    pub(crate) position: i64,
    pub(crate) tenant: String,
    pub(crate) workspace: Option<String>,
    pub(crate) kind: String,
}

pub(crate) fn project(
    connection: &Connection,
    of: &InterruptIdentity,
    row: &InterruptRow,
) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM inbox WHERE position = ?1")?
        .execute([of.position])?;
    if row.closed.is_some() {
        return Ok(());
    }
    // A duplicate or empty group name adds nothing.
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO inbox (tenant, workspace, kind, grp, position, due, urgency)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let groups = row.groups.iter().map(String::as_str);
    for group in groups.chain([""]) {
        for kind in ["", of.kind.as_str()] {
            for workspace in [""].into_iter().chain(of.workspace.as_deref()) {
                insert.execute(params![
                    of.tenant,
                    workspace,
                    kind,
                    group,
                    of.position,
                    row.due(),
                    row.urgency(),
                ])?;
            }
        }
    }
    Ok(())
}

/// How a page is read in one order.
struct PageQuery {
    index: &'static str,
    rank: &'static str,
    after: &'static str,
    order: &'static str,
}

impl PageQuery {
    fn of(sort: InboxSort) -> Self {
        match sort {
            InboxSort::Newest => Self {
                index: "",
                rank: "0",
                after: "i.position < ?",
                order: "i.position DESC",
            },
            InboxSort::Deadline => Self {
                index: "INDEXED BY inbox_by_due",
                rank: "i.due",
                after: "(i.due, i.position) > (?, ?)",
                order: "i.due, i.position",
            },
            InboxSort::Priority => Self {
                index: "INDEXED BY inbox_by_urgency",
                rank: "i.urgency",
                after: "(i.urgency, i.position) > (?, ?)",
                order: "i.urgency, i.position",
            },
        }
    }

    fn sql(&self) -> String {
        let Self {
            index,
            rank,
            after,
            order,
        } = self;
        format!(
            "SELECT {}, i.position, {rank} FROM inbox i {index}
             CROSS JOIN interrupts q ON q.position = i.position
             WHERE i.tenant = ? AND i.workspace = ? AND i.kind = ? AND i.grp = ? AND {after}
             ORDER BY {order} LIMIT ?",
            columns!("q.")
        )
    }
}

pub(crate) fn page(
    connection: &Connection,
    tenant: &TenantId,
    query: &InboxQuery,
) -> Result<InboxPage> {
    let ranked = query.sort != InboxSort::Newest;
    let start = InboxCursor {
        rank: i64::MIN,
        position: RunPosition(if ranked { i64::MIN } else { i64::MAX }),
    };
    let last = query.after.unwrap_or(start);
    let tenant = tenant.as_str();
    let workspace: &str = query.workspace.as_ref().map_or("", AsRef::as_ref);
    let kind = query.kind.as_deref().unwrap_or_default();
    let group = query.group.as_deref().unwrap_or_default();
    let limit = i64::try_from(query.limit)
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    let mut values: Vec<&dyn ToSql> = vec![&tenant, &workspace, &kind, &group];
    if ranked {
        values.push(&last.rank);
    }
    values.extend([&last.position.0 as &dyn ToSql, &limit]);
    let mut select = connection.prepare_cached(&PageQuery::of(query.sort).sql())?;
    let rows = select.query_map(values.as_slice(), |row| {
        let place = InboxCursor {
            rank: row.get(COLUMNS + 1)?,
            position: RunPosition(row.get(COLUMNS)?),
        };
        Ok((place, from_row(row)?))
    })?;
    let (rows, more) = question_page(rows, query.limit)?;
    Ok(InboxPage { rows, more })
}

/// The same as a listing of questions, newest first.
pub(crate) fn newest(
    connection: &Connection,
    tenant: &TenantId,
    filter: &InterruptFilter,
    page: &Page,
) -> Result<InterruptListing> {
    let query = InboxQuery {
        workspace: filter.workspace.clone(),
        kind: filter.kind.clone(),
        group: None,
        sort: InboxSort::Newest,
        after: page
            .before
            .map(|position| InboxCursor { rank: 0, position }),
        limit: page.limit,
    };
    let found = self::page(connection, tenant, &query)?;
    let rows = found.rows.into_iter();
    Ok(InterruptListing {
        rows: rows.map(|(place, row)| (place.position, row)).collect(),
        more: found.more,
    })
}

/// Jumps from one name to the next, so the cost is the number of names.
pub(crate) fn choices(
    connection: &Connection,
    tenant: &TenantId,
    workspace: &str,
) -> Result<InboxChoices> {
    let names = |sql: &str| -> Result<Vec<String>> {
        connection
            .prepare_cached(sql)?
            .query_map(params![tenant.as_str(), workspace, MAX_NAMES], |row| {
                row.get(0)
            })?
            .collect()
    };
    Ok(InboxChoices {
        kinds: names(distinct_names!("kind", ""))?,
        groups: names(distinct_names!("grp", " AND kind = ''"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No sort and no scan of other rows: the cost depends on the page size.
    #[test]
    fn every_page_is_one_range_of_one_index() {
        let connection = Connection::open_in_memory().unwrap();
        for script in crate::migrations::SCRIPTS {
            connection.execute_batch(script).unwrap();
        }
        for sort in [InboxSort::Newest, InboxSort::Deadline, InboxSort::Priority] {
            let sql = format!("EXPLAIN QUERY PLAN {}", PageQuery::of(sort).sql());
            let mut plan = connection.prepare(&sql).unwrap();
            let steps: Vec<String> = plan
                .raw_query()
                .mapped(|row| row.get(3))
                .collect::<Result<_>>()
                .unwrap();
            let text = steps.join("\n");
            assert!(text.contains("SEARCH i USING"), "{sort:?}: {text}");
            assert!(text.contains("grp=?"), "{sort:?}: {text}");
            assert!(!text.contains("TEMP B-TREE"), "{sort:?}: {text}");
            assert!(!text.contains("SCAN"), "{sort:?}: {text}");
        }
    }
}
