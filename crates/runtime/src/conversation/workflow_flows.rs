//! Flows that nodes of workflows start: finding or beginning the conversation, starting the flow in it once, cancelling
//! it, and telling the node how it ended.
//!
//! A workflow reaches conversations of its own tenant and workspace only.

use super::receive::{SessionBeginning, new_session};
use super::settings::Conversations;
use crate::leases::LeasedEffect;
use crate::run_effects::run_of;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::transact::TransactionParts;
use crate::transaction::Transaction;
use tandem_engine::agent::{AgentSpec, WEB_TRANSPORT};
use tandem_engine::chat_user::{AgentUser, user_id};
use tandem_engine::session::SessionRefusal;
use tandem_record::conversation::{
    ChatUser, ChatUserReply, FlowCall, FlowReport, FlowTarget, ParentNode, SessionCommand,
    SessionTimer,
};
use tandem_record::{Command, Owner, Partition, RunId, SessionId, StreamId};
use tandem_store::Fault;

/// The transport of agents that configure none.
const DEFAULT_TRANSPORT: &str = "loopback";

/// Why a flow does not begin.
pub(super) struct Unstarted {
    pub(super) code: &'static str,
    message: String,
}

impl Unstarted {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    fn of_refusal(refusal: &SessionRefusal) -> Self {
        let code = match refusal {
            SessionRefusal::UnknownFlow(_) => "flow_not_found",
            SessionRefusal::InvalidInput(_) => "invalid_input",
            SessionRefusal::FlowActive => "flow_active",
            SessionRefusal::Ended => "session_ended",
            _ => "flow_not_started",
        };
        Self::new(code, refusal.to_string())
    }

    fn report(&self, parent: ParentNode) -> Command {
        Command::ReportFlow(Box::new(FlowReport {
            parent,
            flow_run_id: None,
            status: "cancelled".to_owned(),
            reason: Some(self.code.to_owned()),
            message: Some(self.message.clone()),
            result: None,
            answers: std::collections::BTreeMap::new(),
        }))
    }
}

impl Runtime {
    /// Starts a flow for a node that still waits for it. The commit that starts it removes the entry.
    pub(crate) async fn start_flow_of_node(
        &self,
        work: &LeasedEffect,
        parent: ParentNode,
        call: &FlowCall,
    ) -> Result<(), Fault> {
        let run = self.read_machine(&self.inner.runs, &work.stream).await?;
        let flow_run = parent.flow_run_id.as_ref();
        let run = run.filter(|run| flow_run.is_some_and(|f| run.awaits_flow(&parent.node_id, f)));
        let Some(run) = run else {
            return self.remove_outbox_entry(work).await;
        };
        let owner = run.request().owner.clone();
        let session = match self.conversations().cloned() {
            Some(conversations) => {
                let found = self.session_for_flow(&conversations, &owner, call).await?;
                found.map(|session| (conversations, session))
            }
            None => Err(Unstarted::new("agent_not_found", "this host has no agents")),
        };
        let (conversations, session) = match session {
            Ok(found) => found,
            Err(why) => {
                let command = why.report(parent);
                return self
                    .submit_effect_result(work, &self.inner.runs, &work.stream, command)
                    .await;
            }
        };
        let parts = FlowOfNode {
            conversations: &conversations,
            session: &session,
            work,
            parent,
            call,
        };
        self.inner
            .effects
            .start_recording(&work.effect.id, &work.lease);
        match Box::pin(self.transact(&owner.tenant, &parts)).await {
            Ok(()) => Ok(()),
            Err(error) => self.unrecorded(work, error).await,
        }
    }

    /// The conversation a flow is held in, begun if it may be.
    pub(super) async fn session_for_flow(
        &self,
        conversations: &Conversations,
        owner: &Owner,
        call: &FlowCall,
    ) -> Result<Result<SessionId, Unstarted>, Fault> {
        let (agent_id, flow_id) = (&call.agent_id, &call.flow_id);
        let Some(agent) = conversations.agents().agent(agent_id) else {
            let summaries = conversations.agents().summaries();
            if summaries
                .iter()
                .any(|summary| summary.id == agent_id.as_str())
            {
                let message = format!("the agent {agent_id} is not loaded; mend its files");
                return Ok(Err(Unstarted::new("agent_unavailable", message)));
            }
            let message = format!("there is no agent {agent_id}");
            return Ok(Err(Unstarted::new("agent_not_found", message)));
        };
        if !agent.flows.contains_key(flow_id.as_str()) {
            let message = format!("agent {agent_id} has no flow {flow_id}");
            return Ok(Err(Unstarted::new("flow_not_found", message)));
        }
        let of = Partition::from(owner);
        match &call.target {
            FlowTarget::SessionId(session) => {
                let found = self.read_session(session).await?;
                // One of another tenant is as good as none.
                let found = found.filter(|found| {
                    let start = found.start();
                    Partition::from(&start.owner) == of && start.agent_id == *agent_id
                });
                Ok(match found {
                    None => Err(Unstarted::new(
                        "session_not_found",
                        format!("agent {agent_id} has no session {session}"),
                    )),
                    Some(found) if found.ended().is_some() => {
                        let message = format!("session {session} has ended");
                        Err(Unstarted::new("session_ended", message))
                    }
                    Some(_) => Ok(session.clone()),
                })
            }
            FlowTarget::UserExternalId(user) => {
                self.session_of_user(conversations, &agent, (owner, user), call)
                    .await
            }
        }
    }

    async fn session_of_user(
        &self,
        conversations: &Conversations,
        agent: &AgentSpec,
        (owner, external_id): (&Owner, &str),
        call: &FlowCall,
    ) -> Result<Result<SessionId, Unstarted>, Fault> {
        let user = user_id(&Partition::from(owner), &call.agent_id, external_id);
        let stream = StreamId::of_chat_user(&user);
        let known = self.read_machine(&conversations.users, &stream).await?;
        let active = known.as_ref().and_then(AgentUser::active_session);
        if let Some(session) = active {
            let current = self.read_session(session).await?;
            match current {
                Some(current) if current.is_idle(self.clock().now()) => {
                    let command = SessionCommand::FireTimer(SessionTimer::Idle);
                    let ended = self.submit_to_session(session, command).await;
                    ended.map_err(as_fault)?.ok();
                }
                Some(current) if current.ended().is_none() => return Ok(Ok(session.clone())),
                _ => {}
            }
        }
        if !call.allow_session_bootstrap {
            let message = format!("{external_id} has no active session with {}", call.agent_id);
            return Ok(Err(Unstarted::new("bootstrap_disabled", message)));
        }
        let contact = known.as_ref().and_then(AgentUser::contact);
        let reached_by = match contact {
            Some(contact) => Some((contact.transport.clone(), contact.address.clone())),
            None => transport_to_strangers(agent).map(|name| (name, external_id.to_owned())),
        };
        let Some((transport, address)) = reached_by else {
            let message = format!("no transport of {} reaches {external_id}", call.agent_id);
            return Ok(Err(Unstarted::new("user_not_reachable", message)));
        };
        let profile = known.as_ref().and_then(AgentUser::profile).cloned();
        let profile = profile.unwrap_or_else(|| ChatUser::stranger(user, external_id));
        let beginning = SessionBeginning {
            agent_id: &call.agent_id,
            owner,
            transport,
            address,
            user: profile,
            is_known: contact.is_some(),
        };
        let start = new_session(self, agent, beginning).await?;
        let opened = SessionWithoutMessage {
            conversations,
            start: &start,
            user_stream: &stream,
        };
        match Box::pin(self.transact(&owner.tenant, &opened)).await {
            Ok(()) => Ok(Ok(start.session_id.clone())),
            Err(SubmitError::NotFound) => {
                let message = format!("a session of {external_id} begins at the same time");
                Err(Fault::retryable("contended", message))
            }
            Err(error) => Err(as_fault(error)),
        }
    }

    /// Ends the flow of a node that does not wait any more, wherever it has come to.
    pub(crate) async fn cancel_flow_of_node(
        &self,
        work: &LeasedEffect,
        parent: ParentNode,
        flow_run: &RunId,
        call: &FlowCall,
    ) -> Result<(), Fault> {
        let Some(conversations) = self.conversations().cloned() else {
            return self.remove_outbox_entry(work).await;
        };
        let started = self.read_flow_run(flow_run).await?;
        let of_run = started
            .as_ref()
            .and_then(|run| run.start()?.session_id.clone());
        let session = match (of_run, &call.target) {
            (Some(session), _) => Some(session),
            (None, FlowTarget::SessionId(session)) => Some(session.clone()),
            (None, FlowTarget::UserExternalId(user)) => {
                let run = self.read_machine(&self.inner.runs, &work.stream).await?;
                let of = run.map(|run| Partition::from(&run.request().owner));
                match of {
                    None => None,
                    Some(of) => {
                        let user = user_id(&of, &call.agent_id, user);
                        let stream = StreamId::of_chat_user(&user);
                        let known = self.read_machine(&conversations.users, &stream).await?;
                        known.and_then(|known| known.active_session().cloned())
                    }
                }
            }
        };
        let current = match &session {
            Some(session) => self.read_session(session).await?,
            None => None,
        };
        let Some(current) = current.filter(|current| current.ended().is_none()) else {
            return self.remove_outbox_entry(work).await;
        };
        let stream = StreamId::of_session(current.id());
        let command = SessionCommand::CancelFlow { parent };
        self.submit_effect_result(work, &conversations.sessions, &stream, command)
            .await
    }
}

/// A flow begins in a session, or its node learns why not.
struct FlowOfNode<'a> {
    conversations: &'a Conversations,
    session: &'a SessionId,
    work: &'a LeasedEffect,
    parent: ParentNode,
    call: &'a FlowCall,
}

impl TransactionParts for FlowOfNode<'_> {
    type Reply = ();

    async fn submit_to(&self, transaction: &mut Transaction<'_>) -> Result<(), SubmitError> {
        transaction.complete(self.work);
        let stream = StreamId::of_session(self.session);
        let command = SessionCommand::StartFlow {
            flow_id: self.call.flow_id.clone(),
            input: self.call.input.clone(),
            parent: self.parent.clone(),
            on_active: self.call.on_active_flow,
        };
        let sessions = &self.conversations.sessions;
        let answer = transaction.submit(sessions, &stream, &command).await?;
        if let Err(refusal) = &answer.result {
            let command = Unstarted::of_refusal(refusal).report(self.parent.clone());
            let run = StreamId::of_run(&run_of(&self.work.stream));
            let runs = &transaction.runtime.inner.runs;
            transaction.submit(runs, &run, &command).await?;
        }
        Ok(())
    }
}

/// A session that the host begins.
pub(super) struct SessionWithoutMessage<'a> {
    pub(super) conversations: &'a Conversations,
    pub(super) start: &'a tandem_record::conversation::SessionStart,
    pub(super) user_stream: &'a StreamId,
}

impl TransactionParts for SessionWithoutMessage<'_> {
    type Reply = ();

    async fn submit_to(&self, transaction: &mut Transaction<'_>) -> Result<(), SubmitError> {
        let stream = StreamId::of_session(&self.start.session_id);
        let command = SessionCommand::Open {
            start: Box::new(self.start.clone()),
        };
        let sessions = &self.conversations.sessions;
        let answer = transaction.submit(sessions, &stream, &command).await?;
        answer.result.map_err(|_| SubmitError::NotFound)?;
        let users = &self.conversations.users;
        let command = super::receive::open_session(self.start);
        match transaction
            .submit(users, self.user_stream, &command)
            .await?
        {
            ChatUserReply::Done => Ok(()),
            ChatUserReply::HasSession(_) | ChatUserReply::Unknown => Err(SubmitError::NotFound),
        }
    }
}

/// The transport by which an agent writes to somebody it never met. Visitors of the web chat come by themselves.
fn transport_to_strangers(agent: &AgentSpec) -> Option<String> {
    if agent.transports.is_empty() {
        return Some(DEFAULT_TRANSPORT.to_owned());
    }
    let mut names = agent.transports.keys();
    names.find(|name| *name != WEB_TRANSPORT).cloned()
}

fn as_fault(error: SubmitError) -> Fault {
    match error {
        SubmitError::Fault(fault) => fault,
        other => Fault::permanent("internal", other.to_string()),
    }
}
