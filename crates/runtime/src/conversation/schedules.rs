//! What use cases and conversations ask of schedules: commands, the schedules of agents' files, and the tools of the
//! current user.

use super::settings::Conversations;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_engine::agent::{AgentSpec, read_schedule, written_schedule};
use tandem_engine::schedule::ScheduleReply;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    CodeError, ScheduleCommand, ScheduleDefinition, ScheduleOrigin, SchedulePlane, ScheduleRecord,
    ScheduleStatus, ScheduleToolCall, ScheduleToolOperation,
};
use tandem_record::{
    AgentId, EffectId, FlowId, Object, Owner, Partition, ScheduleId, StreamId, TenantId,
};
use tandem_store::{Fault, ListingPage, ScheduleFilter};

/// Whose the schedules of agents' files are, and of documents that every tenant sees.
pub(crate) const CONFIGURED_TENANT: &str = "default";
const PAGE: usize = 500;
/// Schedules of one user that are active at once, and that the tool lists.
const MAX_OF_USER: usize = 100;

impl Runtime {
    pub fn new_schedule_id(&self) -> ScheduleId {
        let unique = self.inner.config.ids.run_id();
        let unique = unique.as_str().trim_start_matches("run-");
        ScheduleId::from(format!("sch-{unique}"))
    }

    /// Puts a command to a schedule.
    pub async fn submit_to_schedule(
        &self,
        schedule: &ScheduleId,
        mut command: ScheduleCommand,
    ) -> Result<ScheduleReply, SubmitError> {
        self.redact_schedule_command(&mut command);
        let stream = StreamId::of_schedule(schedule);
        self.submit_command(&self.inner.schedules, &stream, command, None)
            .await
    }

    /// A schedule as of its newest event.
    pub async fn read_schedule(
        &self,
        schedule: &ScheduleId,
    ) -> Result<Option<ScheduleRecord>, Fault> {
        let stream = StreamId::of_schedule(schedule);
        let found = self.read_machine(&self.inner.schedules, &stream).await?;
        Ok(found.and_then(|schedule| schedule.record().cloned()))
    }

    /// Before anything is decided on it: a flow gets what is in the log.
    pub(crate) fn redact_schedule_command(&self, command: &mut ScheduleCommand) {
        let (ScheduleCommand::Create { definition, .. }
        | ScheduleCommand::Configure { definition, .. }
        | ScheduleCommand::Update { definition, .. }) = command
        else {
            return;
        };
        let redactor = &self.inner.config.redactor;
        if let Some(input) = &mut definition.input {
            redactor.redact_value(input);
        }
        if let Some(metadata) = &mut definition.metadata {
            for value in metadata.values_mut() {
                redactor.redact_value(value);
            }
        }
    }

    /// Takes the schedules of all agents' files over: new and changed ones begin, those that are gone end.
    pub async fn sync_schedules(&self) -> Result<(), Fault> {
        let Some(conversations) = self.conversations().cloned() else {
            return Ok(());
        };
        let owner = Owner {
            tenant: TenantId::new(CONFIGURED_TENANT),
            workspace: None,
            principal: None,
        };
        let mut wanted = BTreeSet::new();
        let mut unreadable = BTreeSet::new();
        for summary in conversations.agents().summaries() {
            let agent_id = AgentId::from(summary.id.as_str());
            let Some(agent) = conversations.agents().agent(&agent_id) else {
                // Its files are being mended: what it had goes on.
                unreadable.insert(agent_id);
                continue;
            };
            for (key, definition) in &agent.schedules {
                let id = ScheduleId::from(format!("cfg:{agent_id}:{key}"));
                let command = ScheduleCommand::Configure {
                    agent_id: Some(agent_id.clone()),
                    owner: owner.clone(),
                    definition: Box::new(definition.clone()),
                    fingerprint: fingerprint(definition),
                };
                let configured = self.submit_to_schedule(&id, command).await;
                configured.map_err(as_fault)?.ok();
                wanted.insert(id);
            }
        }
        self.end_removed_schedules(&owner.tenant, &wanted, &unreadable)
            .await
    }

    async fn end_removed_schedules(
        &self,
        tenant: &TenantId,
        wanted: &BTreeSet<ScheduleId>,
        unreadable: &BTreeSet<AgentId>,
    ) -> Result<(), Fault> {
        let filter = ScheduleFilter {
            is_configured: true,
            ..ScheduleFilter::default()
        };
        let mut after = None;
        loop {
            let page = ListingPage { after, limit: PAGE };
            let listing = self.store().list_schedules(tenant, &filter, &page).await?;
            let Some(listing) = listing else {
                return Ok(());
            };
            for row in &listing.rows {
                let is_over = matches!(
                    row.status,
                    ScheduleStatus::Canceled | ScheduleStatus::Completed
                );
                let agent = row.agent.as_ref();
                let is_kept = wanted.contains(&row.schedule_id)
                    || agent.is_some_and(|agent| unreadable.contains(agent));
                if !is_over && !is_kept {
                    let command = ScheduleCommand::Unconfigure;
                    let ended = self.submit_to_schedule(&row.schedule_id, command).await;
                    ended.map_err(as_fault)?.ok();
                }
            }
            match listing.next {
                None => return Ok(()),
                next => after = next,
            }
        }
    }

    /// Follows changes of agents' files until the host stops.
    pub(crate) async fn keep_schedules_configured(self) {
        let Some(mut changes) = self.conversations().and_then(|c| c.agents().changes()) else {
            return;
        };
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            if let Err(fault) = self.sync_schedules().await {
                tracing::error!(error = %fault, "schedules of agents' files cannot be taken over");
            }
        }
    }

    /// Carries out a tool call about the schedules of a session's user. `key` is the identity of the call.
    pub(super) async fn manage_schedule(
        &self,
        conversations: &Conversations,
        session: &ChatSession,
        key: &EffectId,
        call: &ScheduleToolCall,
    ) -> Result<Result<Value, CodeError>, Fault> {
        let start = session.start();
        let Some(agent) = conversations.agents().agent(&start.agent_id) else {
            return Ok(Err(error("failed", "the agent cannot be used now")));
        };
        let of_user = OfUser {
            runtime: self,
            session,
            agent,
        };
        match call.operation {
            ScheduleToolOperation::Create => of_user.create(key, &call.args).await,
            ScheduleToolOperation::Update => of_user.update(&call.args).await,
            ScheduleToolOperation::Cancel => of_user.cancel(&call.args).await,
            ScheduleToolOperation::List => of_user.list(&call.args).await,
        }
    }
}

/// The schedules of the user of one session. Nobody else's are touched.
struct OfUser<'a> {
    runtime: &'a Runtime,
    session: &'a ChatSession,
    agent: Arc<AgentSpec>,
}

type Answered = Result<Result<Value, CodeError>, Fault>;

impl OfUser<'_> {
    fn user(&self) -> &str {
        &self.session.start().user.external_user_id
    }

    fn filter(&self) -> ScheduleFilter {
        let start = self.session.start();
        ScheduleFilter {
            workspace: start.owner.workspace.clone(),
            agent: Some(start.agent_id.clone()),
            target_kind: Some("user".to_owned()),
            user_external_id: Some(self.user().to_owned()),
            ..ScheduleFilter::default()
        }
    }

    fn definition(&self, mut fields: Object) -> Result<ScheduleDefinition, CodeError> {
        let target = json!({"kind": "user", "userExternalId": self.user()});
        fields.insert("target".to_owned(), target);
        let now = self.runtime.clock().now();
        let read = read_schedule(&Value::Object(fields), &self.agent, now);
        read.map_err(|problems| {
            let problems = problems.iter();
            let texts = problems.map(|problem| format!("{} {}", problem.path, problem.message));
            error("invalid_args", texts.collect::<Vec<_>>().join("; "))
        })
    }

    async fn create(&self, key: &EffectId, args: &Object) -> Answered {
        let id = id_of_call(key);
        let definition = match self.definition(args.clone()) {
            Ok(definition) => definition,
            Err(error) => return Ok(Err(error)),
        };
        let active = ScheduleFilter {
            status: Some(ScheduleStatus::Active),
            ..self.filter()
        };
        let listed = self.records(&active).await?;
        if listed.len() >= MAX_OF_USER && !listed.iter().any(|record| record.id == id) {
            let message = format!("the user has {MAX_OF_USER} active schedules");
            return Ok(Err(error("failed", message)));
        }
        let start = self.session.start();
        let command = ScheduleCommand::Create {
            agent_id: start.agent_id.clone(),
            owner: start.owner.clone(),
            definition: Box::new(definition),
            created_by: ScheduleOrigin {
                plane: SchedulePlane::Tool,
                actor_id: None,
                user_id: Some(start.user.id.to_string()),
            },
            actor: None,
        };
        self.submit(&id, command).await
    }

    async fn update(&self, args: &Object) -> Answered {
        let record = match self.own(args).await? {
            Ok(record) => record,
            Err(error) => return Ok(Err(error)),
        };
        let mut fields = written_schedule(&record.definition);
        let changes = args.iter().filter(|(name, _)| *name != "scheduleId");
        fields.extend(changes.map(|(name, value)| (name.clone(), value.clone())));
        let definition = match self.definition(fields) {
            Ok(definition) => definition,
            Err(error) => return Ok(Err(error)),
        };
        let command = ScheduleCommand::Update {
            expected: None,
            definition: Box::new(definition),
            actor: None,
        };
        self.submit(&record.id, command).await
    }

    async fn cancel(&self, args: &Object) -> Answered {
        let record = match self.own(args).await? {
            Ok(record) => record,
            Err(error) => return Ok(Err(error)),
        };
        let command = ScheduleCommand::Cancel {
            expected: None,
            actor: None,
            reason: "user".to_owned(),
        };
        self.submit(&record.id, command).await
    }

    async fn list(&self, args: &Object) -> Answered {
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let status = match text("status") {
            None => None,
            Some(name) => match ScheduleStatus::parse(name) {
                None => return Ok(Err(error("invalid_args", "there is no such status"))),
                status => status,
            },
        };
        let filter = ScheduleFilter {
            flow: text("flowId").map(FlowId::from),
            status,
            ..self.filter()
        };
        let records = self.records(&filter).await?;
        let schedules: Vec<Value> = records.iter().map(shown).collect();
        Ok(Ok(json!({ "schedules": schedules })))
    }

    async fn records(&self, filter: &ScheduleFilter) -> Result<Vec<ScheduleRecord>, Fault> {
        let page = ListingPage {
            after: None,
            limit: MAX_OF_USER,
        };
        let tenant = &self.session.start().owner.tenant;
        let listing = self.runtime.store();
        let listing = listing.list_schedules(tenant, filter, &page).await?;
        let rows = listing.map(|listing| listing.rows).unwrap_or_default();
        let records = rows.iter().map(|row| serde_json::from_str(&row.body));
        let records: Result<_, _> = records.collect();
        records.map_err(|error| Fault::permanent("corrupt", format!("a schedule: {error}")))
    }

    /// The schedule that the arguments name, if it is the user's.
    async fn own(&self, args: &Object) -> Result<Result<ScheduleRecord, CodeError>, Fault> {
        let Some(id) = args.get("scheduleId").and_then(Value::as_str) else {
            return Ok(Err(error("invalid_args", "scheduleId is required")));
        };
        let found = self.runtime.read_schedule(&ScheduleId::from(id)).await?;
        let Some(record) = found else {
            return Ok(Err(error("not_found", "there is no such schedule")));
        };
        let start = self.session.start();
        let user = record.definition.target.user();
        let is_own = user.is_some_and(|user| user.user_external_id == self.user())
            && record.agent_id.as_ref() == Some(&start.agent_id)
            && Partition::from(&record.owner) == Partition::from(&start.owner);
        Ok(match is_own {
            true => Ok(record),
            false => Err(error("scope_denied", "the schedule is somebody else's")),
        })
    }

    async fn submit(&self, id: &ScheduleId, command: ScheduleCommand) -> Answered {
        let reply = self.runtime.submit_to_schedule(id, command).await;
        Ok(match reply.map_err(as_fault)? {
            Ok(record) => Ok(shown(&record)),
            Err(refusal) => Err(error("failed", refusal.to_string())),
        })
    }
}

/// A schedule as its user's tools show it: without a target.
fn shown(record: &ScheduleRecord) -> Value {
    let mut fields = written_schedule(&record.definition);
    fields.remove("target");
    let own = [
        ("id", json!(record.id)),
        ("status", json!(record.status)),
        ("version", json!(record.version)),
        (
            "nextRunAt",
            json!(record.next_run_at.map(|at| at.rfc3339())),
        ),
    ];
    fields.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(fields)
}

/// A repeated call makes the same schedule.
fn id_of_call(key: &EffectId) -> ScheduleId {
    ScheduleId::from(format!(
        "sch-{}",
        hex_of(&format!("tandem:schedule:v1\0{key}"))
    ))
}

fn fingerprint(definition: &ScheduleDefinition) -> String {
    hex_of(&serde_json::to_string(definition).expect("a definition is plain data"))
}

fn hex_of(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest[..16].iter().map(|b| format!("{b:02x}")).collect()
}

fn error(code: &str, message: impl Into<String>) -> CodeError {
    CodeError {
        code: code.to_owned(),
        message: message.into(),
    }
}

fn as_fault(error: SubmitError) -> Fault {
    match error {
        SubmitError::Fault(fault) => fault,
        other => Fault::permanent("internal", other.to_string()),
    }
}
