//! The session as a machine of this runtime: how it is loaded, decided with the code of its flows, stored and
//! projected.

use super::agent_host::RebuildError;
use super::programs::{DecisionPrograms, DivergedProgram};
use super::session_machine::{SessionAnswer, SessionMachine};
use super::session_rows;
use super::session_work::SessionOutcome;
use super::settings::SessionSettings;
use crate::audit_actions::AuditAction;
use crate::codec::{self, EncodedEvent};
use crate::driven_machine::{DrivenMachine, ProjectedRows, Projection};
use crate::fold_stream::{FOLD_PAGE, FoldedStream};
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::transaction::Companion;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::AgentSpec;
use tandem_engine::flow_run::FlowRunCommand;
use tandem_engine::machine::{Decision, Machine};
use tandem_engine::session::{ChatSession, ProgramStep, SessionContext, SessionNeed};
use tandem_record::conversation::{
    ChatUserCommand, FlowRecord, SessionCommand, SessionEventBody as Body, SessionTimer,
    SessionWork, TurnCause,
};
use tandem_record::{
    Actor, AgentId, DefinitionHash, Effect, Event, OrderKey, Recorded, RunId, StreamId, TenantId,
    TimerName, Timestamp,
};
use tandem_schema::{MAX_WORK, Meter};
use tandem_store::{Commit, Fault, Lane, NewEvent, WorkClass};

impl DrivenMachine for SessionMachine {
    const STREAM_PREFIX: &'static str = "conv:";
    const SNAPSHOT_FORMAT: u32 = 1;
    const CHECKS_DISPATCH: bool = false;

    type Settings = SessionSettings;
    type Outcome = SessionOutcome;

    fn limits<'a>(_: &'a Runtime, _: &'a SessionSettings) -> &'a () {
        &()
    }

    async fn load(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<FoldedStream<Self>>, Fault> {
        let restore = |session: Option<ChatSession>| Some(Self::restored(stream, session?));
        let fresh = Self::unstarted(stream);
        let folded = runtime.fold_stream(stream, fresh, restore, None).await?;
        Ok(folded.machine.head().is_some().then_some(folded))
    }

    async fn tenant_of(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<TenantId>, Fault> {
        let folded = Self::load(runtime, driver, stream).await?;
        Ok(folded.map(|folded| folded.machine.tenant().clone()))
    }

    fn unstarted(stream: &StreamId) -> Option<Self> {
        Some(Self::unstarted(stream))
    }

    async fn decide_with_lookups(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        current: &Self,
        command: &SessionCommand,
    ) -> Result<Decision<Self>, SubmitError> {
        let settings = &driver.settings;
        let Some(agent_id) = agent_of(current, command) else {
            return Err(SubmitError::NotFound);
        };
        let agent = settings.agents.agent(agent_id);
        let agent = agent.ok_or_else(|| unavailable(agent_id))?;
        let mut programs = DecisionPrograms::new(&settings.agents);
        if let Some((run, steps)) = current.active_program() {
            programs.take_parked(&settings.programs, run, steps);
        }
        let mut rebuilt: Vec<RunId> = Vec::new();
        loop {
            let (decided, used) = decide(runtime, current, command, &agent, programs).await;
            match decided {
                Ok(mut decision) => {
                    decision.reply.programs = used.into_resumed();
                    return Ok(decision);
                }
                Err(SessionNeed::Program(run)) if rebuilt.contains(&run) => {
                    let message =
                        format!("a decision needs the program of {run}, which was loaded");
                    return Err(Fault::permanent("corrupt", message).into());
                }
                Err(SessionNeed::Program(run)) => rebuilt.push(run),
            }
            // Programs that the attempt resumed are not where the state is.
            programs = DecisionPrograms::new(&settings.agents);
            for run in &rebuilt {
                rebuild(runtime, settings, current.tenant(), run, &mut programs).await?;
            }
        }
    }

    fn abandon(&self, _: &Runtime, _: &Fault) -> Option<Decision<Self>> {
        None
    }

    /// A reply holds only what is in the log, without secrets.
    fn redact_reply(_: &Runtime, reply: SessionAnswer) -> SessionAnswer {
        reply
    }

    fn audit_action(_: &SessionCommand, _: &Actor) -> Option<AuditAction> {
        None
    }

    fn timer_name(key: &SessionTimer) -> TimerName {
        TimerName::from(serde_json::to_string(key).expect("a timer key is plain JSON"))
    }

    fn timer_key(name: &TimerName) -> Option<SessionTimer> {
        serde_json::from_str(name.as_str()).ok()
    }

    fn timer_command(key: SessionTimer) -> SessionCommand {
        SessionCommand::FireTimer(key)
    }

    fn effect_name(effect: &SessionWork) -> &'static str {
        effect.name()
    }

    fn lane(&self, effect: &SessionWork) -> Lane {
        let session = self.session().expect("only a session requests work");
        let agent = &session.start().agent_id;
        let (class, target) = match effect {
            SessionWork::Continue
            | SessionWork::StartWorkflow(_)
            | SessionWork::CancelWorkflow { .. }
            | SessionWork::ReportFlow(_)
            | SessionWork::ListEscalations => (WorkClass::Internal, String::new()),
            SessionWork::Transcribe { .. } => (WorkClass::Call, format!("speech:{agent}")),
            SessionWork::Code(_) => (WorkClass::Call, format!("code:{agent}")),
            SessionWork::Model { .. } => (WorkClass::Call, format!("chat:{agent}")),
            SessionWork::Tool { .. } => (WorkClass::Call, format!("tools:{agent}")),
            SessionWork::Send(request) => {
                (WorkClass::Delivery, format!("send:{}", request.transport))
            }
        };
        Lane {
            class,
            tenant: self.tenant().clone(),
            target,
        }
    }

    /// Texts to one address are sent in order.
    fn order_key(&self, effect: &SessionWork) -> Option<OrderKey> {
        let SessionWork::Send(request) = effect else {
            return None;
        };
        let agent = &self.session()?.start().agent_id;
        let (transport, to) = (&request.transport, &request.to);
        Some(OrderKey::new(format!("send:{agent}:{transport}:{to}")))
    }

    fn refuse_dispatch(&self, _: &Effect<SessionWork>) -> Option<SessionCommand> {
        None
    }

    async fn perform(
        runtime: &Runtime,
        driver: &MachineDriver<Self>,
        work: &LeasedEffect<SessionWork>,
    ) -> Result<SessionOutcome, Fault> {
        runtime.perform_session_work(driver, work).await
    }

    async fn record_outcome(
        runtime: &Runtime,
        driver: &Arc<MachineDriver<Self>>,
        work: &LeasedEffect<SessionWork>,
        outcome: &SessionOutcome,
    ) -> Result<(), Fault> {
        runtime.record_session_work(driver, work, outcome).await
    }

    fn encode_events(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &mut Decision<Self>,
    ) -> Vec<NewEvent> {
        let redactor = &runtime.inner.config.redactor;
        let mut has_secrets = false;
        let mut encoded = Vec::with_capacity(decision.events.len());
        for recorded in &mut decision.events {
            let mut texts = redactor.texts();
            let body = texts.serialize(&EncodedEvent::new(recorded));
            if !redactor.needs_redaction(&body, &texts) {
                let at = recorded.at;
                encoded.push(NewEvent { at, body });
                continue;
            }
            has_secrets |= redact_event(runtime, recorded);
            encoded.push(codec::encode_event(recorded));
        }
        if has_secrets {
            // Memory and log must agree.
            let stream = decision.after.stream();
            let mut after = before.cloned();
            let folded = after.get_or_insert_with(|| Self::unstarted(&stream));
            decision
                .events
                .iter()
                .for_each(|event| folded.evolve(event));
            decision.after = folded.clone();
        }
        encoded
    }

    /// Journals of flow runs, and what the user has to know: a changed profile, the end of the session.
    fn companions(
        driver: &Arc<MachineDriver<Self>>,
        decision: &mut Decision<Self>,
    ) -> Vec<Companion> {
        let mut companions: Vec<Companion> = Vec::new();
        let mut journals: BTreeMap<RunId, Vec<FlowRecord>> = BTreeMap::new();
        for (run, record) in std::mem::take(&mut decision.reply.journal) {
            journals.entry(run).or_default().push(record);
        }
        let at = decision
            .events
            .last()
            .map_or(Timestamp(0), |event| event.at);
        for (run, records) in journals {
            let runs = Arc::clone(&driver.settings.flow_runs);
            companions.push(Box::new(move |transaction| {
                Box::pin(async move {
                    let stream = StreamId::of_run(&run);
                    let command = FlowRunCommand::Append { at, records };
                    transaction.submit(&runs, &stream, &command).await?;
                    Ok(())
                })
            }));
        }
        let changes = decision.events.iter();
        let changes = changes.filter_map(|event| match event_body(event) {
            Body::ProfileChanged(change) => Some(change.clone()),
            _ => None,
        });
        let changes: Vec<_> = changes.collect();
        if let Some(session) = decision.after.session() {
            for change in changes {
                let users = Arc::clone(&driver.settings.users);
                let stream = StreamId::of_chat_user(&session.start().user.id);
                companions.push(Box::new(move |transaction| {
                    Box::pin(async move {
                        let command = ChatUserCommand::ChangeProfile(change);
                        transaction.submit(&users, &stream, &command).await?;
                        Ok(())
                    })
                }));
            }
        }
        let ended = |event: &Recorded<_>| matches!(event_body(event), Body::SessionEnded { .. });
        if decision.events.iter().any(ended)
            && let Some(session) = decision.after.session()
        {
            let users = Arc::clone(&driver.settings.users);
            let stream = StreamId::of_chat_user(&session.start().user.id);
            let session = session.id().clone();
            companions.push(Box::new(move |transaction| {
                Box::pin(async move {
                    let command = ChatUserCommand::CloseSession { session };
                    transaction.submit(&users, &stream, &command).await?;
                    Ok(())
                })
            }));
        }
        companions
    }

    fn project(
        projection: &Projection<'_>,
        before: Option<&Self>,
        decision: &Decision<Self>,
        commit: &mut Commit,
    ) -> ProjectedRows {
        if !is_claim(decision) {
            projection.runtime.inner.crash.reach("before_commit");
        }
        session_rows::project(projection, before, decision, commit)
    }

    fn announce(runtime: &Runtime, decision: &Decision<Self>, _created: bool) {
        let crash = &runtime.inner.crash;
        match is_claim(decision) {
            true => crash.reach("after_claim"),
            false => crash.reach("after_commit"),
        }
        if let Some(conversations) = &runtime.inner.config.conversations {
            let programs = &conversations.sessions.settings.programs;
            let active = decision.after.active_program();
            decision.reply.programs.park(programs, active);
        }
    }
}

fn event_body(event: &Recorded<tandem_record::conversation::SessionEvent>) -> &Body {
    &event.event.body
}

/// Whether the decision only accepts a message.
fn is_claim(decision: &Decision<SessionMachine>) -> bool {
    let received = |event| {
        matches!(
            event_body(event),
            Body::MessageReceived { .. }
                | Body::TurnQueued {
                    cause: TurnCause::AdminCommand { .. },
                }
        )
    };
    decision.events.iter().any(received)
}

fn agent_of<'a>(current: &'a SessionMachine, command: &'a SessionCommand) -> Option<&'a AgentId> {
    match (current.session(), command) {
        (Some(session), _) => Some(&session.start().agent_id),
        (None, SessionCommand::Start { start, .. } | SessionCommand::Open { start }) => {
            Some(&start.agent_id)
        }
        (None, _) => None,
    }
}

fn unavailable(agent: &AgentId) -> Fault {
    let message = format!("the agent {agent} is not loaded; see its errors and mend its files");
    Fault::retryable("agent_unavailable", message)
}

/// Decides on a thread that may block if code of a flow may run.
async fn decide(
    runtime: &Runtime,
    current: &SessionMachine,
    command: &SessionCommand,
    agent: &Arc<AgentSpec>,
    programs: DecisionPrograms,
) -> (
    Result<Decision<SessionMachine>, SessionNeed>,
    DecisionPrograms,
) {
    let now = runtime.clock().now();
    let may_run_code = !agent.flows.is_empty()
        && !matches!(
            command,
            SessionCommand::Start { .. }
                | SessionCommand::Open { .. }
                | SessionCommand::Receive { .. }
                | SessionCommand::RunCommand { .. }
                | SessionCommand::RecordAuthorization(_)
        );
    let decide = move |current: &SessionMachine,
                       command: &SessionCommand,
                       agent: &AgentSpec,
                       programs: DecisionPrograms| {
        let meter = Meter::with_limit(MAX_WORK);
        let programs: RefCell<DecisionPrograms> = RefCell::new(programs);
        let context = SessionContext {
            now,
            agent,
            programs: &programs,
            work: &meter,
        };
        let decided = current.decide(command, &context);
        (decided, programs.into_inner())
    };
    if !may_run_code {
        return decide(current, command, agent, programs);
    }
    let tenant = current.tenant().clone();
    let permit = runtime.inner.decision_work.acquire(Some(&tenant)).await;
    let (current, command, agent) = (current.clone(), command.clone(), Arc::clone(agent));
    permit
        .run(move || decide(&current, &command, &agent, programs))
        .await
}

/// Loads the program of a run from its stored code and journal.
async fn rebuild(
    runtime: &Runtime,
    settings: &SessionSettings,
    tenant: &TenantId,
    run: &RunId,
    programs: &mut DecisionPrograms,
) -> Result<(), Fault> {
    let journal = runtime.flow_journal(run).await?;
    let version = journal.iter().find_map(|record| match &record.event {
        FlowRecord::Started(start) => Some(start.version.clone()),
        _ => None,
    });
    let Some(version) = version else {
        let message = format!("the journal of {run} has no beginning");
        return Err(Fault::permanent("corrupt", message));
    };
    let source = runtime
        .store()
        .definition(&DefinitionHash::from(version))
        .await?;
    let agents = Arc::clone(&settings.agents);
    let permit = runtime.inner.decision_work.acquire(Some(tenant)).await;
    let rebuilt = permit
        .run(move || agents.rebuild_program(source.as_deref(), &journal))
        .await;
    let program = match rebuilt {
        Ok(program) => program,
        Err(RebuildError::Diverged {
            step,
            expected,
            actual,
        }) => Box::new(DivergedProgram(ProgramStep::Diverged {
            step,
            expected,
            actual,
        })),
        Err(RebuildError::Failed(failure)) => {
            Box::new(DivergedProgram(ProgramStep::Failed(failure)))
        }
    };
    programs.load(run.clone(), program);
    Ok(())
}

/// Removes secrets from an event. Its shape cannot change: only texts are replaced.
fn redact_event(
    runtime: &Runtime,
    recorded: &mut Recorded<tandem_record::conversation::SessionEvent>,
) -> bool {
    let mut value = serde_json::to_value(&recorded.event).expect("events are plain data");
    if !runtime.inner.config.redactor.redact_value(&mut value) {
        return false;
    }
    match serde_json::from_value(value) {
        Ok(event) => {
            recorded.event = event;
            true
        }
        Err(error) => {
            tracing::error!(%error, "a redacted event cannot be read; it is stored as it was");
            false
        }
    }
}

impl Runtime {
    /// The journal of a flow run, from its beginning.
    pub async fn flow_journal(&self, run: &RunId) -> Result<Vec<Recorded<FlowRecord>>, Fault> {
        let (stream, mut after) = (StreamId::of_run(run), None);
        let mut journal = Vec::new();
        loop {
            let page = self.store().event_page(&stream, after, FOLD_PAGE).await?;
            let Some(last) = page.events.last() else {
                return Ok(journal);
            };
            after = Some(last.seq);
            for stored in &page.events {
                let recorded: Recorded<Event> = codec::decode(stored)?;
                if let Event::Flow(record) = recorded.event {
                    journal.push(Recorded {
                        seq: recorded.seq,
                        at: recorded.at,
                        cause: recorded.cause,
                        event: *record,
                    });
                }
            }
        }
    }
}
