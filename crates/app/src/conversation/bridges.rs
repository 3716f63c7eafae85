//! Bridges: listing them, what admins write for them, and stopping them.
//!
//! Over the API the right is checked before the id of an input is claimed, so that somebody else may send what was
//! denied. In the chat of a desk the turn of the message checks it, in the order of the messages.

use super::inbound::{DeliveredMessage, DeliveryStatus, InboundSource, NewInbound, message_id};
use super::rights::{AdminCall, BridgeRight, GrantedRight, PrivilegedAction};
use super::submit_error;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{
    AdminRequest, InboundMessage, ProxyBridge, ProxyStatus, SenderProfile, SessionReply,
};
use tandem_record::{AgentId, MessageId, ProxyId, SessionId};
use tandem_runtime::conversation::{
    AgentSpec, DeskMessage, DeskQuery, MessageClaim, NewMessage, OVERLOADED, ReceivedInput,
    ReceivedMessage,
};
use tandem_runtime::{ListingPage, ProxyFilter, ProxyRow, SubmitError};
use tokio::time::Instant;

const TURN_WAIT: Duration = Duration::from_secs(60);
pub(super) const VIEW: &str = "hitl.proxy.view";
pub(super) const INPUT: &str = "hitl.proxy.input";
pub(super) const STOP: &str = "hitl.proxy.stop";
const MAX_ID_CHARS: usize = 256;
const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_REASON_BYTES: usize = 500;

const AMBIGUOUS: &str = "Several conversations are open here. Reply to one of their messages, or begin with its \
    number, like #1a2b3c. Nothing was delivered.";
const EMPTY: &str = "The message has no text. Nothing was delivered.";
const ENDED: &str = "That conversation is over. Nothing was delivered.";

/// Which bridges are listed.
#[derive(Clone, Debug, Default)]
pub struct ProxyQuery {
    pub status: Option<ProxyStatus>,
    pub agent: Option<AgentId>,
    pub session: Option<SessionId>,
}

/// A bridge with the conversation it belongs to.
#[derive(Clone, Debug)]
pub struct ProxyFound {
    pub bridge: ProxyBridge,
    pub session: SessionId,
    pub agent: AgentId,
    pub user_external_id: String,
}

/// What became of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyInputStatus {
    Accepted,
    Duplicate,
}

/// What stopping a bridge did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedBridge {
    pub proxy: ProxyId,
    pub session: SessionId,
    /// It was active until now.
    pub stopped: bool,
}

impl ProxyFound {
    pub(super) fn from_row(row: &ProxyRow) -> Option<Self> {
        Some(Self {
            bridge: serde_json::from_str(&row.body).ok()?,
            session: row.session_id.clone(),
            agent: row.agent.clone(),
            user_external_id: row.user_external_id.clone(),
        })
    }
}

impl App {
    /// Bridges that the admin may view, newest first.
    pub async fn list_proxies(
        &self,
        call: &AdminCall<'_>,
        query: ProxyQuery,
        page: &ListingPage<ProxyId>,
    ) -> Result<(Vec<ProxyFound>, Option<ProxyId>), AppError> {
        let caller = call.caller;
        caller.require_scope(Scope::RunsRead)?;
        let named = query.agent.clone();
        if query
            .agent
            .as_ref()
            .is_some_and(|agent| !caller.reaches_agent(agent))
        {
            return Err(AppError::NotFound(ResourceKind::Agent));
        }
        let filter = ProxyFilter {
            workspace: caller.workspace.clone(),
            status: query.status,
            agent: query.agent.or_else(|| caller.agent.clone()),
            session: query.session,
        };
        let store = self.runtime().store();
        let listing = store.list_proxies(&caller.tenant, &filter, page).await?;
        let listing = listing.ok_or_else(|| AppError::invalid("cursor", "is not known"))?;
        let found: Vec<_> = listing
            .rows
            .iter()
            .filter_map(ProxyFound::from_row)
            .collect();
        let visible = self.rows_with_right(call, VIEW, named, found, |found| &found.agent);
        Ok((visible.await?, listing.next))
    }

    /// Writes for a bridge. Answers when the turn that follows is over.
    pub async fn send_proxy_input(
        &self,
        call: &AdminCall<'_>,
        proxy: ProxyId,
        input: (MessageId, String),
        idempotency: Idempotency<ProxyInputStatus>,
    ) -> Result<Completion<ProxyInputStatus>, AppError> {
        call.caller.require_scope(Scope::ConversationsTakeover)?;
        let (id, text) = input;
        check_input(&id, &text)?;
        self.check_no_secrets([("/messageId".to_owned(), id.as_str())])?;
        let row = self.find_proxy(call.caller, &proxy).await?;
        let GrantedRight { actor, decision } = self.proxy_right(call, INPUT, &row).await?;
        let runtime = self.runtime_for(call.caller);
        let right = (actor, decision.clone());
        let received = runtime.receive_proxy_input(&row, right, id, text).await;
        let received = received.map_err(|error| submit_error(error, ResourceKind::Session))?;
        if !matches!(received, Ok(ReceivedInput::Accepted(_))) {
            self.record_in_session(&row.session_id, decision).await?;
        }
        let status = match received? {
            ReceivedInput::Duplicate => ProxyInputStatus::Duplicate,
            ReceivedInput::Accepted(MessageClaim {
                session_id, turn, ..
            }) => {
                let until = Instant::now() + TURN_WAIT;
                runtime.wait_for_turn(&session_id, turn, until).await?;
                ProxyInputStatus::Accepted
            }
        };
        self.complete(idempotency, status).await
    }

    /// Stops a bridge. Doing it again is harmless. Answers when the flow that waited has gone on.
    pub async fn stop_proxy(
        &self,
        call: &AdminCall<'_>,
        proxy: ProxyId,
        reason: Option<String>,
        idempotency: Idempotency<StoppedBridge>,
    ) -> Result<Completion<StoppedBridge>, AppError> {
        call.caller.require_scope(Scope::ConversationsTakeover)?;
        if reason
            .as_ref()
            .is_some_and(|reason| reason.len() > MAX_REASON_BYTES)
        {
            let message = format!("must have at most {MAX_REASON_BYTES} bytes");
            return Err(AppError::invalid("/reason", message));
        }
        let row = self.find_proxy(call.caller, &proxy).await?;
        let right = self.proxy_right(call, STOP, &row).await?;
        let session = &row.session_id;
        let request = AdminRequest::StopProxy {
            proxy: proxy.clone(),
            reason: reason.filter(|reason| !reason.trim().is_empty()),
        };
        let reply = self.act(call, session, right, request).await?;
        let SessionReply::ProxyStopped { was_active, turn } = reply else {
            unreachable!("unexpected reply to a stop: {reply:?}");
        };
        if let Some(turn) = turn {
            let until = Instant::now() + TURN_WAIT;
            self.runtime().wait_for_turn(session, turn, until).await?;
        }
        let stopped = StoppedBridge {
            proxy,
            session: row.session_id.clone(),
            stopped: was_active,
        };
        self.complete(idempotency, stopped).await
    }

    pub(super) async fn find_proxy(
        &self,
        caller: &Identity,
        proxy: &ProxyId,
    ) -> Result<ProxyRow, AppError> {
        let row = self.runtime().store().proxy(&caller.tenant, proxy).await?;
        let partition = caller.partition();
        let row = row.filter(|row| {
            partition.covers_parts(&row.tenant, row.workspace.as_ref())
                && caller.reaches_agent(&row.agent)
        });
        row.ok_or(AppError::NotFound(ResourceKind::Proxy))
    }

    async fn proxy_right(
        &self,
        call: &AdminCall<'_>,
        action: &str,
        row: &ProxyRow,
    ) -> Result<GrantedRight, AppError> {
        let current = self.find_session(call.caller, &row.session_id).await?;
        let asked = PrivilegedAction {
            action,
            agent: &row.agent,
            session: Some((&row.session_id, (call.show_session)(&current.view()))),
            escalation: None,
        };
        let agent = self.agent_spec(&row.agent);
        let target = agent.as_ref().and_then(|agent| {
            let bridge = ProxyFound::from_row(row)?.bridge;
            agent.hitl.targets.get(&bridge.target)
        });
        let allowed = target.and_then(|target| target.allowed_actors.as_deref());
        let bridge = BridgeRight {
            proxy: &row.proxy_id,
            allowed_actors: allowed.filter(|_| action == INPUT),
        };
        self.check_right(call, &asked, Some(&bridge)).await
    }

    /// A message of a desk goes to its bridge. `None` when it comes from somebody else, or is a command.
    pub(super) async fn deliver_to_bridge(
        &self,
        source: &InboundSource,
        agent: &AgentSpec,
        new: &NewInbound,
    ) -> Result<Option<DeliveredMessage>, AppError> {
        let now = self.now();
        let id = message_id(new, new.sent_at.unwrap_or(now));
        let query = DeskQuery {
            owner: &source.owner,
            agent: &new.agent,
            transport: &source.transport,
            from: &new.from,
            message_id: &id,
            text: &new.body,
            quoted_id: new.quoted_id.as_deref(),
            relayed: new.relayed,
        };
        let (row, text) = match source.runtime.desk_message(agent, &query).await? {
            DeskMessage::Other => return Ok(None),
            DeskMessage::Echo => {
                return Ok(Some(DeliveredMessage::refused(DeliveryStatus::Duplicate)));
            }
            DeskMessage::Ambiguous => {
                return Ok(Some(self.not_relayed(source, new, AMBIGUOUS).await));
            }
            DeskMessage::Ended => return Ok(Some(self.not_relayed(source, new, ENDED).await)),
            DeskMessage::Input {
                bridge,
                text,
                is_only,
            } => {
                if is_only
                    && let Some(marks) = self.takeovers_beside(source, new, agent, &bridge).await?
                {
                    return Ok(Some(self.not_relayed(source, new, &marks).await));
                }
                (bridge, text)
            }
        };
        if text.trim().is_empty() && new.media.is_none() {
            return Ok(Some(self.not_relayed(source, new, EMPTY).await));
        }
        let name = new.display_name.clone();
        let message = NewMessage {
            agent: new.agent.clone(),
            transport: source.transport.clone(),
            owner: source.owner.clone(),
            attachment: None,
            message: InboundMessage {
                message_id: id,
                from: new.from.clone(),
                body: new.body.clone(),
                kind: new.kind.clone(),
                sender_profile: name.map(|name| SenderProfile {
                    display_name: Some(name),
                }),
                media: new.media.clone(),
                client_id: source.client_id.clone(),
                quoted_id: new.quoted_id.clone(),
                relayed: false,
                received_at: now,
                sent_at: new.sent_at,
            },
        };
        let runtime = &source.runtime;
        let received = match runtime.receive_desk_message(message, &row, text).await {
            Err(SubmitError::Fault(fault)) if fault.code == OVERLOADED => {
                return Ok(Some(DeliveredMessage::refused(DeliveryStatus::Overloaded)));
            }
            received => received.map_err(|error| submit_error(error, ResourceKind::Agent))?,
        };
        let delivered = match received {
            None => self.not_relayed(source, new, ENDED).await,
            Some(ReceivedMessage::Duplicate(claim)) => DeliveredMessage {
                status: DeliveryStatus::Duplicate,
                ..DeliveredMessage::claimed(&claim)
            },
            Some(ReceivedMessage::Accepted(claim)) => {
                self.accepted(source, &claim, &new.from, new.waits).await?
            }
        };
        Ok(Some(delivered))
    }

    /// Nothing follows from the message but that its sender is told, and it may be delivered again.
    async fn not_relayed(
        &self,
        source: &InboundSource,
        new: &NewInbound,
        text: &str,
    ) -> DeliveredMessage {
        self.tell_sender(source, (&new.agent, &new.from), text)
            .await;
        DeliveredMessage::refused(DeliveryStatus::Processed)
    }
}

fn check_input(id: &MessageId, text: &str) -> Result<(), AppError> {
    let chars = id.as_str().chars().count();
    if !(1..=MAX_ID_CHARS).contains(&chars) {
        let message = format!("must have 1 to {MAX_ID_CHARS} characters");
        return Err(AppError::invalid("/messageId", message));
    }
    if text.trim().is_empty() || text.len() > MAX_TEXT_BYTES {
        let message = format!("must have 1 to {MAX_TEXT_BYTES} bytes");
        return Err(AppError::invalid("/text", message));
    }
    Ok(())
}
