//! What networks deliver to the transports of agents: messages, and decisions about escalations. The transport has
//! verified that it comes from the network; what whoever is named there may do is decided here.

use super::escalations::EscalationFound;
use super::inbound::{DeliveredMessage, DeliveryStatus, InboundSource, NewInbound};
use super::manage::{ResolveEscalation, ResolveTarget};
use super::rights::AdminCall;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{ClosedEscalation, EscalationStatus, SessionView};
use tandem_record::{AgentId, Owner, Principal};
use tandem_runtime::Fault;
use tandem_runtime::conversation::{
    ChatSignal, NetworkDecision, OVERLOADED, SessionRefusal, ShownDecision, TransportMessage,
    TransportRefusal, TransportRequest,
};

const NOT_ALLOWED: &str = "You may not decide this.";

/// What became of a delivery.
pub struct NetworkAnswer {
    pub messages: Vec<DeliveredMessage>,
    /// The text that the network wants as an answer.
    pub text: Option<String>,
}

impl App {
    /// Delivers what a network sent to a transport of an agent: each message as the API delivers those of users, each
    /// decision as the API takes those of admins.
    pub async fn deliver_from_network(
        &self,
        agent: &AgentId,
        transport: &str,
        (headers, body): (&BTreeMap<String, String>, &[u8]),
        show_session: fn(&SessionView) -> Value,
    ) -> Result<NetworkAnswer, AppError> {
        let unknown = || AppError::NotFound(ResourceKind::Transport);
        let conversations = self.runtime().conversations().ok_or_else(unknown)?;
        let request = TransportRequest {
            headers,
            body,
            now: self.now(),
        };
        let read = conversations.agents().receive(agent, transport, &request);
        let delivery = read.map_err(refused)?;
        if let Some(decision) = &delivery.decision {
            let place = (agent, transport, &delivery.owner);
            self.decide_from_network(place, decision, show_session)
                .await?;
        }
        for reply in delivery.own_account {
            self.note_external_reply(agent, transport, &delivery.owner, reply)
                .await?;
        }
        let source = InboundSource {
            owner: delivery.owner,
            transport: transport.to_owned(),
            client_id: None,
            runtime: self.runtime().clone(),
        };
        let mut messages = Vec::new();
        for message in delivery.messages {
            let new = from_network(agent, message);
            match self.deliver(&source, new).await {
                // Those before it are duplicates then.
                Ok(delivered)
                    if delivery.redelivers && delivered.status == DeliveryStatus::Overloaded =>
                {
                    let message = "too many messages wait; deliver it again";
                    return Err(Fault::retryable(OVERLOADED, message.to_owned()).into());
                }
                Ok(delivered) => messages.push(delivered),
                // A message that will never be accepted must not hold up those behind it.
                Err(error) if delivery.redelivers && is_final(&error) => {
                    tracing::warn!(%agent, transport, %error, "a message of a network is not accepted");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(NetworkAnswer {
            messages,
            text: delivery.reply,
        })
    }

    /// Answers a network that asks whether a route is that of its transport.
    pub fn verify_network_address(
        &self,
        agent: &AgentId,
        transport: &str,
        query: &BTreeMap<String, String>,
    ) -> Result<String, AppError> {
        let unknown = || AppError::NotFound(ResourceKind::Transport);
        let conversations = self.runtime().conversations().ok_or_else(unknown)?;
        let answer = conversations
            .agents()
            .verify_address(agent, transport, query);
        answer.map_err(refused)
    }

    /// Whether a transport of an agent can be used: `Err` says what it lacks.
    pub fn transport_state(
        &self,
        caller: &Identity,
        agent: &AgentId,
        transport: &str,
    ) -> Result<Result<(), String>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let conversations = self.runtime().conversations();
        let state = conversations
            .and_then(|conversations| conversations.agents().transport_state(agent, transport));
        state.ok_or(AppError::NotFound(ResourceKind::Transport))
    }

    /// Takes a decision by the rights of whoever made it, and shows on the network what became of it. The denial of
    /// somebody unknown is recorded like every other.
    async fn decide_from_network(
        &self,
        (agent, transport, owner): (&AgentId, &str, &Owner),
        decision: &NetworkDecision,
        show_session: fn(&SessionView) -> Value,
    ) -> Result<(), AppError> {
        let caller = identity_of(agent, transport, owner);
        let call = AdminCall {
            caller: &caller,
            headers: BTreeMap::new(),
            show_session,
            chat: Some(ChatSignal {
                transport,
                address: &decision.by,
            }),
        };
        let found = self.escalation_of(&caller, &decision.escalation_id).await?;
        let (text, is_final) = match found.filter(|found| found.agent == *agent) {
            None => ("There is no such question.".to_owned(), true),
            Some(_) => {
                let given = ResolveEscalation {
                    approved: decision.approved,
                    message: None,
                    action_data: None,
                    resolved_by: None,
                };
                let target = ResolveTarget::Escalation(decision.escalation_id.clone());
                outcome_text(self.take_decision(&call, target, given).await)?
            }
        };
        let shown = ShownDecision {
            notice: decision.notice.clone(),
            by: decision.by.clone(),
            text,
            is_final,
        };
        if let Some(conversations) = self.runtime().conversations() {
            let agents = conversations.agents();
            agents.show_decision(agent, transport, shown);
        }
        Ok(())
    }
}

/// The transport as a caller: it reaches the conversations it belongs to, and has no rights of an admin.
pub(super) fn identity_of(agent: &AgentId, transport: &str, owner: &Owner) -> Identity {
    let name = format!("transport:{agent}/{transport}");
    Identity {
        agent: None,
        key_id: Arc::from(name.as_str()),
        principal: Principal::new(name),
        tenant: owner.tenant.clone(),
        workspace: owner.workspace.clone(),
        scopes: [Scope::ApprovalsRespond].into_iter().collect(),
        roles: Arc::from([]),
        test_key: false,
        expires_at: None,
    }
}

fn refused(refusal: TransportRefusal) -> AppError {
    match refusal {
        TransportRefusal::Unknown => AppError::NotFound(ResourceKind::Transport),
        TransportRefusal::NotReady => {
            let message = "the transport has no secret; see the log of the host";
            Fault::retryable("agent_unavailable", message.to_owned()).into()
        }
        TransportRefusal::Unauthenticated => AppError::InvalidSignature,
        TransportRefusal::Invalid(problem) => AppError::invalid("", problem),
    }
}

/// Whether the same message would be refused again.
fn is_final(error: &AppError) -> bool {
    matches!(error, AppError::Invalid(_))
}

/// What is shown of a decision, and whether the question is closed. A fault is none: the network is told to try again.
fn outcome_text(decided: Result<EscalationFound, AppError>) -> Result<(String, bool), AppError> {
    Ok(match decided {
        Ok(found) => {
            let record = found.record;
            match (&record.resolution, record.status) {
                (Some(done), _) => {
                    let outcome = if done.approved {
                        "Approved"
                    } else {
                        "Rejected"
                    };
                    (format!("{outcome} by {}.", done.resolved_by), true)
                }
                (None, EscalationStatus::Open) => {
                    let given = record.votes.len();
                    let needed = record.required_approvals;
                    (format!("{given} of {needed} approvals."), false)
                }
                (None, status) => (format!("The question is {}.", status.as_str()), true),
            }
        }
        Err(AppError::AdminDenied(_)) => (NOT_ALLOWED.to_owned(), false),
        Err(AppError::SessionRefused(SessionRefusal::NotAnApprover)) => {
            (NOT_ALLOWED.to_owned(), false)
        }
        Err(AppError::SessionRefused(SessionRefusal::AlreadyResolved(closed))) => {
            (closed_text(&closed), true)
        }
        Err(AppError::SessionRefused(SessionRefusal::Ended)) => {
            ("The conversation has ended.".to_owned(), true)
        }
        Err(error) if error.is_fault() => return Err(error),
        Err(error) => (format!("Not decided: {error}."), false),
    })
}

fn closed_text(closed: &ClosedEscalation) -> String {
    match &closed.decided_by {
        Some(by) => format!("Already {} by {by}.", closed.outcome),
        None => format!("The question is {}.", closed.outcome),
    }
}

fn from_network(agent: &AgentId, message: TransportMessage) -> NewInbound {
    NewInbound {
        agent: agent.clone(),
        message_id: message.message_id,
        from: message.from,
        body: message.body,
        kind: message.kind,
        display_name: message.display_name,
        media: message.media,
        quoted_id: message.quoted_id,
        relayed: message.relayed,
        sent_at: Some(message.sent_at),
        waits: false,
    }
}
