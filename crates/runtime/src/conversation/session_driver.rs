//! The session as a machine of this runtime: how it is loaded, decided with the code of its flows, stored and
//! projected.

use super::network;
use super::programs::DecisionPrograms;
use super::session_audit::decision_entries;
use super::session_machine::SessionMachine;
use super::session_rows;
use super::session_work::SessionOutcome;
use super::settings::SessionSettings;
use super::stored_program::rebuild;
use crate::driven_machine::{DrivenMachine, ProjectedRows, Projection};
use crate::fold_stream::FoldedStream;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::redact_decision::encode_redacted;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::transaction::Companion;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use tandem_engine::agent::AgentSpec;
use tandem_engine::flow_run::FlowRunCommand;
use tandem_engine::machine::{Decision, Machine};
use tandem_engine::session::{ChatSession, SessionContext, SessionNeed};
use tandem_record::conversation::{
    AdminRequest, AgentMode, ChatUserCommand, NoticeRequest, SendRequest, SessionCommand,
    SessionEventBody as Body, SessionTimer, SessionWork, TurnCause,
};
use tandem_record::{AgentId, Effect, OrderKey, Recorded, RunId, StreamId, TimerName, Timestamp};
use tandem_schema::{MAX_WORK, Meter};
use tandem_store::{Commit, Fault, Lane, NewEvent, WorkClass};

/// The code of the fault when an agent has no good version.
pub(super) const AGENT_UNAVAILABLE: &str = "agent_unavailable";

impl DrivenMachine for SessionMachine {
    const STREAM_PREFIX: &'static str = "conv:";
    const SNAPSHOT_FORMAT: u32 = 3;

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
        let restore = |session: Option<Arc<ChatSession>>| Some(Self::restored(stream, session?));
        let fresh = Self::unstarted(stream);
        let folded = runtime.fold_stream(stream, fresh, restore, None).await?;
        Ok(folded.machine.head().is_some().then_some(folded))
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
        let mut programs = DecisionPrograms::new(settings, current.active_program());
        let mut rebuilt: Vec<RunId> = Vec::new();
        let mut command = Cow::Borrowed(command);
        loop {
            let (decided, used) = decide(runtime, current, &command, &agent, programs).await;
            let run = match decided {
                Ok(mut decision) => {
                    if used.has_filtered() {
                        runtime.inner.crash.reach("after_hook");
                    }
                    decision.reply.programs = used.into_resumed();
                    return Ok(decision);
                }
                Err(SessionNeed::Program(run)) => run,
            };
            if let SessionCommand::ReceiveAndBegin { message } = &*command {
                // A message is durable before anything that takes long happens for it.
                let message = message.clone();
                command = Cow::Owned(SessionCommand::Receive { message });
            } else if rebuilt.contains(&run) {
                let message = format!("a decision needs the program of {run}, which was loaded");
                return Err(Fault::permanent("corrupt", message).into());
            } else {
                rebuilt.push(run);
            }
            // Programs that the attempt resumed are not where the state is.
            programs = DecisionPrograms::new(settings, None);
            for run in &rebuilt {
                rebuild(runtime, settings, run, &mut programs).await?;
            }
        }
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
            | SessionWork::AnswerWorkflow(_)
            | SessionWork::ReportFlow(_)
            | SessionWork::ManageSchedule(_)
            | SessionWork::ReportSchedule(_)
            | SessionWork::ListEscalations => (WorkClass::Internal, String::new()),
            SessionWork::Transcribe { .. } => (WorkClass::Call, format!("speech:{agent}")),
            SessionWork::Code(_) => (WorkClass::Call, format!("code:{agent}")),
            SessionWork::Model { .. } => (WorkClass::Call, format!("chat:{agent}")),
            SessionWork::Tool { .. } => (WorkClass::Call, format!("tools:{agent}")),
            SessionWork::Send(SendRequest { transport, .. })
            | SessionWork::Notify(NoticeRequest { transport, .. }) => {
                (WorkClass::Delivery, format!("send:{transport}"))
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

    fn checks_dispatch(effect: &SessionWork) -> bool {
        matches!(effect, SessionWork::Send(_))
    }

    /// A text of the agent is not sent once a person has taken over (Z-91). One that is final is not sent again: the
    /// commit that said so may have been reported as failed.
    fn refuse_dispatch(&self, effect: &Effect<SessionWork>) -> Option<SessionCommand> {
        let is_refused = self.session()?.may_not_be_sent(&effect.id);
        is_refused.then(|| SessionCommand::WithholdText {
            effect: effect.id.clone(),
        })
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
        let events = &mut decision.events;
        let (encoded, has_secrets) =
            encode_redacted(redactor, events, |event| redact_event(runtime, event));
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
            // What is sent and called is what the log says.
            for effect in &mut decision.effects {
                redact_data(runtime, &mut effect.kind);
            }
        }
        encoded
    }

    /// Journals of flow runs, and what the user has to know: a changed profile, the end of the session.
    fn companions(
        driver: &Arc<MachineDriver<Self>>,
        decision: &mut Decision<Self>,
    ) -> Vec<Companion> {
        // Before the journals: a run is read as the decider saw it.
        let mut companions = decision_entries(&driver.settings, decision);
        let journals = std::mem::take(&mut decision.reply.journal);
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
        runtime.inner.metrics.conversations.observe(decision);
        if decision.events.iter().any(silences) {
            runtime.inner.pieces.silence(&decision.after.stream());
        }
        if let Some(conversations) = &runtime.inner.config.conversations {
            let settings = &conversations.sessions.settings;
            if let Some(session) = decision.after.session()
                && has_flow_events(&decision.events)
                && settings.is_strict_for(session)
            {
                settings.strict_checks.note(session.id(), &decision.events);
            }
            let programs = &settings.programs;
            let active = decision.after.active_program();
            decision.reply.programs.park(programs, active);
            network::show_signs(&conversations.sessions.settings, decision);
        }
    }
}

fn event_body(event: &Recorded<tandem_record::conversation::SessionEvent>) -> &Body {
    &event.event.body
}

/// Whether a flow may have run in the decision.
fn has_flow_events(events: &[Recorded<tandem_record::conversation::SessionEvent>]) -> bool {
    events.iter().any(|event| event.event.flow.is_some())
}

/// Whether the agent does not write to the user any more.
fn silences(event: &Recorded<tandem_record::conversation::SessionEvent>) -> bool {
    match event_body(event) {
        Body::LiveTakeoverStarted { .. } => true,
        Body::ModeChanged { mode } => *mode != AgentMode::Auto,
        _ => false,
    }
}

/// Whether the decision only accepts a message.
fn is_claim(decision: &Decision<SessionMachine>) -> bool {
    let received = |event| {
        matches!(
            event_body(event),
            Body::MessageReceived { .. }
                | Body::TurnQueued {
                    cause: TurnCause::AdminCommand { .. } | TurnCause::ProxyInput { .. },
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
    Fault::retryable(AGENT_UNAVAILABLE, message)
}

/// Decides on a thread that may block if code of a flow may run.
pub(super) async fn decide(
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
            command.plain(),
            SessionCommand::Start { .. }
                | SessionCommand::Open { .. }
                | SessionCommand::Receive { .. }
                | SessionCommand::RunCommand { .. }
                | SessionCommand::ReceiveProxyInput { .. }
                | SessionCommand::RecordAuthorization(_)
                | SessionCommand::RecordExternalReply { .. }
                | SessionCommand::WithholdText { .. }
                | SessionCommand::Act {
                    request: AdminRequest::TakeOver
                        | AdminRequest::SendTakeoverMessage { .. }
                        | AdminRequest::HandBack { .. },
                    ..
                }
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
    let of = current.session().map(|session| &session.start().agent_id);
    let work = &runtime.inner.decision_work;
    let permit = work.acquire_for(Some(&tenant), of).await;
    let (current, command, agent) = (current.clone(), command.clone(), Arc::clone(agent));
    permit
        .run(move || decide(&current, &command, &agent, programs))
        .await
}

fn redact_event(
    runtime: &Runtime,
    recorded: &mut Recorded<tandem_record::conversation::SessionEvent>,
) -> bool {
    redact_data(runtime, &mut recorded.event)
}

/// Removes secrets from data. Its shape cannot change: only texts are replaced.
fn redact_data<T: Serialize + DeserializeOwned>(runtime: &Runtime, data: &mut T) -> bool {
    let mut value = serde_json::to_value(&*data).expect("it is plain data");
    if !runtime.inner.config.redactor.redact_value(&mut value) {
        return false;
    }
    match serde_json::from_value(value) {
        Ok(clean) => {
            *data = clean;
            true
        }
        Err(error) => {
            tracing::error!(%error, "redacted data cannot be read; it is stored as it was");
            false
        }
    }
}
