//! The workflow run as a machine of this runtime: its rows in the listing, the inbox, the memory
//! journal, the audit log and the webhook deliveries.

use crate::audit_actions::{self, AuditAction};
use crate::decision_input::DecisionInput;
use crate::definitions::DecisionLookups;
use crate::driven_machine::{DrivenMachine, ProjectedRows, Projection};
use crate::fold_stream::FoldedStream;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::memory_access;
use crate::questions;
use crate::run_effects::{RunOutcome, run_of};
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::worker_slots::lane_of;
use std::borrow::Cow;
use std::sync::Arc;
use tandem_engine::run::{self, Decision, Limits, Run, WorkMeter};
use tandem_record::{
    Actor, Command, Effect, EffectKind, ErrorInfo, OrderKey, Partition, Reply, StreamId, TenantId,
    TimerKey, TimerName, Timestamp,
};
use tandem_store::{Commit, Fault, Lane, NewEvent, RunRow};

impl DrivenMachine for Run {
    const STREAM_PREFIX: &'static str = "run:";
    const SNAPSHOT_FORMAT: u32 = 3;

    type Settings = ();
    type Outcome = RunOutcome;

    fn limits<'a>(runtime: &'a Runtime, (): &'a ()) -> &'a Limits {
        runtime.limits()
    }

    async fn load(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<FoldedStream<Self>>, Fault> {
        runtime.fold(&run_of(stream)).await
    }

    async fn tenant_of(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<TenantId>, Fault> {
        let stored = runtime.store().run_of_any_tenant(&run_of(stream)).await?;
        Ok(stored.map(|stored| stored.row.tenant))
    }

    fn unstarted(_: &StreamId) -> Option<Self> {
        None
    }

    async fn decide_with_lookups(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        current: &Self,
        command: &Command,
    ) -> Result<Decision, SubmitError> {
        let owner = Partition::from(&current.request().owner);
        let input = DecisionInput::Command {
            run: Cow::Borrowed(current),
            command: Cow::Borrowed(command),
        };
        runtime.decide_with_lookups(&owner, &input).await
    }

    /// The run fails.
    fn abandon(&self, runtime: &Runtime, why: &Fault) -> Option<Decision> {
        let error = ErrorInfo::new("run_too_large_to_store", why.message.clone());
        let (nothing, work) = (DecisionLookups::default(), WorkMeter::unlimited());
        let context = runtime.context(runtime.clock().now(), &nothing, &work);
        Some(run::abandon(self, error, &context))
    }

    fn redact_reply(runtime: &Runtime, reply: Reply) -> Reply {
        runtime.redacted_reply(reply)
    }

    fn audit_action(command: &Command, actor: &Actor) -> Option<AuditAction> {
        AuditAction::from_command(command, actor)
    }

    fn timer_name(key: &TimerKey) -> TimerName {
        let name = serde_json::to_string(key).expect("a timer key is plain JSON");
        TimerName::from(name)
    }

    fn timer_key(name: &TimerName) -> Option<TimerKey> {
        serde_json::from_str(name.as_str()).ok()
    }

    fn timer_command(key: TimerKey) -> Command {
        Command::FireTimer(key)
    }

    fn effect_name(effect: &EffectKind) -> &'static str {
        effect.name()
    }

    fn lane(&self, effect: &EffectKind) -> Lane {
        let request = self.request();
        lane_of(
            &request.owner.tenant,
            effect,
            request.callback_url.as_deref(),
        )
    }

    /// A flow is cancelled after it was started.
    fn order_key(&self, effect: &EffectKind) -> Option<OrderKey> {
        match effect {
            EffectKind::StartFlow { flow_run, .. } | EffectKind::CancelFlow { flow_run, .. } => {
                Some(OrderKey::new(format!("flow:{flow_run}")))
            }
            _ => None,
        }
    }

    fn refuse_dispatch(&self, _: &Effect) -> Option<Command> {
        None
    }

    async fn perform(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        work: &LeasedEffect,
    ) -> Result<RunOutcome, Fault> {
        runtime.perform_run_effect(work).await
    }

    async fn record_outcome(
        runtime: &Runtime,
        _: &Arc<MachineDriver<Self>>,
        work: &LeasedEffect,
        outcome: &RunOutcome,
    ) -> Result<(), Fault> {
        runtime.record_run_outcome(work, outcome).await
    }

    fn encode_events(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &mut Decision,
    ) -> Vec<NewEvent> {
        runtime.redacted_bodies(before, decision)
    }

    fn project(
        projection: &Projection<'_>,
        before: Option<&Self>,
        decision: &Decision,
        commit: &mut Commit,
    ) -> ProjectedRows {
        let runtime = projection.runtime;
        let now = runtime.clock().now();
        let questions = questions::changed_rows(before, &decision.after, &decision.events);
        memory_access::project(decision, commit);
        commit.audit.extend(audit_actions::entries(
            projection.audit_action,
            decision,
            &questions,
            now,
        ));
        let has_question_changes = !questions.is_empty();
        commit.interrupts.extend(questions);
        let feed_rows = runtime.feed_rows(projection.subscriptions, decision, now);
        let is_published = !feed_rows.is_empty();
        commit.webhooks.extend(feed_rows);
        let row = row(&decision.after);
        let unchanged = before.is_some_and(|before| self::row(before) == row);
        ProjectedRows {
            run: (!unchanged).then_some(row),
            has_question_changes,
            is_published,
        }
    }

    fn announce(runtime: &Runtime, decision: &Decision, created: bool) {
        let inner = &runtime.inner;
        let last = decision.events.last();
        if last.is_some_and(|recorded| recorded.event.is_terminal()) {
            // Fails only when there are no receivers.
            let _ = inner.ended.send(decision.after.id().clone());
        }
        inner.metrics.observe(decision, created);
    }
}

/// The row of the listing follows from the run alone.
fn row(run: &Run) -> RunRow {
    let request = run.request();
    // A fork is as old as its creation, whatever the times of its copied events.
    let forked = request.forked_from.as_ref().map(|f| f.at);
    let real = |at: Timestamp| at.max(forked.unwrap_or(at));
    RunRow {
        run_id: run.id().clone(),
        tenant: request.owner.tenant.clone(),
        workspace: request.owner.workspace.clone(),
        workflow_id: run.definition().id().clone(),
        definition: run.definition().hash.clone(),
        status: run.status(),
        parent: request.parent.as_ref().map(|p| p.run_id.clone()),
        scope: request.scope_id.clone(),
        created_at: real(run.created_at()),
        ended_at: run.ended_at().map(real),
        error_code: run.error().map(|e| e.code.clone()),
    }
}
