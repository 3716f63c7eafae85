//! Schedules, their occurrences, and the recipients of campaigns.

use super::MemoryStore;
use super::by_creation::ByCreation;
use crate::conversations::{
    Listing, ListingPage, ReadSchedules, ScheduleFilter, ScheduleRecipientRow, ScheduleRow,
    ScheduleRunRow, listing,
};
use crate::fault::Fault;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::convert::Infallible;
use tandem_record::{Partition, ScheduleId, ScheduleRunId, TenantId};

#[derive(Default)]
pub(super) struct Schedules {
    schedules: ByCreation<ScheduleId, ScheduleRow>,
    runs: BTreeMap<ScheduleRunId, ScheduleRunRow>,
    recipients: BTreeMap<(ScheduleRunId, u32), ScheduleRecipientRow>,
}

impl Schedules {
    pub(super) fn put_schedule(&mut self, row: &ScheduleRow) {
        match self.schedules.get_mut(&row.schedule_id) {
            Some(stored) => {
                *stored = ScheduleRow {
                    schedule_id: stored.schedule_id.clone(),
                    tenant: stored.tenant.clone(),
                    workspace: stored.workspace.clone(),
                    agent: stored.agent.clone(),
                    ..row.clone()
                };
            }
            None => self.schedules.add(row.schedule_id.clone(), row.clone()),
        }
    }

    pub(super) fn put_run(&mut self, row: &ScheduleRunRow) {
        match self.runs.get_mut(&row.run_id) {
            Some(stored) => stored.body.clone_from(&row.body),
            None => drop(self.runs.insert(row.run_id.clone(), row.clone())),
        }
    }

    pub(super) fn put_recipient(&mut self, row: &ScheduleRecipientRow) {
        let place = (row.run_id.clone(), row.ordinal);
        self.recipients.insert(place, row.clone());
    }
}

#[async_trait]
impl ReadSchedules for MemoryStore {
    async fn schedule(
        &self,
        tenant: &TenantId,
        schedule: &ScheduleId,
    ) -> Result<Option<ScheduleRow>, Fault> {
        let state = self.state()?;
        let found = state.conversations.schedules.schedules.get(schedule);
        Ok(found.filter(|row| row.tenant == *tenant).cloned())
    }

    async fn list_schedules(
        &self,
        tenant: &TenantId,
        filter: &ScheduleFilter,
        page: &ListingPage<ScheduleId>,
    ) -> Result<Option<Listing<ScheduleId, ScheduleRow>>, Fault> {
        let state = self.state()?;
        let schedules = &state.conversations.schedules.schedules;
        if let Some(after) = &page.after
            && !schedules.get(after).is_some_and(|row| {
                let caller = Partition {
                    tenant: tenant.clone(),
                    workspace: filter.workspace.clone(),
                };
                caller.covers_parts(&row.tenant, row.workspace.as_ref())
            })
        {
            return Ok(None);
        }
        let older = schedules.older(page.after.as_ref());
        let of_tenant = older.filter(|row| row.tenant == *tenant);
        Ok(Some(infallible(listing(
            of_tenant.map(|row| Ok(row.clone())),
            page.limit,
            |row| row.schedule_id.clone(),
            |row| row.body.len(),
            |row| filter.matches(row),
        ))))
    }

    async fn schedule_run(
        &self,
        tenant: &TenantId,
        run: &ScheduleRunId,
    ) -> Result<Option<ScheduleRunRow>, Fault> {
        let state = self.state()?;
        let found = state.conversations.schedules.runs.get(run);
        Ok(found.filter(|row| row.tenant == *tenant).cloned())
    }

    async fn list_schedule_runs(
        &self,
        schedule: &ScheduleId,
        page: &ListingPage<ScheduleRunId>,
    ) -> Result<Option<Listing<ScheduleRunId, ScheduleRunRow>>, Fault> {
        let state = self.state()?;
        let runs = state.conversations.schedules.runs.values();
        let mut runs: Vec<_> = runs.filter(|row| row.schedule_id == *schedule).collect();
        let place = |row: &ScheduleRunRow| (row.scheduled_for, row.run_id.clone());
        runs.sort_by_key(|row| std::cmp::Reverse(place(row)));
        if let Some(after) = &page.after {
            let Some(last) = runs.iter().position(|row| row.run_id == *after) else {
                return Ok(None);
            };
            runs.drain(..=last);
        }
        Ok(Some(infallible(listing(
            runs.into_iter().map(|row| Ok(row.clone())),
            page.limit,
            |row| row.run_id.clone(),
            |row| row.body.len(),
            |_| true,
        ))))
    }

    async fn list_schedule_recipients(
        &self,
        run: &ScheduleRunId,
        page: &ListingPage<u32>,
    ) -> Result<Listing<u32, ScheduleRecipientRow>, Fault> {
        let state = self.state()?;
        let from = page.after.map_or(0, |after| after.saturating_add(1));
        let range = (run.clone(), from)..=(run.clone(), u32::MAX);
        let rows = state.conversations.schedules.recipients.range(range);
        Ok(infallible(listing(
            rows.map(|(_, row)| Ok(row.clone())),
            page.limit,
            |row| row.ordinal,
            |row| row.body.len(),
            |_| true,
        )))
    }
}

fn infallible<I, T>(listing: Result<Listing<I, T>, Infallible>) -> Listing<I, T> {
    let Ok(listing) = listing;
    listing
}
