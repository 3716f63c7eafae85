//! The flow run as a machine of this runtime. Its session decides; this stores the journal and its rows.

use super::agent_host::AgentHost;
use crate::driven_machine::{DrivenMachine, ProjectedRows, Projection};
use crate::fold_stream::FoldedStream;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::questions::{self, QuestionSource};
use crate::redact_decision::encode_redacted;
use crate::run_effects::run_of;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::worker_slots::internal_lane;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use tandem_engine::flow_run::{
    FlowRun, FlowRunCommand, FlowRunContext, FlowRunState, NoFlowRunEffect,
};
use tandem_engine::machine::{Decision, Machine};
use tandem_record::{
    ClosedInterrupt, DefinitionHash, InterruptId, InterruptView, Owner, RunId, SessionId, StreamId,
    TenantId, TimerName, Timestamp, WorkflowId,
};
use tandem_store::{AuditDraft, Commit, DocumentRecord, Fault, Lane, NewEvent, RunRow};

impl DrivenMachine for FlowRun {
    const STREAM_PREFIX: &'static str = "run:flow-";
    const SNAPSHOT_FORMAT: u32 = 1;

    type Settings = Arc<dyn AgentHost>;
    type Outcome = Infallible;

    fn limits<'a>(_: &'a Runtime, _: &'a Arc<dyn AgentHost>) -> &'a () {
        &()
    }

    async fn load(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<FoldedStream<Self>>, Fault> {
        let restore = |state: FlowRunState| Some(Self::restored(run_of(stream), state));
        let fresh = Self::unstarted(run_of(stream));
        let folded = runtime.fold_stream(stream, fresh, restore, None).await?;
        Ok(folded.machine.head().is_some().then_some(folded))
    }

    async fn tenant_of(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<TenantId>, Fault> {
        let stored = runtime.store().run_of_any_tenant(&run_of(stream)).await?;
        Ok(stored.map(|stored| stored.row.tenant))
    }

    fn unstarted(stream: &StreamId) -> Option<Self> {
        Some(Self::unstarted(run_of(stream)))
    }

    async fn decide_with_lookups(
        _: &Runtime,
        _: &MachineDriver<Self>,
        current: &Self,
        command: &FlowRunCommand,
    ) -> Result<Decision<Self>, SubmitError> {
        let context = FlowRunContext { cause: None };
        let decided = current.decide(command, &context);
        decided.map_err(|refusal| {
            let message = format!("{}: {refusal}", current.id());
            Fault::permanent("corrupt", message).into()
        })
    }

    fn timer_name(key: &Infallible) -> TimerName {
        match *key {}
    }

    /// A flow run has no timers: its session does.
    fn timer_key(_: &TimerName) -> Option<Infallible> {
        None
    }

    fn timer_command(key: Infallible) -> FlowRunCommand {
        match key {}
    }

    fn effect_name(effect: &NoFlowRunEffect) -> &'static str {
        match *effect {}
    }

    fn lane(&self, _: &NoFlowRunEffect) -> Lane {
        internal_lane(self.tenant())
    }

    async fn perform(
        _: &Runtime,
        _: &MachineDriver<Self>,
        work: &LeasedEffect<NoFlowRunEffect>,
    ) -> Result<Infallible, Fault> {
        match work.effect.kind {}
    }

    async fn record_outcome(
        _: &Runtime,
        _: &Arc<MachineDriver<Self>>,
        _: &LeasedEffect<NoFlowRunEffect>,
        outcome: &Infallible,
    ) -> Result<(), Fault> {
        match *outcome {}
    }

    /// Removes secrets. What the code was handed was cleaned before; this covers texts of its own.
    fn encode_events(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &mut Decision<Self>,
    ) -> Vec<NewEvent> {
        let redactor = &runtime.inner.config.redactor;
        let events = &mut decision.events;
        let (encoded, has_secrets) = encode_redacted(redactor, events, |recorded| {
            redactor.redact(recorded.event.user_data())
        });
        if has_secrets {
            let fresh = || Self::unstarted(decision.after.id().clone());
            let mut after = before.cloned().unwrap_or_else(fresh);
            decision.events.iter().for_each(|event| after.evolve(event));
            decision.after = after;
        }
        encoded
    }

    fn project(
        projection: &Projection<'_>,
        before: Option<&Self>,
        decision: &Decision<Self>,
        commit: &mut Commit,
    ) -> ProjectedRows {
        let after = &decision.after;
        let is_new = before.is_none_or(|before| before.head().is_none());
        if is_new {
            let code = stored_code(projection.runtime, after);
            commit.documents.extend(code);
            commit.audit.extend(fork_entry(projection.runtime, after));
        }
        let rows = questions::changed_rows(before, after, &decision.events);
        let has_question_changes = !rows.is_empty();
        commit.interrupts.extend(rows);
        let row = row(after);
        let unchanged = before.is_some_and(|before| self::row(before) == row);
        ProjectedRows {
            run: row.filter(|_| !unchanged),
            has_question_changes,
            is_published: false,
        }
    }

    fn announce(runtime: &Runtime, decision: &Decision<Self>, _: bool) {
        let last = decision.events.last();
        if last.is_some_and(|recorded| recorded.event.is_terminal()) {
            // Fails only when there are no receivers.
            let _ = runtime.inner.ended.send(decision.after.id().clone());
        }
    }
}

impl QuestionSource for FlowRun {
    fn run_id(&self) -> &RunId {
        self.id()
    }

    fn owner(&self) -> &Owner {
        let start = self.start();
        &start.expect("only a run that began asks").owner
    }

    fn workflow_id(&self) -> WorkflowId {
        self.workflow_id()
    }

    fn session_id(&self) -> Option<&SessionId> {
        self.start()?.session_id.as_ref()
    }

    fn ended_at(&self) -> Option<Timestamp> {
        self.ended_at()
    }

    fn open_questions(&self) -> Vec<InterruptView> {
        self.open_questions()
    }

    fn closed_question(&self, id: &InterruptId) -> Option<&ClosedInterrupt> {
        self.closed_question(id)
    }
}

/// The audit entry of a fork, as forks of workflow runs have one.
fn fork_entry(runtime: &Runtime, run: &FlowRun) -> Option<AuditDraft> {
    let start = run.start()?;
    let from = start.forked_from.as_ref()?;
    let details = [
        ("sourceRunId", json!(from.run_id)),
        ("fromSeq", json!(from.from_seq)),
        ("mode", json!(from.mode.as_str())),
    ];
    let details = details.into_iter();
    let details = details
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let (tenant, target) = (&start.owner.tenant, run.id().as_str());
    let draft = AuditDraft::new(
        from.at,
        Some(tenant),
        runtime.actor(),
        "run.fork",
        target,
        details,
    );
    Some(draft)
}

/// The code of the flow, stored by its hash: a restart or a deployment goes on with it (Z-214).
fn stored_code(runtime: &Runtime, run: &FlowRun) -> Option<DocumentRecord> {
    let start = run.start()?;
    let agents = runtime.conversations()?.agents();
    Some(DocumentRecord {
        hash: DefinitionHash::new(&start.version),
        document: agents.flow_source(&start.agent_id, &start.version)?,
    })
}

fn row(run: &FlowRun) -> Option<RunRow> {
    let start = run.start()?;
    let forked = start.forked_from.as_ref().map(|from| from.at);
    let real = |at: Timestamp| at.max(forked.unwrap_or(at));
    Some(RunRow {
        run_id: run.id().clone(),
        tenant: start.owner.tenant.clone(),
        workspace: start.owner.workspace.clone(),
        workflow_id: run.workflow_id(),
        definition: DefinitionHash::new(&start.version),
        status: run.status(),
        parent: start.parent.as_ref().map(|parent| parent.run_id.clone()),
        scope: None,
        // A fork is as old as its creation, whatever the times of its copied records.
        created_at: real(run.created_at()),
        ended_at: run.ended_at().map(real),
        error_code: run.error().map(|error| error.code.clone()),
    })
}
