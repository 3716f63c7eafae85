//! Reads of committed data: runs, definitions, timers, idempotency records.

use super::MemoryStore;
use super::state::State;
use crate::commit::{IdempotencyRecord, InterruptRow, RunRow};
use crate::fault::Fault;
use crate::read::{
    DueTimer, IdempotencyKey, InboxChoices, InboxCursor, InboxPage, InboxQuery, InboxSort,
    InterruptFilter, InterruptListing, ListedRun, Page, RegisteredWorkflow, RunFilter, RunListing,
    RunPosition, StoredRun, question_page,
};
use crate::{ReadDefinitions, ReadIdempotency, ReadInterrupts, ReadRuns, ReadTimers};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use tandem_record::{
    DefinitionHash, InterruptId, Partition, RunId, StreamId, TenantId, Timestamp, WorkflowId,
    WorkspaceId,
};

fn stored(state: &State, run: &RunId) -> Option<StoredRun> {
    let row = state.runs[*state.run_places.get(run)?].clone();
    let head = state
        .streams
        .get(&StreamId::of_run(run))
        .and_then(|log| log.head())
        .expect("a run is projected by an append to its stream");
    let tombstone = state.tombstones.get(run).cloned();
    Some(StoredRun {
        row,
        head,
        tombstone,
    })
}

fn matches(filter: &RunFilter, row: &RunRow) -> bool {
    filter.status.is_none_or(|status| row.status == status)
        && filter
            .workflow
            .as_ref()
            .is_none_or(|w| row.workflow_id == *w)
        && (filter.parent.is_none() || row.parent == filter.parent)
        && (filter.workspace.is_none() || row.workspace == filter.workspace)
}

#[async_trait]
impl ReadRuns for MemoryStore {
    async fn run(&self, tenant: &TenantId, run: &RunId) -> Result<Option<StoredRun>, Fault> {
        let found = stored(&*self.state()?, run);
        Ok(found.filter(|run| run.row.tenant == *tenant))
    }

    async fn run_of_any_tenant(&self, run: &RunId) -> Result<Option<StoredRun>, Fault> {
        Ok(stored(&*self.state()?, run))
    }

    async fn list_runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<RunListing, Fault> {
        let state = self.state()?;
        let mut older = state
            .runs
            .iter()
            .enumerate()
            .rev()
            .map(|(place, row)| (RunPosition(place as i64 + 1), row))
            .filter(|(position, _)| page.before.is_none_or(|before| *position < before))
            .filter(|(_, row)| row.tenant == *tenant && matches(filter, row));
        let runs = older
            .by_ref()
            .take(page.limit)
            .map(|(position, row)| ListedRun {
                position,
                row: row.clone(),
            })
            .collect();
        Ok(RunListing {
            runs,
            more: older.next().is_some(),
        })
    }

    async fn run_position(
        &self,
        of: &Partition,
        run: &RunId,
    ) -> Result<Option<RunPosition>, Fault> {
        let state = self.state()?;
        let place = state.run_places.get(run).copied();
        let own = |place: &usize| {
            let row = &state.runs[*place];
            of.covers(&Partition {
                tenant: row.tenant.clone(),
                workspace: row.workspace.clone(),
            })
        };
        Ok(place.filter(own).map(|p| RunPosition(p as i64 + 1)))
    }

    async fn live_run_in_scope(
        &self,
        owner: &Partition,
        scope: &str,
    ) -> Result<Option<RunId>, Fault> {
        let state = self.state()?;
        Ok(state
            .live_in_scope(owner, scope)
            .map(|run| run.run_id.clone()))
    }

    async fn count_descendants(
        &self,
        tenant: &TenantId,
        run: &RunId,
        limit: u64,
    ) -> Result<u64, Fault> {
        let state = self.state()?;
        let mut below: HashSet<&RunId> = HashSet::from([run]);
        // A child is created after its parent.
        for row in state.runs.iter().filter(|row| row.tenant == *tenant) {
            if row
                .parent
                .as_ref()
                .is_some_and(|parent| below.contains(parent))
            {
                below.insert(&row.run_id);
            }
        }
        Ok((below.len() as u64 - 1).min(limit))
    }

    async fn count_by_status(&self) -> Result<Vec<(String, u64)>, Fault> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let state = self.state()?;
        for run in &state.runs {
            *counts.entry(run.status.as_str()).or_default() += 1;
        }
        Ok(counts
            .into_iter()
            .map(|(status, count)| (status.to_owned(), count))
            .collect())
    }
}

#[async_trait]
impl ReadInterrupts for MemoryStore {
    async fn interrupt(
        &self,
        tenant: &TenantId,
        interrupt: &InterruptId,
    ) -> Result<Option<InterruptRow>, Fault> {
        let state = self.state()?;
        let row = state.interrupts.get(interrupt);
        Ok(row.filter(|row| row.tenant == *tenant).cloned())
    }

    async fn interrupt_position(
        &self,
        of: &Partition,
        interrupt: &InterruptId,
    ) -> Result<Option<RunPosition>, Fault> {
        let state = self.state()?;
        let row = state.interrupts.get(interrupt);
        let is_own = row.is_some_and(|row| of.covers_parts(&row.tenant, row.workspace.as_ref()));
        let position = state.interrupts.position(interrupt);
        Ok(position.filter(|_| is_own).map(RunPosition))
    }

    async fn list_interrupts(
        &self,
        tenant: &TenantId,
        filter: &InterruptFilter,
        page: &Page,
    ) -> Result<InterruptListing, Fault> {
        let state = self.state()?;
        let older = state
            .interrupts
            .iter()
            .rev()
            .map(|(position, row)| (RunPosition(position), row))
            .filter(|(position, _)| page.before.is_none_or(|before| *position < before))
            .filter(|(_, row)| row.tenant == *tenant && matches_interrupt(filter, row));
        let older = older.map(|(position, row)| Ok::<_, Fault>((position, row.clone())));
        let (rows, more) = question_page(older, page.limit)?;
        Ok(InterruptListing { rows, more })
    }

    async fn inbox(&self, tenant: &TenantId, query: &InboxQuery) -> Result<InboxPage, Fault> {
        let state = self.state()?;
        let mut found: Vec<(InboxCursor, &InterruptRow)> = state
            .interrupts
            .iter()
            .filter(|(_, row)| row.tenant == *tenant && matches_inbox_query(query, row))
            .map(|(position, row)| {
                let rank = match query.sort {
                    InboxSort::Newest => 0,
                    InboxSort::Deadline => row.due(),
                    InboxSort::Priority => row.urgency(),
                };
                let position = RunPosition(position);
                (InboxCursor { rank, position }, row)
            })
            .collect();
        let order = |place: &InboxCursor| match query.sort {
            InboxSort::Newest => (0, -place.position.0),
            InboxSort::Deadline | InboxSort::Priority => (place.rank, place.position.0),
        };
        found.sort_by_key(|(place, _)| order(place));
        let rest = found
            .into_iter()
            .skip_while(|(place, _)| query.after.is_some_and(|a| order(place) <= order(&a)));
        let rest = rest.map(|(place, row)| Ok::<_, Fault>((place, row.clone())));
        let (rows, more) = question_page(rest, query.limit)?;
        Ok(InboxPage { rows, more })
    }

    async fn inbox_choices(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
    ) -> Result<InboxChoices, Fault> {
        let state = self.state()?;
        let query = InboxQuery {
            workspace: workspace.cloned(),
            ..InboxQuery::default()
        };
        let open = state.interrupts.iter().map(|(_, row)| row);
        let open = open.filter(|row| row.tenant == *tenant && matches_inbox_query(&query, row));
        let (mut kinds, mut groups) = (BTreeSet::new(), BTreeSet::new());
        for row in open {
            kinds.insert(row.kind.clone());
            groups.extend(row.groups.iter().cloned());
        }
        Ok(InboxChoices {
            kinds: kinds.into_iter().collect(),
            groups: groups.into_iter().collect(),
        })
    }
}

fn matches_inbox_query(query: &InboxQuery, row: &InterruptRow) -> bool {
    row.closed.is_none()
        && query.kind.as_ref().is_none_or(|kind| row.kind == *kind)
        && query.group.as_ref().is_none_or(|g| row.groups.contains(g))
        && (query.workspace.is_none() || row.workspace == query.workspace)
}

fn matches_interrupt(filter: &InterruptFilter, row: &InterruptRow) -> bool {
    filter.open.is_none_or(|open| row.closed.is_none() == open)
        && filter.kind.as_ref().is_none_or(|kind| row.kind == *kind)
        && filter.stream.as_ref().is_none_or(|of| row.stream == *of)
        && (filter.workspace.is_none() || row.workspace == filter.workspace)
}

fn registration(
    state: &State,
    owner: Option<&Partition>,
    workflow: &WorkflowId,
) -> Option<RegisteredWorkflow> {
    let (hash, registered_at) = state.registry.get(&(owner.cloned(), workflow.clone()))?;
    let document = state
        .documents
        .get(hash)
        .expect("registering stores the document")
        .clone();
    Some(RegisteredWorkflow {
        workflow: workflow.clone(),
        hash: hash.clone(),
        document,
        shared: owner.is_none(),
        workspace: owner.and_then(|owner| owner.workspace.clone()),
        registered_at: *registered_at,
    })
}

/// Whether a registration of `holder` is visible to `owner`.
fn is_visible_to(holder: &Partition, owner: &Partition) -> bool {
    holder == owner || (holder.tenant == owner.tenant && holder.workspace.is_none())
}

#[async_trait]
impl ReadDefinitions for MemoryStore {
    async fn definition(&self, hash: &DefinitionHash) -> Result<Option<Arc<str>>, Fault> {
        Ok(self.state()?.documents.get(hash).cloned())
    }

    async fn registered(
        &self,
        owner: &Partition,
        workflow: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault> {
        let state = self.state()?;
        let tenant = Partition::from(owner.tenant.clone());
        let places = [Some(owner), Some(&tenant), None];
        Ok(places
            .into_iter()
            .find_map(|place| registration(&state, place, workflow)))
    }

    async fn list_registered(&self, owner: &Partition) -> Result<Vec<RegisteredWorkflow>, Fault> {
        let state = self.state()?;
        let mut visible = BTreeMap::new();
        // Shared documents sort first, then the tenant's, so that the more specific document
        // replaces the less specific one.
        for (holder, workflow) in state.registry.keys() {
            if holder
                .as_ref()
                .is_none_or(|holder| is_visible_to(holder, owner))
            {
                let registration = registration(&state, holder.as_ref(), workflow);
                visible.insert(
                    workflow.clone(),
                    registration.expect("the key is in the registry"),
                );
            }
        }
        Ok(visible.into_values().collect())
    }

    async fn list_registered_in_workspaces(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<RegisteredWorkflow>, Fault> {
        let state = self.state()?;
        let of_workspaces = state.registry.keys().filter_map(|(holder, workflow)| {
            let holder = holder
                .as_ref()
                .filter(|holder| holder.tenant == *tenant && holder.workspace.is_some())?;
            registration(&state, Some(holder), workflow)
        });
        Ok(of_workspaces.collect())
    }
}

#[async_trait]
impl ReadTimers for MemoryStore {
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Fault> {
        Ok(self.state()?.due_timers(now, limit))
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>, Fault> {
        Ok(self.state()?.due.first().map(|(due, _, _)| *due))
    }
}

#[async_trait]
impl ReadIdempotency for MemoryStore {
    async fn idempotency_record(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, Fault> {
        Ok(self.state()?.idempotency.get(key).cloned())
    }
}
