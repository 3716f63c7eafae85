//! Runs of workflows that start by the clock: schedules follow the triggers of documents, and an occurrence starts a run.
//!
//! Invariants:
//! - A registration and the schedules of its triggers change in one commit.
//! - The run of an occurrence, and the occurrence as one that took place, are one commit. The id of the run follows from
//!   the occurrence, so there is never a second one.

use crate::audit_actions::AuditAction;
use crate::conversation::CONFIGURED_TENANT;
use crate::decision_input::DecisionInput;
use crate::driven_machine::CommandMeta;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::registry::registration_guard;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::transact::TransactionParts;
use crate::transaction::Transaction;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::definition::scheduled_trigger_hashes;
use tandem_engine::run::{Decision, Refusal};
use tandem_engine::schedule::{ActiveRun, Schedule};
use tandem_engine::{Definition, Problem, scheduled_run_id, workflow_schedule_id};
use tandem_record::conversation::{
    ScheduleCommand, ScheduleRecord, ScheduleStatus, ScheduleWork, ScheduledOutcome,
    ScheduledRunStart, WorkflowTarget,
};
use tandem_record::{
    Object, Owner, Partition, Principal, RunId, RunOptions, RunRequest, ScheduleRunId, StreamId,
    TenantId, Transport,
};
use tandem_store::{CommitGuard, Fault, RegisteredWorkflow};

/// Characters of the reason of an occurrence that started no run.
const MAX_REASON_CHARS: usize = 500;

/// What happens to the schedules of a document, in the order of their streams.
pub(crate) type ScheduleCommands = BTreeMap<StreamId, ScheduleCommand>;

/// Whose the schedules of a document are, and the runs they start. A document that every tenant sees starts runs of one
/// tenant only.
pub(crate) fn schedule_owner(owner: Option<&Partition>, principal: Option<Principal>) -> Owner {
    Owner {
        tenant: match owner {
            Some(owner) => owner.tenant.clone(),
            None => TenantId::new(CONFIGURED_TENANT),
        },
        workspace: owner.and_then(|owner| owner.workspace.clone()),
        principal,
    }
}

impl Runtime {
    /// What a new version of a document does to its schedules. A trigger that the version before had is not judged
    /// again: its moment may have passed since.
    pub(crate) fn schedules_of_document(
        &self,
        owner: Option<&Partition>,
        before: Option<&RegisteredWorkflow>,
        definition: &Definition,
    ) -> Result<ScheduleCommands, Vec<Problem>> {
        let now = self.clock().now();
        let before = before.map(trigger_hashes).unwrap_or_default();
        let (workflow, principal) = (definition.id(), self.actor.principal.clone());
        let mut commands = ScheduleCommands::new();
        let mut problems = Vec::new();
        for trigger in definition.scheduled_triggers() {
            let is_known = before.get(&trigger.id) == Some(&trigger.hash);
            problems.extend(trigger.problem_at(now).filter(|_| !is_known));
            let id = workflow_schedule_id(owner, workflow, &trigger.id);
            let target = WorkflowTarget {
                workflow_id: workflow.clone(),
                trigger_id: trigger.id.clone(),
                is_shared: owner.is_none(),
                registered_by: principal.clone(),
            };
            let mut command = ScheduleCommand::Configure {
                agent_id: None,
                owner: schedule_owner(owner, principal.clone()),
                fingerprint: trigger.hash.clone(),
                definition: Box::new(trigger.definition(target, now)),
            };
            self.redact_schedule_command(&mut command);
            commands.insert(StreamId::of_schedule(&id), command);
        }
        for trigger in before.keys() {
            let stream = StreamId::of_schedule(&workflow_schedule_id(owner, workflow, trigger));
            let ends = || ScheduleCommand::Unconfigure;
            commands.entry(stream).or_insert_with(ends);
        }
        match problems.is_empty() {
            true => Ok(commands),
            false => Err(problems),
        }
    }

    /// The schedules of a document that is registered no more.
    pub(crate) fn ended_schedules(
        owner: Option<&Partition>,
        registered: &RegisteredWorkflow,
    ) -> ScheduleCommands {
        let triggers = trigger_hashes(registered).into_keys();
        let stream = |trigger: String| {
            let id = workflow_schedule_id(owner, &registered.workflow, &trigger);
            StreamId::of_schedule(&id)
        };
        triggers
            .map(|trigger| (stream(trigger), ScheduleCommand::Unconfigure))
            .collect()
    }

    /// Starts the run of an occurrence, or records why there is none. The commit removes the entry.
    pub(crate) async fn start_scheduled_run(
        &self,
        driver: &Arc<MachineDriver<Schedule>>,
        work: &LeasedEffect<ScheduleWork>,
        occurrence: &ScheduleRunId,
    ) -> Result<(), Fault> {
        let schedule = self.read_machine(driver, &work.stream).await?;
        let Some(record) = schedule.as_ref().and_then(Schedule::record) else {
            return self.remove_outbox_entry(work).await;
        };
        let parts = StartOfRun {
            schedules: driver,
            work,
            occurrence,
        };
        self.inner
            .effects
            .start_recording(&work.effect.id, &work.lease);
        match Box::pin(self.transact(&record.owner.tenant, &parts)).await {
            Ok(()) => Ok(()),
            Err(error) => self.unrecorded(work, error).await,
        }
    }
}

fn trigger_hashes(registered: &RegisteredWorkflow) -> BTreeMap<String, String> {
    let document: Value = serde_json::from_str(&registered.document).unwrap_or_default();
    scheduled_trigger_hashes(&document)
}

impl Transaction<'_> {
    /// `false` when a schedule was changed meanwhile.
    pub(crate) async fn change_schedules(
        &mut self,
        commands: ScheduleCommands,
    ) -> Result<bool, Fault> {
        let schedules = Arc::clone(&self.runtime.inner.schedules);
        for (stream, command) in commands {
            let submitted = self.submit(&schedules, &stream, &command).await;
            if self.is_stale {
                return Ok(false);
            }
            match submitted {
                // One that never was cannot be ended.
                Ok(Ok(_) | Err(_)) => {}
                Err(SubmitError::Fault(fault)) => return Err(fault),
                Err(other) => return Err(Fault::permanent("internal", other.to_string())),
            }
        }
        Ok(true)
    }
}

/// The run of an occurrence begins, and its schedule knows it.
struct StartOfRun<'a> {
    schedules: &'a Arc<MachineDriver<Schedule>>,
    work: &'a LeasedEffect<ScheduleWork>,
    occurrence: &'a ScheduleRunId,
}

/// How an occurrence ends without a run of its own.
struct Unstarted {
    outcome: ScheduledOutcome,
    reason: String,
    /// The run that was started for it before.
    run: Option<RunId>,
}

impl Unstarted {
    fn skipped(reason: &str) -> Self {
        Self {
            outcome: ScheduledOutcome::Skipped,
            reason: reason.to_owned(),
            run: None,
        }
    }
}

/// A run that can be committed.
struct DecidedRun {
    id: RunId,
    decision: Decision,
    /// The version it pins is still the registered one.
    guard: CommitGuard,
}

impl TransactionParts for StartOfRun<'_> {
    type Reply = ();

    async fn submit_to(&self, transaction: &mut Transaction<'_>) -> Result<(), SubmitError> {
        transaction.complete(self.work);
        let runtime = transaction.runtime;
        let schedule = runtime.read_machine(self.schedules, &self.work.stream);
        let schedule = schedule.await?;
        let found = schedule.as_ref().and_then(|schedule| {
            let (record, run) = (schedule.record()?, schedule.run(self.occurrence)?);
            Some((record, run, record.definition.target.workflow()?))
        });
        let mut start = ScheduledRunStart {
            run_id: self.occurrence.clone(),
            outcome: ScheduledOutcome::Success,
            reason: None,
            workflow_run_id: None,
        };
        match found {
            // It is over, and there is nothing to record.
            None => {}
            Some((record, run, target)) => {
                match Box::pin(decide_run(runtime, record, run, target)).await? {
                    Ok(decided) => {
                        start.workflow_run_id = Some(decided.id.clone());
                        add_run(transaction, decided).await?;
                    }
                    Err(unstarted) => {
                        start.outcome = unstarted.outcome;
                        start.reason = Some(unstarted.reason);
                        start.workflow_run_id = unstarted.run;
                    }
                }
            }
        }
        let command = ScheduleCommand::NoteRun(Box::new(start));
        transaction
            .submit(self.schedules, &self.work.stream, &command)
            .await?
            .ok();
        Ok(())
    }
}

async fn add_run(
    transaction: &mut Transaction<'_>,
    decided: DecidedRun,
) -> Result<(), SubmitError> {
    let runtime = transaction.runtime;
    let runs = &runtime.inner.runs;
    let slot = runs.cache.lock(&StreamId::of_run(&decided.id)).await;
    transaction.require(decided.guard);
    let meta = CommandMeta {
        audit_action: Some(AuditAction::creation(&runtime.actor)),
        ..CommandMeta::default()
    };
    transaction
        .add(runs, slot, None, decided.decision, meta)
        .await
}

/// The first decision of the run of an occurrence, about the version that is registered now.
async fn decide_run(
    runtime: &Runtime,
    record: &ScheduleRecord,
    occurrence: &ActiveRun,
    target: &WorkflowTarget,
) -> Result<Result<DecidedRun, Unstarted>, SubmitError> {
    if record.status == ScheduleStatus::Canceled {
        return Ok(Err(Unstarted::skipped("schedule_canceled")));
    }
    let (workflow, at) = (&target.workflow_id, occurrence.scheduled_for);
    let id = scheduled_run_id(&record.id, workflow, &target.trigger_id, at);
    let stream = StreamId::of_run(&id);
    let earlier = runtime.read_machine(&runtime.inner.runs, &stream).await?;
    if earlier.is_some() {
        return Ok(Err(Unstarted {
            run: Some(id),
            ..Unstarted::skipped("already_started")
        }));
    }
    let owner = Partition::from(&record.owner);
    let registered = runtime.workflow(&owner, workflow).await?;
    // The tenant may have put a document of its own in place of the one that everybody sees.
    let registered = registered.filter(|registered| {
        registered.shared == target.is_shared && registered.workspace == owner.workspace
    });
    let Some(registered) = registered else {
        return Ok(Err(Unstarted::skipped("workflow_replaced")));
    };
    let definitions = &runtime.inner.definitions;
    let definition = definitions
        .by_hash(&**runtime.store(), &registered.hash)
        .await?;
    let memory_start = runtime.store().memory_position().await?;
    let mut request = scheduled_request(record, occurrence, target);
    request.memory = Some(request.new_memory(memory_start));
    let input = DecisionInput::Creation {
        definition,
        run_id: id.clone(),
        request: Cow::Owned(request),
        cause: None,
    };
    let document_of = (!target.is_shared).then_some(&owner);
    match runtime.decide_with_lookups(&owner, &input).await {
        Ok(decision) => Ok(Ok(DecidedRun {
            id,
            decision,
            guard: registration_guard(document_of, workflow, Some(registered)),
        })),
        Err(SubmitError::Refused(refusal)) => Ok(Err(Unstarted {
            outcome: ScheduledOutcome::Failed,
            reason: reason_of(&runtime.redacted_refusal(refusal)),
            run: None,
        })),
        Err(other) => Err(other),
    }
}

/// Why a run may not start, with the code that a caller would get.
fn reason_of(refusal: &Refusal) -> String {
    let code = match refusal {
        Refusal::CapabilityRequired { .. } => "capability_required",
        _ => "validation_error",
    };
    let reason = format!("{code}: {refusal}");
    reason.chars().take(MAX_REASON_CHARS).collect()
}

fn scheduled_request(
    record: &ScheduleRecord,
    occurrence: &ActiveRun,
    target: &WorkflowTarget,
) -> RunRequest {
    let trigger = json!({
        "scheduledFor": occurrence.scheduled_for.rfc3339(),
        "triggerId": target.trigger_id,
    });
    let inputs = match &occurrence.definition.input {
        Some(Value::Object(inputs)) => inputs.clone(),
        _ => Object::new(),
    };
    RunRequest {
        owner: Owner {
            principal: target.registered_by.clone(),
            ..record.owner.clone()
        },
        inputs,
        erased_defaults: Vec::new(),
        untrusted_inputs: Vec::new(),
        sensitive_inputs: Vec::new(),
        options: RunOptions {
            metadata: Some(Object::from_iter([("triggerData".to_owned(), trigger)])),
            ..RunOptions::default()
        },
        scope_id: None,
        callback_url: None,
        callback_may_answer: false,
        parent: None,
        claimed_parent: None,
        waiting_session: None,
        conformance_role: false,
        execution_model: None,
        isolated_memory: false,
        transport: Transport::Rest,
        trace: None,
        memory: None,
        forked_from: None,
        forked_by: Vec::new(),
        levels_above: 0,
    }
}
