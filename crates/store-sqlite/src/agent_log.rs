//! The logs of agents: one row for the events of each append. Positions are assigned by the only
//! writer, inside the commit, so none becomes visible before a smaller one.

use crate::SqliteStore;
use crate::events::{self, seq};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, params};
use tandem_record::{AgentId, StreamId, TenantId};
use tandem_store::{
    AgentLogEvent, AgentLogPage, Append, Fault, PageLimit, ReadAgentLog, StoredEvent,
};

pub(crate) fn add(
    connection: &Connection,
    tenant: &TenantId,
    agent: &AgentId,
    append: &Append,
) -> Result<()> {
    let count = append.events.len() as i64;
    let last = append.end().map_or(0, |last| last.0 as i64);
    let head: i64 = connection
        .prepare_cached(
            "INSERT INTO agent_logs (tenant, agent, head) VALUES (?1, ?2, ?3)
             ON CONFLICT (tenant, agent) DO UPDATE SET head = head + ?3 RETURNING head",
        )?
        .query_row(params![tenant.as_str(), agent.as_str(), count], |row| {
            row.get(0)
        })?;
    connection
        .prepare_cached(
            "INSERT INTO agent_log_ranges (tenant, agent, last_position, stream, last_seq, events)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            tenant.as_str(),
            agent.as_str(),
            head,
            append.stream.as_str(),
            last,
            count,
        ])
        .map(drop)
}

/// Leaves a gap in the logs of its agents.
pub(crate) fn remove_stream(connection: &Connection, stream: &StreamId) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM agent_log_ranges WHERE stream = ?1")?
        .execute([stream.as_str()])
        .map(drop)
}

const RANGES: &str = "SELECT last_position, stream, last_seq, events FROM agent_log_ranges
    WHERE tenant = ?1 AND agent = ?2 AND last_position > ?3 ORDER BY last_position";

fn read(
    connection: &Connection,
    tenant: &TenantId,
    agent: &AgentId,
    after: u64,
    limit: PageLimit,
) -> Result<AgentLogPage> {
    // One transaction: a purge in between must not give a stream's number to another.
    let view = connection.unchecked_transaction()?;
    let head: Option<i64> = view
        .prepare_cached("SELECT head FROM agent_logs WHERE tenant = ?1 AND agent = ?2")?
        .query_row([tenant.as_str(), agent.as_str()], |row| row.get(0))
        .optional()?;
    let mut page = AgentLogPage {
        events: Vec::new(),
        head: head.unwrap_or(0).unsigned_abs(),
    };
    let mut ranges = view.prepare_cached(RANGES)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = ranges.query(params![tenant.as_str(), agent.as_str(), after])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let last_position: i64 = row.get(0)?;
        let stream = StreamId::new(row.get_ref(1)?.as_str()?);
        let (last, count): (i64, i64) = (row.get(2)?, row.get(3)?);
        let Some(place) = events::find(&view, &stream)? else {
            continue;
        };
        // Positions and sequences of a range grow together.
        let unread = (last_position - after).min(count);
        let mut is_full = false;
        let first = (last - unread + 1).unsigned_abs();
        events::read(
            &view,
            place.stream_no,
            first,
            seq(last),
            |event: StoredEvent| {
                is_full = !limit.admits(page.events.len(), bytes, event.body.len());
                if is_full {
                    return false;
                }
                bytes += event.body.len();
                let position = last_position.unsigned_abs() - (last.unsigned_abs() - event.seq.0);
                page.events.push(AgentLogEvent {
                    position,
                    stream: stream.clone(),
                    event,
                });
                true
            },
        )?;
        if is_full || !limit.admits(page.events.len(), bytes, 0) {
            break;
        }
    }
    Ok(page)
}

#[async_trait]
impl ReadAgentLog for SqliteStore {
    async fn agent_log(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        after: u64,
        limit: PageLimit,
    ) -> Result<AgentLogPage, Fault> {
        let (tenant, agent) = (tenant.clone(), agent.clone());
        self.readers
            .read(move |connection| read(connection, &tenant, &agent, after, limit))
            .await
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn page_is_one_range_of_one_index() {
        crate::query_plan::assert_searches(super::RANGES, "agent=? AND last_position>?");
    }
}
