//! Schedules, their occurrences, and the recipients of campaigns. A schedule's `position` is the order of
//! creation. A schedule of a workflow has the empty agent, and its workflow in the column `flow`. A page of schedules is one range of the index of its most selective condition; the others
//! filter its rows.

use crate::SqliteStore;
use crate::cursor_position::{cursor_position, position_query};
use crate::fault;
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tandem_record::conversation::{ScheduleStatus, ScheduleTarget};
use tandem_record::{AgentId, FlowId, ScheduleId, ScheduleRunId, TenantId, Timestamp, WorkflowId};
use tandem_store::{
    Fault, Listing, ListingPage, ReadSchedules, ScheduleFilter, ScheduleRecipientRow, ScheduleRow,
    ScheduleRunRow, listing,
};

/// In the order [`from_row`] reads them.
macro_rules! columns {
    () => {
        "schedule_id, tenant, workspace, agent, flow, status, target_kind, user_external_id, \
         campaign, body"
    };
}

pub(crate) fn put(connection: &Connection, row: &ScheduleRow) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO schedules (schedule_id, tenant, workspace, agent, flow, status,
                 target_kind, user_external_id, campaign, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (schedule_id) DO UPDATE SET flow = excluded.flow,
                 status = excluded.status, target_kind = excluded.target_kind,
                 user_external_id = excluded.user_external_id, campaign = excluded.campaign,
                 body = excluded.body",
        )?
        .execute(params![
            row.schedule_id.as_str(),
            row.tenant.as_str(),
            row.workspace.as_ref().map(AsRef::as_ref),
            row.agent.as_ref().map_or("", AgentId::as_str),
            started(row),
            row.status.as_str(),
            row.target_kind,
            row.user_external_id,
            row.campaign,
            row.body,
        ])
        .map(drop)
}

/// The flow or the workflow.
fn started(row: &ScheduleRow) -> &str {
    let flow = row.flow.as_ref().map(FlowId::as_str);
    let workflow = row.workflow.as_ref().map(WorkflowId::as_str);
    flow.or(workflow).unwrap_or_default()
}

pub(crate) fn put_run(connection: &Connection, row: &ScheduleRunRow) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO schedule_runs (run_id, schedule_id, tenant, scheduled_for, body)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (run_id) DO UPDATE SET body = excluded.body",
        )?
        .execute(params![
            row.run_id.as_str(),
            row.schedule_id.as_str(),
            row.tenant.as_str(),
            row.scheduled_for.0,
            row.body,
        ])
        .map(drop)
}

pub(crate) fn put_recipient(connection: &Connection, row: &ScheduleRecipientRow) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO schedule_recipients (run_id, ordinal, body) VALUES (?1, ?2, ?3)
             ON CONFLICT (run_id, ordinal) DO UPDATE SET body = excluded.body",
        )?
        .execute(params![row.run_id.as_str(), row.ordinal, row.body])
        .map(drop)
}

fn from_row(row: &Row<'_>) -> Result<ScheduleRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let status = text(5)?;
    let unknown = || fault::malformed(5, format!("schedule status {status}"));
    let (agent, started, target_kind) = (text(3)?, text(4)?, text(6)?);
    let is_of_workflow = target_kind == ScheduleTarget::WORKFLOW;
    Ok(ScheduleRow {
        schedule_id: ScheduleId::new(text(0)?),
        tenant: TenantId::new(text(1)?),
        workspace: row.get_ref(2)?.as_str_or_null()?.map(Into::into),
        agent: (!agent.is_empty()).then(|| AgentId::new(agent)),
        flow: (!is_of_workflow).then(|| FlowId::new(started)),
        workflow: is_of_workflow.then(|| WorkflowId::new(started)),
        status: ScheduleStatus::parse(status).ok_or_else(unknown)?,
        target_kind: target_kind.to_owned(),
        user_external_id: row.get(7)?,
        campaign: row.get(8)?,
        body: row.get(9)?,
    })
}

fn run_from_row(row: &Row<'_>) -> Result<ScheduleRunRow> {
    let text = |column: usize| -> Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    Ok(ScheduleRunRow {
        run_id: ScheduleRunId::new(text(0)?),
        schedule_id: ScheduleId::new(text(1)?),
        tenant: TenantId::new(text(2)?),
        scheduled_for: Timestamp(row.get(3)?),
        body: row.get(4)?,
    })
}

fn find(
    connection: &Connection,
    tenant: &TenantId,
    schedule: &ScheduleId,
) -> Result<Option<ScheduleRow>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            columns!(),
            " FROM schedules WHERE schedule_id = ?1 AND tenant = ?2"
        ))?
        .query_row([schedule.as_str(), tenant.as_str()], from_row)
        .optional()
}

macro_rules! page_of {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM schedules INDEXED BY ",
            $index,
            " WHERE tenant = ?1 AND ",
            $condition,
            " AND position < ?3 ORDER BY position DESC"
        )
    };
}

const OF_USER: &str = page_of!("schedules_by_user", "user_external_id = ?2");
const OF_AGENT: &str = page_of!("schedules_by_agent", "agent = ?2");
/// Must repeat the condition of the index it names.
const CONFIGURED: &str = page_of!(
    "schedules_by_configuration",
    "schedule_id >= 'cfg:' AND schedule_id < 'cfg;' AND ?2 = ''"
);
const OF_TENANT: &str = page_of!("schedules_by_tenant", "?2 = ''");

fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &ScheduleFilter,
    page: &ListingPage<ScheduleId>,
) -> Result<Option<Listing<ScheduleId, ScheduleRow>>> {
    let before = match &page.after {
        None => i64::MAX,
        Some(schedule) => {
            const QUERY: &str = position_query!("schedules", "schedule_id");
            let workspace = filter.workspace.as_ref();
            match cursor_position(connection, QUERY, schedule.as_str(), tenant, workspace)? {
                None => return Ok(None),
                Some(position) => position,
            }
        }
    };
    let (select, value) = match (&filter.user_external_id, &filter.agent) {
        _ if filter.is_configured => (CONFIGURED, ""),
        (Some(user), _) => (OF_USER, user.as_str()),
        (None, Some(agent)) => (OF_AGENT, agent.as_str()),
        (None, None) => (OF_TENANT, ""),
    };
    let mut select = connection.prepare_cached(select)?;
    let rows = select.query_map(params![tenant.as_str(), value, before], from_row)?;
    let page = listing(
        rows,
        page.limit,
        |row| row.schedule_id.clone(),
        |row| row.body.len(),
        |row| filter.matches(row),
    )?;
    Ok(Some(page))
}

const RUNS: &str = "SELECT run_id, schedule_id, tenant, scheduled_for, body
    FROM schedule_runs INDEXED BY schedule_runs_by_schedule
    WHERE schedule_id = ?1 AND (scheduled_for, run_id) < (?2, ?3)
    ORDER BY scheduled_for DESC, run_id DESC";

fn list_runs(
    connection: &Connection,
    schedule: &ScheduleId,
    page: &ListingPage<ScheduleRunId>,
) -> Result<Option<Listing<ScheduleRunId, ScheduleRunRow>>> {
    let (before, run) = match &page.after {
        None => (i64::MAX, String::new()),
        Some(run) => {
            let mut at = connection.prepare_cached(
                "SELECT scheduled_for FROM schedule_runs WHERE run_id = ?1 AND schedule_id = ?2",
            )?;
            let values = [run.as_str(), schedule.as_str()];
            match at.query_row(values, |row| row.get(0)).optional()? {
                None => return Ok(None),
                Some(at) => (at, run.to_string()),
            }
        }
    };
    let mut select = connection.prepare_cached(RUNS)?;
    let rows = select.query_map(params![schedule.as_str(), before, run], run_from_row)?;
    let page = listing(
        rows,
        page.limit,
        |row| row.run_id.clone(),
        |row| row.body.len(),
        |_| true,
    )?;
    Ok(Some(page))
}

const RECIPIENTS: &str = "SELECT ordinal, body FROM schedule_recipients
    WHERE run_id = ?1 AND ordinal > ?2 ORDER BY ordinal";

fn list_recipients(
    connection: &Connection,
    run: &ScheduleRunId,
    page: &ListingPage<u32>,
) -> Result<Listing<u32, ScheduleRecipientRow>> {
    let after = page.after.map_or(-1, i64::from);
    let mut select = connection.prepare_cached(RECIPIENTS)?;
    let rows = select.query_map(params![run.as_str(), after], |row| {
        Ok(ScheduleRecipientRow {
            run_id: run.clone(),
            ordinal: row.get(0)?,
            body: row.get(1)?,
        })
    })?;
    listing(
        rows,
        page.limit,
        |row| row.ordinal,
        |row| row.body.len(),
        |_| true,
    )
}

#[async_trait]
impl ReadSchedules for SqliteStore {
    async fn schedule(
        &self,
        tenant: &TenantId,
        schedule: &ScheduleId,
    ) -> Result<Option<ScheduleRow>, Fault> {
        let (tenant, schedule) = (tenant.clone(), schedule.clone());
        self.readers
            .read(move |connection| find(connection, &tenant, &schedule))
            .await
    }

    async fn list_schedules(
        &self,
        tenant: &TenantId,
        filter: &ScheduleFilter,
        page: &ListingPage<ScheduleId>,
    ) -> Result<Option<Listing<ScheduleId, ScheduleRow>>, Fault> {
        let (tenant, filter, page) = (tenant.clone(), filter.clone(), page.clone());
        self.readers
            .read(move |connection| list(connection, &tenant, &filter, &page))
            .await
    }

    async fn schedule_run(
        &self,
        tenant: &TenantId,
        run: &ScheduleRunId,
    ) -> Result<Option<ScheduleRunRow>, Fault> {
        let (tenant, run) = (tenant.clone(), run.clone());
        self.readers
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT run_id, schedule_id, tenant, scheduled_for, body
                         FROM schedule_runs WHERE run_id = ?1 AND tenant = ?2",
                    )?
                    .query_row([run.as_str(), tenant.as_str()], run_from_row)
                    .optional()
            })
            .await
    }

    async fn list_schedule_runs(
        &self,
        schedule: &ScheduleId,
        page: &ListingPage<ScheduleRunId>,
    ) -> Result<Option<Listing<ScheduleRunId, ScheduleRunRow>>, Fault> {
        let (schedule, page) = (schedule.clone(), page.clone());
        self.readers
            .read(move |connection| list_runs(connection, &schedule, &page))
            .await
    }

    async fn list_schedule_recipients(
        &self,
        run: &ScheduleRunId,
        page: &ListingPage<u32>,
    ) -> Result<Listing<u32, ScheduleRecipientRow>, Fault> {
        let (run, page) = (run.clone(), page.clone());
        self.readers
            .read(move |connection| list_recipients(connection, &run, &page))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_plan::assert_searches;

    #[test]
    fn every_page_is_one_range_of_one_index() {
        assert_searches(OF_USER, "user_external_id=? AND position<?");
        assert_searches(OF_AGENT, "agent=? AND position<?");
        assert_searches(CONFIGURED, "tenant=? AND position<?");
        assert_searches(OF_TENANT, "tenant=? AND position<?");
        assert_searches(RUNS, "schedule_id=? AND (scheduled_for,run_id)<(?,?)");
        assert_searches(RECIPIENTS, "run_id=? AND ordinal>?");
    }
}
