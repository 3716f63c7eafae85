//! What networks deliver to the transports of agents: messages, and decisions about questions. The transport has
//! verified that it comes from the network; what whoever is named there may do is decided in `network_decisions.rs`.

use super::inbound::{DeliveredMessage, DeliveryStatus, InboundSource, NewInbound};
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::SessionView;
use tandem_record::{AgentId, Owner, Principal};
use tandem_runtime::Fault;
use tandem_runtime::conversation::{
    OVERLOADED, TransportMessage, TransportRefusal, TransportRequest,
};

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
