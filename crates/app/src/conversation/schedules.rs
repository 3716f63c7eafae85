//! Schedules: what admins do to them, and reading them with their occurrences and recipients.
//!
//! Changes take the right `schedule.manage` of the agent's rules, and so does reading over the API where the agent has
//! rules. The console reads by the scope of the key. Schedules of workflows are made by registering documents; pausing,
//! resuming and cancelling them takes the scope of the key alone, like runs.

use super::desk_work::DeskRight;
use super::rights::{AdminCall, PrivilegedAction, signals};
use super::submit_error;
use crate::app::App;
use crate::error::{AppError, InvalidField, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{
    AdminActor, RecipientRecord, ScheduleCommand, ScheduleDefinition, ScheduleOrigin,
    SchedulePlane, ScheduleRecord, ScheduleRunRecord, ScheduleStatus,
};
use tandem_record::{AgentId, FlowId, Object, ScheduleId, ScheduleRunId, Timestamp, WorkflowId};
use tandem_runtime::conversation::{
    AgentProblem, AgentSpec, Occurrences, ScheduleReply, read_schedule, written_schedule,
};
use tandem_runtime::{Fault, ListingPage, ScheduleFilter};

const MANAGE: &str = "schedule.manage";
/// Reason of a schedule that an admin cancelled.
const BY_ADMIN: &str = "admin";

const OF_DOCUMENT: &str =
    "cannot change a schedule of a workflow; register a document with another trigger";

/// Which schedules are listed.
#[derive(Default)]
pub struct ScheduleQuery {
    pub agent: Option<AgentId>,
    pub flow: Option<FlowId>,
    pub workflow: Option<WorkflowId>,
    pub status: Option<ScheduleStatus>,
    pub target_kind: Option<String>,
    pub user_external_id: Option<String>,
    pub campaign: Option<String>,
}

/// What an admin does to a schedule.
pub enum ScheduleChange {
    /// New values of its definition, as they were written; what is absent stays.
    Update(Object),
    Pause,
    Resume,
    Cancel,
}

/// One user whom a campaign addresses.
pub struct Recipient {
    pub ordinal: u32,
    pub record: RecipientRecord,
}

impl App {
    pub async fn create_schedule(
        &self,
        call: &AdminCall<'_>,
        agent: AgentId,
        written: Object,
        idempotency: Idempotency<ScheduleRecord>,
    ) -> Result<Completion<ScheduleRecord>, AppError> {
        call.caller.require_scope(Scope::RunsCreate)?;
        self.find_agent_for(call.caller, &agent)?;
        let actor = self.authorize_schedules(call, &agent).await?;
        let spec = self.ready_agent(&agent)?;
        let definition = self.definition(&spec, written)?;
        let command = ScheduleCommand::Create {
            agent_id: agent,
            owner: call.caller.owner(),
            definition: Box::new(definition),
            created_by: ScheduleOrigin {
                plane: SchedulePlane::Control,
                actor_id: Some(actor.id.clone()),
                user_id: None,
            },
            actor: Some(actor),
        };
        let id = self.runtime().new_schedule_id();
        let record = self.put_to_schedule(call, &id, command).await?;
        self.complete(idempotency, record).await
    }

    /// Changes a schedule. `expected` is the version that the caller has seen.
    pub async fn change_schedule(
        &self,
        call: &AdminCall<'_>,
        schedule: &ScheduleId,
        expected: Option<u64>,
        change: ScheduleChange,
        idempotency: Idempotency<ScheduleRecord>,
    ) -> Result<Completion<ScheduleRecord>, AppError> {
        let scope = match change {
            ScheduleChange::Cancel => Scope::RunsCancel,
            _ => Scope::RunsCreate,
        };
        call.caller.require_scope(scope)?;
        let record = self.find_schedule(call.caller, schedule).await?;
        let actor = match &record.agent_id {
            Some(agent) => Some(self.authorize_schedules(call, agent).await?),
            None => Some(key_holder(call)),
        };
        let command = match change {
            ScheduleChange::Update(changes) => {
                let Some(agent) = &record.agent_id else {
                    return Err(AppError::invalid("", OF_DOCUMENT));
                };
                let spec = self.ready_agent(agent)?;
                let mut written = written_schedule(&record.definition);
                written.extend(changes);
                ScheduleCommand::Update {
                    expected,
                    definition: Box::new(self.definition(&spec, written)?),
                    actor,
                }
            }
            ScheduleChange::Pause => ScheduleCommand::Pause { expected, actor },
            ScheduleChange::Resume => ScheduleCommand::Resume { expected, actor },
            ScheduleChange::Cancel => ScheduleCommand::Cancel {
                expected,
                actor,
                reason: BY_ADMIN.to_owned(),
            },
        };
        let record = self.put_to_schedule(call, schedule, command).await?;
        self.complete(idempotency, record).await
    }

    fn definition(
        &self,
        agent: &AgentSpec,
        written: Object,
    ) -> Result<ScheduleDefinition, AppError> {
        let read = read_schedule(&Value::Object(written), agent, self.now());
        read.map_err(|problems| {
            let field = |problem: AgentProblem| InvalidField::new(problem.path, problem.message);
            AppError::Invalid(problems.into_iter().map(field).collect())
        })
    }

    async fn authorize_schedules(
        &self,
        call: &AdminCall<'_>,
        agent: &AgentId,
    ) -> Result<AdminActor, AppError> {
        let asked = PrivilegedAction {
            action: MANAGE,
            agent,
            session: None,
            escalation: None,
        };
        self.authorize_admin(call, &asked).await
    }

    /// Lets an admin read schedules of an agent. An agent without rules has nobody to ask, and schedules of workflows take
    /// the scope of the key alone.
    async fn authorize_reading(
        &self,
        call: &AdminCall<'_>,
        agent: Option<&AgentId>,
    ) -> Result<(), AppError> {
        let Some(agent) = agent else {
            return Ok(());
        };
        let spec = self.agent_spec(agent);
        if spec.is_some_and(|spec| spec.admin_auth.is_none()) {
            return Ok(());
        }
        self.authorize_schedules(call, agent).await.map(drop)
    }

    /// Lets an admin read a schedule.
    pub async fn authorize_schedule_reader(
        &self,
        call: &AdminCall<'_>,
        schedule: &ScheduleId,
    ) -> Result<(), AppError> {
        call.caller.require_scope(Scope::RunsRead)?;
        let record = self.find_schedule(call.caller, schedule).await?;
        self.authorize_reading(call, record.agent_id.as_ref()).await
    }

    /// Lets an admin read an occurrence.
    pub async fn authorize_schedule_run_reader(
        &self,
        call: &AdminCall<'_>,
        run: &ScheduleRunId,
    ) -> Result<(), AppError> {
        call.caller.require_scope(Scope::RunsRead)?;
        let record = self.find_schedule_run(call.caller, run).await?;
        self.authorize_reading(call, record.agent_id.as_ref()).await
    }

    /// Schedules that the admin may read, newest first, and where the next page starts.
    pub async fn list_schedules_for(
        &self,
        call: &AdminCall<'_>,
        query: ScheduleQuery,
        page: &ListingPage<ScheduleId>,
    ) -> Result<(Vec<ScheduleRecord>, Option<ScheduleId>), AppError> {
        let named = query.agent.clone().into_iter();
        let (found, next) = self.list_schedules(call.caller, query, page).await?;
        // Somebody who asks for an agent is told that they may not, also when it has no schedule.
        let agents: BTreeSet<AgentId> = named
            .chain(found.iter().filter_map(|record| record.agent_id.clone()))
            .collect();
        let mut rights: BTreeMap<AgentId, Result<(), AppError>> = BTreeMap::new();
        for agent in agents {
            let right = self.authorize_reading(call, Some(&agent)).await;
            rights.insert(agent, right);
        }
        let is_allowed = |record: &ScheduleRecord| match &record.agent_id {
            Some(agent) => rights.get(agent).is_some_and(Result::is_ok),
            None => true,
        };
        let visible: Vec<_> = found.into_iter().filter(is_allowed).collect();
        let denial = rights.into_values().find_map(Result::err);
        match denial.filter(|_| visible.is_empty()) {
            Some(denial) => Err(denial),
            None => Ok((visible, next)),
        }
    }

    async fn put_to_schedule(
        &self,
        call: &AdminCall<'_>,
        schedule: &ScheduleId,
        command: ScheduleCommand,
    ) -> Result<ScheduleRecord, AppError> {
        let runtime = self.runtime_for(call.caller);
        let reply: ScheduleReply = runtime
            .submit_to_schedule(schedule, command)
            .await
            .map_err(|error| submit_error(error, ResourceKind::Schedule))?;
        reply
            .map(|record| *record)
            .map_err(AppError::ScheduleRefused)
    }

    /// Schedules the caller may see, newest first, and where the next page starts.
    pub async fn list_schedules(
        &self,
        caller: &Identity,
        query: ScheduleQuery,
        page: &ListingPage<ScheduleId>,
    ) -> Result<(Vec<ScheduleRecord>, Option<ScheduleId>), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        if query
            .agent
            .as_ref()
            .is_some_and(|agent| !caller.reaches_agent(agent))
        {
            return Err(AppError::NotFound(ResourceKind::Agent));
        }
        let filter = ScheduleFilter {
            workspace: caller.workspace.clone(),
            agent: query.agent.or_else(|| caller.agent.clone()),
            flow: query.flow,
            workflow: query.workflow,
            status: query.status,
            target_kind: query.target_kind,
            user_external_id: query.user_external_id,
            campaign: query.campaign,
            is_configured: false,
        };
        let store = self.runtime().store();
        let listing = store.list_schedules(&caller.tenant, &filter, page).await?;
        let listing = listing.ok_or_else(|| AppError::invalid("cursor", "is not known"))?;
        let records = listing
            .rows
            .iter()
            .map(|row| serde_json::from_str(&row.body));
        let records: Result<_, _> = records.collect();
        Ok((records.map_err(corrupt)?, listing.next))
    }

    pub async fn read_schedule(
        &self,
        caller: &Identity,
        schedule: &ScheduleId,
    ) -> Result<ScheduleRecord, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_schedule(caller, schedule).await
    }

    /// Occurrences of a schedule that were claimed, the latest first, and where the next page starts.
    pub async fn list_schedule_runs(
        &self,
        caller: &Identity,
        schedule: &ScheduleId,
        page: &ListingPage<ScheduleRunId>,
    ) -> Result<(Vec<ScheduleRunRecord>, Option<ScheduleRunId>), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_schedule(caller, schedule).await?;
        let listing = self.runtime().store().list_schedule_runs(schedule, page);
        let listing = listing.await?;
        let listing = listing.ok_or_else(|| AppError::invalid("cursor", "is not known"))?;
        let runs = listing
            .rows
            .iter()
            .map(|row| serde_json::from_str(&row.body));
        let runs: Result<_, _> = runs.collect();
        Ok((runs.map_err(corrupt)?, listing.next))
    }

    /// Recipients of an occurrence, in their order, and where the next page starts.
    pub async fn list_schedule_recipients(
        &self,
        caller: &Identity,
        run: &ScheduleRunId,
        page: &ListingPage<u32>,
    ) -> Result<(Vec<Recipient>, Option<u32>), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_schedule_run(caller, run).await?;
        let store = self.runtime().store();
        let listing = store.list_schedule_recipients(run, page).await?;
        let recipients = listing.rows.iter().map(|row| {
            Ok(Recipient {
                ordinal: row.ordinal,
                record: serde_json::from_str(&row.body).map_err(corrupt)?,
            })
        });
        let recipients: Result<_, AppError> = recipients.collect();
        Ok((recipients?, listing.next))
    }

    /// One occurrence that was claimed.
    pub async fn read_schedule_run(
        &self,
        caller: &Identity,
        run: &ScheduleRunId,
    ) -> Result<ScheduleRunRecord, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_schedule_run(caller, run).await
    }

    /// The last occurrence that was claimed of a schedule the caller was shown.
    pub async fn last_schedule_run(
        &self,
        schedule: &ScheduleRecord,
    ) -> Result<Option<ScheduleRunRecord>, AppError> {
        let page = ListingPage {
            after: None,
            limit: 1,
        };
        let store = self.runtime().store();
        let listing = store.list_schedule_runs(&schedule.id, &page).await?;
        let last = listing.and_then(|listing| listing.rows.into_iter().next());
        let last = last.map(|row| serde_json::from_str(&row.body));
        last.transpose().map_err(corrupt)
    }

    /// The next occurrences of a schedule that takes place.
    pub fn next_occurrences(&self, record: &ScheduleRecord, count: usize) -> Vec<Timestamp> {
        let definition = &record.definition;
        let Ok(occurrences) = Occurrences::of(&definition.trigger, &definition.timezone) else {
            return Vec::new();
        };
        let first = record.next_run_at;
        let all = std::iter::successors(first, |at| occurrences.after(*at));
        all.take(count).collect()
    }

    /// A moment on the clock of the schedule's zone, for people.
    pub fn schedule_clock(&self, definition: &ScheduleDefinition, at: Timestamp) -> String {
        let occurrences = Occurrences::of(&definition.trigger, &definition.timezone);
        let local = occurrences.ok().and_then(|zone| zone.wall_clock(at));
        local.unwrap_or_else(|| at.rfc3339())
    }

    /// What a reader may be offered to do with a schedule, where their key has this scope. Nothing is recorded.
    pub fn schedule_right(
        &self,
        caller: &Identity,
        schedule: &ScheduleRecord,
        scope: Scope,
    ) -> DeskRight {
        match &schedule.agent_id {
            Some(agent) => self.offered_right(caller, agent, scope, MANAGE),
            None if caller.require_scope(scope).is_ok() => {
                DeskRight::As(caller.principal.to_string())
            }
            None => DeskRight::None,
        }
    }

    async fn find_schedule_run(
        &self,
        caller: &Identity,
        run: &ScheduleRunId,
    ) -> Result<ScheduleRunRecord, AppError> {
        let store = self.runtime().store();
        let row = store.schedule_run(&caller.tenant, run).await?;
        let unknown = || AppError::NotFound(ResourceKind::ScheduleRun);
        let row = row.ok_or_else(unknown)?;
        let record: ScheduleRunRecord = serde_json::from_str(&row.body).map_err(corrupt)?;
        let owner = &record.owner;
        let is_covered = caller
            .partition()
            .covers_parts(&owner.tenant, owner.workspace.as_ref());
        match is_covered && reaches(caller, record.agent_id.as_ref()) {
            true => Ok(record),
            false => Err(unknown()),
        }
    }

    /// A schedule of another tenant or workspace is reported like one that does not exist.
    async fn find_schedule(
        &self,
        caller: &Identity,
        schedule: &ScheduleId,
    ) -> Result<ScheduleRecord, AppError> {
        let found = self.runtime().read_schedule(schedule).await?;
        let found = found.filter(|record| {
            let owner = &record.owner;
            let partition = caller.partition();
            partition.covers_parts(&owner.tenant, owner.workspace.as_ref())
                && reaches(caller, record.agent_id.as_ref())
        });
        found.ok_or(AppError::NotFound(ResourceKind::Schedule))
    }
}

/// Who changes a schedule by the scope of their key.
fn key_holder(call: &AdminCall<'_>) -> AdminActor {
    AdminActor {
        id: call.caller.principal.to_string(),
        role: None,
        channel: signals(call).channel(),
        metadata: None,
    }
}

/// A key that is good for one agent does not reach workflows.
fn reaches(caller: &Identity, agent: Option<&AgentId>) -> bool {
    match agent {
        Some(agent) => caller.reaches_agent(agent),
        None => caller.agent.is_none(),
    }
}

fn corrupt(error: serde_json::Error) -> AppError {
    Fault::permanent(
        "corrupt",
        format!("a row of a schedule cannot be read: {error}"),
    )
    .into()
}
