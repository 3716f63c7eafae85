//! Admins who write to bridges: which bridge a message of a desk is about, accepting their input, and the rows of
//! bridges.
//!
//! A text is accepted in the commit that claims its id for its bridge, so that it is relayed once however often it
//! arrives, and by whichever way (Z-109).

use super::receive::{MessageClaim, NewMessage, OVERLOADED, ReceivedMessage};
use super::session_machine::SessionAnswer;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::submit_stream::CommitRecord;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::{
    ChatSession, SessionRefusal, inbound, is_admin_command, stopped_bridge,
};
use tandem_record::conversation::{
    AdminActor, AuthorizationDecision, ProxyBridge, ProxyInput, ProxyInputSource, ProxyStatus,
    SessionCommand, SessionEvent, SessionEventBody as Body, SessionReply,
};
use tandem_record::{AgentId, EffectId, MessageId, Owner, ProxyId, Recorded, SessionId, StreamId};
use tandem_store::{
    ConversationChange, Desk, DeskSelection, Fault, IdempotencyKey, IdempotencyRecord, ProxyRow,
    StoredResponse,
};

/// How a bridge's texts are told from others by their ids.
const BRIDGE_PREFIX: &str = "pxy-";

/// A message that may come from a desk.
#[derive(Debug, Clone, Copy)]
pub struct DeskQuery<'a> {
    pub owner: &'a Owner,
    pub agent: &'a AgentId,
    pub transport: &'a str,
    pub from: &'a str,
    pub message_id: &'a MessageId,
    pub text: &'a str,
    /// The message it replies to.
    pub quoted_id: Option<&'a str>,
    /// A bridge relayed it to here.
    pub relayed: bool,
}

/// What a message is to the bridges of its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeskMessage {
    /// It does not come from a desk with a bridge.
    Other,
    Input {
        bridge: Box<ProxyRow>,
        /// Without the number that named the bridge.
        text: String,
        /// Nothing in the message says which bridge it is about: it is the only one.
        is_only: bool,
    },
    /// It may be about several bridges.
    Ambiguous,
    /// The bridge it is about was stopped.
    Ended,
    /// This host wrote it itself, or a bridge relayed it.
    Echo,
}

/// What became of input over the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceivedInput {
    Accepted(MessageClaim),
    /// The bridge had its id before.
    Duplicate,
}

impl DeskQuery<'_> {
    fn desk(&self) -> Desk {
        Desk {
            tenant: self.owner.tenant.clone(),
            workspace: self.owner.workspace.clone(),
            agent: self.agent.clone(),
            transport: self.transport.to_owned(),
            address: self.from.to_owned(),
        }
    }
}

/// Whether an address is a target of the agent: a desk's, not a user's.
pub fn is_target(agent: &AgentSpec, transport: &str, address: &str) -> bool {
    let mut targets = agent.hitl.targets.values();
    targets.any(|target| target.transport == transport && target.address == address)
}

fn is_active(row: &ProxyRow) -> bool {
    row.status == ProxyStatus::Active
}

/// `#1a2b3c text`: the number, and the text after it.
fn numbered(text: &str) -> Option<(String, &str)> {
    let named = text.trim_start().strip_prefix('#')?;
    let end = named
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(named.len());
    let (number, rest) = named.split_at(end);
    let is_number = number.len() == ProxyId::SHORT_CHARS;
    let rest = rest.strip_prefix([':', ',']).unwrap_or(rest);
    is_number.then(|| (number.to_ascii_lowercase(), rest.trim_start()))
}

impl Runtime {
    /// Which bridge a message is about: the one it quotes, else the one it names by its number, else the only active
    /// one of its sender (Z-110). While one is active its desk is no user of the agent (Z-111).
    pub async fn desk_message(
        &self,
        agent: &AgentSpec,
        query: &DeskQuery<'_>,
    ) -> Result<DeskMessage, Fault> {
        if !is_target(agent, query.transport, query.from) {
            return Ok(DeskMessage::Other);
        }
        let (store, desk) = (self.store(), query.desk());
        let of_message = |id: &str| DeskSelection::Message(id.to_owned());
        let own = of_message(query.message_id.as_str());
        if !store.proxies_of_desk(&desk, &own, 1).await?.is_empty() {
            return Ok(DeskMessage::Echo);
        }
        if is_admin_command(agent, query.text) {
            // It names its session itself, but for one that ends the only bridge there is.
            let needs_number = stopped_bridge(agent, query.text) == Some(None);
            let active = store.proxies_of_desk(&desk, &DeskSelection::Active, 2);
            return Ok(match needs_number && active.await?.len() > 1 {
                true => DeskMessage::Ambiguous,
                false => DeskMessage::Other,
            });
        }
        let input = |bridge: ProxyRow, text: &str, is_only: bool| match query.relayed {
            true => DeskMessage::Echo,
            false => DeskMessage::Input {
                bridge: Box::new(bridge),
                text: text.to_owned(),
                is_only,
            },
        };
        if let Some(quoted) = query.quoted_id {
            let found = store.proxies_of_desk(&desk, &of_message(quoted), 1).await?;
            match found.into_iter().next() {
                Some(row) if is_active(&row) => return Ok(input(row, query.text, false)),
                Some(_) => return Ok(DeskMessage::Ended),
                None => {}
            }
        }
        if let Some((number, text)) = numbered(query.text) {
            let named = DeskSelection::Short(number);
            let found = store.proxies_of_desk(&desk, &named, MAX_NAMED).await?;
            let is_known = !found.is_empty();
            let mut active = found.into_iter().filter(is_active);
            match (active.next(), active.next()) {
                (Some(row), None) => return Ok(input(row, text, false)),
                (Some(_), Some(_)) => return Ok(DeskMessage::Ambiguous),
                (None, _) if is_known => return Ok(DeskMessage::Ended),
                (None, _) => {}
            }
        }
        let active = DeskSelection::Active;
        let mut active = store.proxies_of_desk(&desk, &active, 2).await?.into_iter();
        Ok(match (active.next(), active.next()) {
            (None, _) => DeskMessage::Other,
            (Some(row), None) => input(row, query.text, true),
            (Some(_), Some(_)) => DeskMessage::Ambiguous,
        })
    }

    /// Accepts a message of a desk as input for a bridge. It is durable when this returns; its turn follows. `None`
    /// when the bridge was stopped meanwhile.
    pub async fn receive_desk_message(
        &self,
        mut new: NewMessage,
        bridge: &ProxyRow,
        mut text: String,
    ) -> Result<Option<ReceivedMessage>, SubmitError> {
        self.redact_message(&mut new.message);
        self.redact_in_place(&mut text);
        if let Some(duplicate) = self.claimed_before(&new).await? {
            return Ok(Some(duplicate));
        }
        let input = ProxyInput {
            id: new.message.message_id.clone(),
            text,
            raw: Some(inbound(&new.message)),
            source: ProxyInputSource::Desk {
                transport: new.transport.clone(),
                address: new.message.from.clone(),
            },
        };
        let claims = |claim: &MessageClaim| vec![new.claim_record(claim)];
        match self.submit_input(bridge, input, None, &claims).await {
            Ok(Ok(claim)) => Ok(Some(ReceivedMessage::Accepted(claim))),
            Ok(Err(SessionRefusal::Overloaded | SessionRefusal::ProxyFull)) => {
                let message = "too many messages of this desk wait";
                Err(Fault::retryable(OVERLOADED, message.to_owned()).into())
            }
            Ok(Err(_)) => Ok(None),
            Err(SubmitError::IdempotencyKeyUsed) => {
                let claimed = self.input_claim(bridge, &new.message.message_id).await?;
                Ok(claimed.map(ReceivedMessage::Duplicate))
            }
            Err(error) => Err(error),
        }
    }

    /// Accepts input over the API, of somebody with the right. What allows it is written with it.
    pub async fn receive_proxy_input(
        &self,
        bridge: &ProxyRow,
        right: (AdminActor, Box<AuthorizationDecision>),
        id: MessageId,
        mut text: String,
    ) -> Result<Result<ReceivedInput, SessionRefusal>, SubmitError> {
        self.redact_in_place(&mut text);
        if self.input_claim(bridge, &id).await?.is_some() {
            return Ok(Ok(ReceivedInput::Duplicate));
        }
        let (actor, decision) = right;
        let input = ProxyInput {
            id,
            text,
            raw: None,
            source: ProxyInputSource::Actor(actor),
        };
        let submitted = self.submit_input(bridge, input, Some(decision), &|_| Vec::new());
        match submitted.await {
            Ok(accepted) => Ok(accepted.map(ReceivedInput::Accepted)),
            Err(SubmitError::IdempotencyKeyUsed) => Ok(Ok(ReceivedInput::Duplicate)),
            Err(error) => Err(error),
        }
    }

    async fn submit_input(
        &self,
        bridge: &ProxyRow,
        input: ProxyInput,
        decision: Option<Box<AuthorizationDecision>>,
        claims: &(dyn Fn(&MessageClaim) -> Vec<IdempotencyRecord> + Send + Sync),
    ) -> Result<Result<MessageClaim, SessionRefusal>, SubmitError> {
        let conversations = self.conversations().ok_or(SubmitError::NotFound)?.clone();
        let claim = |turn: u64| MessageClaim {
            session_id: bridge.session_id.clone(),
            turn,
            of_other_session: true,
        };
        let of_bridge = IdempotencyRecord {
            key: input_key(bridge, &input.id),
            digest: String::new(),
            response: StoredResponse {
                status: 200,
                body: String::new(),
            },
            recorded_at: self.clock().now(),
            session: Some(bridge.session_id.clone()),
        };
        let records = |answer: &SessionAnswer| {
            let Ok(SessionReply::Accepted { turn }) = answer.result else {
                return Vec::new();
            };
            let claim = claim(turn);
            let mut of_bridge = of_bridge.clone();
            of_bridge.response.body = serde_json::to_string(&claim).expect("a claim is plain data");
            let all = [of_bridge].into_iter().chain(claims(&claim));
            all.map(CommitRecord::Response).collect()
        };
        let command = SessionCommand::ReceiveProxyInput {
            proxy: bridge.proxy_id.clone(),
            input: Box::new(input),
        };
        let command = match decision {
            Some(decision) => SessionCommand::Authorized {
                decision,
                command: Box::new(command),
            },
            None => command,
        };
        let stream = StreamId::of_session(&bridge.session_id);
        let sessions = &conversations.sessions;
        let answer = self.submit_command(sessions, &stream, command, Some(&records));
        Ok(match answer.await?.result {
            Ok(SessionReply::Accepted { turn }) => Ok(claim(turn)),
            Ok(_) => Err(SessionRefusal::ProxyStopped),
            Err(refusal) => Err(refusal),
        })
    }

    /// The turn of an input that the bridge has.
    async fn input_claim(
        &self,
        bridge: &ProxyRow,
        input: &MessageId,
    ) -> Result<Option<MessageClaim>, Fault> {
        let key = input_key(bridge, input);
        let Some(stored) = self.store().idempotency_record(&key).await? else {
            return Ok(None);
        };
        let claim = serde_json::from_str(&stored.response.body);
        claim.map(Some).map_err(|error| {
            Fault::permanent("corrupt", format!("a claim cannot be read: {error}"))
        })
    }

    /// The session of the bridge that `/proxy stop [#id]` is about, where its writer's desk says which, with the word
    /// that named it.
    pub(super) async fn bridge_of_command(
        &self,
        agent: &AgentSpec,
        new: &NewMessage,
    ) -> Result<Option<(SessionId, String)>, Fault> {
        let Some(word) = stopped_bridge(agent, &new.message.body) else {
            return Ok(None);
        };
        let selection = match word {
            None => DeskSelection::Active,
            Some(word) => match numbered(word) {
                Some((number, _)) => DeskSelection::Short(number),
                None => return Ok(None),
            },
        };
        let desk = Desk {
            tenant: new.owner.tenant.clone(),
            workspace: new.owner.workspace.clone(),
            agent: new.agent.clone(),
            transport: new.transport.clone(),
            address: new.message.from.clone(),
        };
        let found = self.store().proxies_of_desk(&desk, &selection, MAX_NAMED);
        let mut active = found.await?.into_iter().filter(is_active);
        Ok(match (active.next(), active.next()) {
            (Some(row), None) => Some((row.session_id, word.unwrap_or_default().to_owned())),
            _ => None,
        })
    }
}

/// Bridges with one number that are looked at.
const MAX_NAMED: usize = 50;

fn input_key(bridge: &ProxyRow, input: &MessageId) -> IdempotencyKey {
    IdempotencyKey::of_proxy_input(&bridge.tenant, &bridge.proxy_id, input)
}

/// The rows of bridges that change with a decision, and the messages that reached their desks.
pub(super) fn changed_rows(
    before: Option<&ChatSession>,
    after: &ChatSession,
    events: &[Recorded<SessionEvent>],
) -> Vec<ConversationChange> {
    let mut changes = Vec::new();
    let mut active = before.and_then(ChatSession::bridge).cloned();
    for event in events {
        match &event.event.body {
            Body::ProxyStarted { bridge, .. } => {
                changes.push(ConversationChange::PutProxy(proxy_row(after, bridge)));
                active = Some((**bridge).clone());
            }
            Body::ProxyStopped { proxy_id, reason } => {
                let stopped = active.take_if(|bridge| bridge.id == *proxy_id);
                changes.extend(stopped.map(|bridge| {
                    let bridge = ProxyBridge {
                        status: ProxyStatus::Stopped,
                        stopped_at: Some(event.at),
                        stop_reason: Some(reason.clone()),
                        ..bridge
                    };
                    ConversationChange::PutProxy(proxy_row(after, &bridge))
                }));
            }
            Body::ResponseSent {
                effect_id,
                provider_message_id: Some(message),
                ..
            } => {
                if let Some(proxy) = bridge_that_wrote(effect_id) {
                    let message = message.clone();
                    changes.push(ConversationChange::AddProxyMessage { proxy, message });
                }
            }
            _ => {}
        }
    }
    changes
}

/// The bridge that sent a text to its desk.
fn bridge_that_wrote(text: &EffectId) -> Option<ProxyId> {
    let (proxy, rest) = text.as_str().split_once(':')?;
    let is_to_desk = proxy.starts_with(BRIDGE_PREFIX) && !rest.starts_with("admin:");
    is_to_desk.then(|| ProxyId::from(proxy))
}

fn proxy_row(session: &ChatSession, bridge: &ProxyBridge) -> ProxyRow {
    let start = session.start();
    ProxyRow {
        proxy_id: bridge.id.clone(),
        session_id: start.session_id.clone(),
        tenant: start.owner.tenant.clone(),
        workspace: start.owner.workspace.clone(),
        agent: start.agent_id.clone(),
        user_external_id: start.user.external_user_id.clone(),
        transport: bridge.transport.clone(),
        address: bridge.address.clone(),
        status: bridge.status,
        started_at: bridge.started_at,
        body: serde_json::to_string(bridge).expect("a bridge is plain data"),
    }
}
