//! What admins do to sessions: resolve escalations, start and abort flows, end sessions. Each answers when
//! the turn it caused is committed.

use super::escalations::EscalationFound;
use super::rights::{AdminCall, GrantedRight, PrivilegedAction};
use super::submit_error;
use crate::app::App;
use crate::control::CancelledRun;
use crate::error::{AppError, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use serde_json::Value;
use std::time::Duration;
use tandem_access::Scope;
use tandem_record::conversation::{
    AdminActor, AdminRequest, AgentMode, DivergenceAction, EscalationDecision, SessionCommand,
    SessionEventBody as Body, SessionReply, SessionView, TurnCause,
};
use tandem_record::{EscalationId, FlowId, RunId, SessionId};
use tandem_runtime::conversation::SessionRefusal;
use tokio::time::Instant;

const TURN_WAIT: Duration = Duration::from_secs(60);
pub(super) const RESOLVE: &str = "hitl.escalation.resolve";
const MANAGE_FLOWS: &str = "flow.manage";

/// Which escalation is resolved (Z-151).
#[derive(Clone)]
pub enum ResolveTarget {
    Escalation(EscalationId),
    /// The open one of a session.
    Session(SessionId),
    /// One that has to be of this session.
    EscalationOf(SessionId, EscalationId),
}

/// A decision as an admin gave it.
pub struct ResolveEscalation {
    pub approved: bool,
    pub message: Option<String>,
    pub action_data: Option<Value>,
    /// Whom the caller names as the decider. A claim.
    pub resolved_by: Option<String>,
}

/// A flow that an admin started.
pub struct StartedFlow {
    pub run: RunId,
}

impl App {
    /// Resolves an escalation. The first decision wins; repeating it is harmless (Z-152).
    pub async fn resolve_escalation(
        &self,
        call: &AdminCall<'_>,
        target: ResolveTarget,
        decision: ResolveEscalation,
        idempotency: Idempotency<EscalationFound>,
    ) -> Result<Completion<EscalationFound>, AppError> {
        let resolved = self.resolve(call, target, decision).await?;
        self.complete(idempotency, resolved).await
    }

    /// Decides, and waits for the turn that follows.
    pub(super) async fn resolve(
        &self,
        call: &AdminCall<'_>,
        target: ResolveTarget,
        decision: ResolveEscalation,
    ) -> Result<EscalationFound, AppError> {
        let resolved = self.take_decision(call, target, decision).await?;
        let (session, id) = (&resolved.session, &resolved.record.id);
        self.wait_for_cause(
            session,
            |cause| matches!(cause, TurnCause::EscalationClosed { escalation } if escalation == id),
        )
        .await?;
        Ok(resolved)
    }

    /// Decides an escalation by the rights of the caller. The decision is durable when this returns; what follows from
    /// it is not waited for.
    pub(super) async fn take_decision(
        &self,
        call: &AdminCall<'_>,
        target: ResolveTarget,
        decision: ResolveEscalation,
    ) -> Result<EscalationFound, AppError> {
        call.caller.require_scope(Scope::ApprovalsRespond)?;
        let (session, escalation) = match target {
            ResolveTarget::Escalation(id) => {
                let found = self.find_escalation(call, &id).await?;
                (found.session, Some(id))
            }
            ResolveTarget::Session(session) => (session, None),
            ResolveTarget::EscalationOf(session, id) => {
                let found = self.find_escalation(call, &id).await?;
                if found.session != session {
                    let refusal = SessionRefusal::EscalationElsewhere;
                    return Err(AppError::SessionRefused(refusal));
                }
                (session, Some(id))
            }
        };
        let current = self.find_session(call.caller, &session).await?;
        let addressed = escalation.clone().or_else(|| {
            let attached = current.attached_escalation();
            attached.map(|escalation| escalation.id.clone())
        });
        let right = self
            .right_in_session(call, RESOLVE, &session, addressed.as_ref())
            .await?;
        let request = AdminRequest::Resolve {
            escalation,
            decision: EscalationDecision {
                approved: decision.approved,
                message: decision.message,
                action_data: decision.action_data,
                claimed_by: decision.resolved_by,
            },
        };
        let reply = self.act(call, &session, right, request).await?;
        let SessionReply::Escalation(record) = reply else {
            unreachable!("unexpected reply to a resolution: {reply:?}");
        };
        let start = current.start();
        Ok(EscalationFound {
            record: *record,
            session,
            agent: start.agent_id.clone(),
            user_external_id: start.user.external_user_id.clone(),
        })
    }

    /// Starts a flow in a session.
    pub async fn start_session_flow(
        &self,
        call: &AdminCall<'_>,
        session: SessionId,
        flow: FlowId,
        input: Option<Value>,
        idempotency: Idempotency<StartedFlow>,
    ) -> Result<Completion<StartedFlow>, AppError> {
        call.caller.require_scope(Scope::RunsCreate)?;
        let right = self
            .right_in_session(call, MANAGE_FLOWS, &session, None)
            .await?;
        let flow_id = flow.clone();
        let request = AdminRequest::StartFlow { flow_id, input };
        let reply = self.act(call, &session, right, request).await?;
        let SessionReply::Accepted { turn } = reply else {
            unreachable!("unexpected reply to a start: {reply:?}");
        };
        let runtime = self.runtime();
        let until = Instant::now() + TURN_WAIT;
        runtime.wait_for_turn(&session, turn, until).await?;
        let of_turn = runtime
            .newest_session_events(&session, |event| {
                event.event.turn == Some(turn)
                    && matches!(event.event.body, Body::TurnQueued { .. })
            })
            .await?;
        let started = of_turn.into_iter().find_map(|event| {
            let is_start = matches!(event.event.body, Body::FlowStarted { .. });
            let is_of_turn = event.event.turn == Some(turn);
            event.event.flow.filter(|_| is_start && is_of_turn)
        });
        // Another turn came first and started a flow of its own.
        let started = started.ok_or(AppError::SessionRefused(SessionRefusal::FlowActive))?;
        let run = started.flow_run_id;
        self.complete(idempotency, StartedFlow { run }).await
    }

    /// Ends the active flow of a session.
    pub async fn abort_session_flow(
        &self,
        call: &AdminCall<'_>,
        session: SessionId,
        idempotency: Idempotency<()>,
    ) -> Result<Completion<()>, AppError> {
        call.caller.require_scope(Scope::RunsCancel)?;
        let right = self
            .right_in_session(call, MANAGE_FLOWS, &session, None)
            .await?;
        self.act(call, &session, right, AdminRequest::AbortFlow)
            .await?;
        self.complete(idempotency, ()).await
    }

    /// Ends a session with everything that is open in it. An operation of the service: it takes the scope,
    /// not a right of the agent's rules.
    pub async fn end_session(
        &self,
        call: &AdminCall<'_>,
        session: SessionId,
        idempotency: Idempotency<SessionView>,
    ) -> Result<Completion<SessionView>, AppError> {
        call.caller.require_scope(Scope::RunsCancel)?;
        self.find_session(call.caller, &session).await?;
        let actor = AdminActor {
            id: call.caller.principal.to_string(),
            role: None,
            channel: "ui_api".to_owned(),
            metadata: None,
        };
        let request = AdminRequest::EndSession;
        let command = SessionCommand::Act { actor, request };
        self.put_to_session(call, &session, command).await??;
        let ended = self.find_session(call.caller, &session).await?;
        self.complete(idempotency, ended.view()).await
    }

    /// Sets who writes to the user of a session.
    pub async fn set_session_mode(
        &self,
        call: &AdminCall<'_>,
        session: SessionId,
        mode: AgentMode,
        idempotency: Idempotency<SessionView>,
    ) -> Result<Completion<SessionView>, AppError> {
        call.caller.require_scope(Scope::RunsCreate)?;
        let request = AdminRequest::SetMode { mode };
        self.act_and_wait(call, MANAGE_FLOWS, &session, request)
            .await?;
        let changed = self.find_session(call.caller, &session).await?;
        self.complete(idempotency, changed.view()).await
    }

    /// Decides about a flow run whose code no longer fits its journal.
    pub async fn settle_divergence(
        &self,
        call: &AdminCall<'_>,
        run: RunId,
        action: DivergenceAction,
        idempotency: Idempotency<SessionView>,
    ) -> Result<Completion<SessionView>, AppError> {
        call.caller.require_scope(Scope::RunsCancel)?;
        self.find_run(call.caller, &run).await?;
        let flow_run = self.runtime().read_flow_run(&run).await?;
        let start = flow_run.as_ref().and_then(|run| run.start());
        let session = start.and_then(|start| start.session_id.clone());
        let session = session.ok_or(AppError::NotFound(ResourceKind::Run))?;
        let request = AdminRequest::SettleDivergence { run, action };
        self.act_and_wait(call, MANAGE_FLOWS, &session, request)
            .await?;
        let changed = self.find_session(call.caller, &session).await?;
        self.complete(idempotency, changed.view()).await
    }

    /// Cancels the run of a flow: its conversation ends the flow.
    pub async fn cancel_flow_run(
        &self,
        call: &AdminCall<'_>,
        run: RunId,
        idempotency: Idempotency<CancelledRun>,
    ) -> Result<Completion<CancelledRun>, AppError> {
        call.caller.require_scope(Scope::RunsCancel)?;
        self.find_run(call.caller, &run).await?;
        let flow_run = self.runtime().read_flow_run(&run).await?;
        let flow_run = flow_run.ok_or(AppError::NotFound(ResourceKind::Run))?;
        let already_terminal = flow_run.ended_at().is_some();
        let session = flow_run.start().and_then(|start| start.session_id.clone());
        if let Some(session) = session.filter(|_| !already_terminal) {
            let current = self.find_session(call.caller, &session).await?;
            let is_active = current.flow().is_some_and(|flow| *flow.run_id() == run);
            let request = match is_active {
                true => AdminRequest::AbortFlow,
                false => AdminRequest::SettleDivergence {
                    run: run.clone(),
                    action: DivergenceAction::Abort,
                },
            };
            self.act_and_wait(call, MANAGE_FLOWS, &session, request)
                .await?;
        }
        let ended = self.runtime().read_flow_run(&run).await?;
        let status = ended.map_or(flow_run.status(), |ended| ended.status());
        let cancelled = CancelledRun {
            run,
            status,
            already_terminal,
        };
        self.complete(idempotency, cancelled).await
    }

    /// Checks a right, acts, and waits for the turn that follows.
    pub(super) async fn act_and_wait(
        &self,
        call: &AdminCall<'_>,
        action: &str,
        session: &SessionId,
        request: AdminRequest,
    ) -> Result<(), AppError> {
        let right = self.right_in_session(call, action, session, None).await?;
        if let SessionReply::Accepted { turn } = self.act(call, session, right, request).await? {
            let until = Instant::now() + TURN_WAIT;
            self.runtime().wait_for_turn(session, turn, until).await?;
        }
        Ok(())
    }

    /// Checks a right to read something of one session the caller may see.
    pub(super) async fn authorize_for_session(
        &self,
        call: &AdminCall<'_>,
        action: &str,
        session: &SessionId,
        escalation: Option<&EscalationId>,
    ) -> Result<(), AppError> {
        let right = self
            .right_in_session(call, action, session, escalation)
            .await?;
        self.record_in_session(session, right.decision).await
    }

    /// Checks a right to act in one session the caller may see.
    pub(super) async fn right_in_session(
        &self,
        call: &AdminCall<'_>,
        action: &str,
        session: &SessionId,
        escalation: Option<&EscalationId>,
    ) -> Result<GrantedRight, AppError> {
        let current = self.find_session(call.caller, session).await?;
        let shown = (call.show_session)(&current.view());
        let asked = PrivilegedAction {
            action,
            agent: &current.start().agent_id,
            session: Some((session, shown)),
            escalation,
        };
        self.check_right(call, &asked, None).await
    }

    /// Does what a right allows. One commit has both; where the session refuses, the right alone is recorded.
    pub(super) async fn act(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
        right: GrantedRight,
        request: AdminRequest,
    ) -> Result<SessionReply, AppError> {
        let command = right.allowing(request);
        let reply = self.put_to_session(call, session, command).await?;
        if reply.is_err() {
            self.record_in_session(session, right.decision).await?;
        }
        Ok(reply?)
    }

    async fn put_to_session(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
        command: SessionCommand,
    ) -> Result<Result<SessionReply, SessionRefusal>, AppError> {
        let runtime = self.runtime_for(call.caller);
        let reply = runtime.submit_to_session(session, command).await;
        reply.map_err(|error| submit_error(error, ResourceKind::Session))
    }

    /// Waits until the last turn of this cause is over, if there is one.
    async fn wait_for_cause(
        &self,
        session: &SessionId,
        is_cause: impl Fn(&TurnCause) -> bool,
    ) -> Result<(), AppError> {
        let runtime = self.runtime();
        let queued = |body: &Body| matches!(body, Body::TurnQueued { cause } if is_cause(cause));
        let events = runtime
            .newest_session_events(session, |event| {
                queued(&event.event.body)
                    || matches!(event.event.body, Body::EscalationResolved { .. })
            })
            .await?;
        let turn = events.iter().rev().find(|event| queued(&event.event.body));
        if let Some(turn) = turn.and_then(|event| event.event.turn) {
            let until = Instant::now() + TURN_WAIT;
            runtime.wait_for_turn(session, turn, until).await?;
        }
        Ok(())
    }
}
