//! Delivering messages of users: limits, acceptance, and waiting for the turn.

use super::submit_error;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{
    AgentLevelEvent, AgentLevelEventBody, InboundMessage, InboundRefusal, OutboxIntent,
    SenderProfile, SessionEventBody as Body, SessionLedger,
};
use tandem_record::{AgentId, EffectId, MediaId, MessageId, Object, Owner, SessionId, Timestamp};
use tandem_runtime::conversation::{
    AgentSpec, CallContext, ChatSignal, MediaContent, MessageClaim, NewMessage, OVERLOADED,
    OutgoingMessage, ReceivedMessage, is_command_of_known_admin,
};
use tandem_runtime::{Runtime, SubmitError};
use tokio::time::Instant;

/// How long a caller waits for a turn.
const TURN_WAIT: Duration = Duration::from_secs(60);
const MAX_ID_CHARS: usize = 256;
/// Bytes of a text, and of what a transport says about an attachment. A session keeps many of them.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The transport of messages that are delivered over the API.
const TRANSPORT: &str = "loopback";

/// A message as it was delivered.
pub struct NewInbound {
    pub agent: AgentId,
    /// The transport's own id; a fingerprint stands in for an absent one.
    pub message_id: Option<String>,
    pub from: String,
    pub body: String,
    pub kind: Option<String>,
    pub display_name: Option<String>,
    /// With `contentType` and `data` in base64, its bytes are kept.
    pub media: Option<Value>,
    /// The message it replies to, as the network names it.
    pub quoted_id: Option<String>,
    /// A bridge relayed it: it is not relayed again.
    pub relayed: bool,
    /// When the network got it, if that is known: part of the fingerprint.
    pub sent_at: Option<Timestamp>,
    /// The answer is given when the turn is over.
    pub waits: bool,
}

/// Who hands a message over, and by which transport.
pub(super) struct InboundSource {
    /// Whose conversation it belongs to.
    pub(super) owner: Owner,
    pub(super) transport: String,
    /// The client of the UI channel, for messages from there.
    pub(super) client_id: Option<String>,
    /// Acts for whoever hands it over.
    pub(super) runtime: Runtime,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    Processed,
    /// Its turn is not over yet.
    Accepted,
    Duplicate,
    RateLimited,
    Overloaded,
}

pub struct DeliveredMessage {
    pub session: Option<SessionId>,
    pub turn_id: Option<String>,
    pub status: DeliveryStatus,
    /// What the turn sends to the sender, in order.
    pub outbound: Vec<OutboxIntent>,
}

impl DeliveredMessage {
    /// The turn of a message. A session of somebody else is not named.
    pub(super) fn claimed(claim: &MessageClaim) -> Self {
        let session = Some(claim.session_id.clone()).filter(|_| !claim.of_other_session);
        Self {
            session,
            turn_id: Some(claim.session_id.turn_id(claim.turn)),
            status: DeliveryStatus::Accepted,
            outbound: Vec::new(),
        }
    }

    fn duplicate(claim: &MessageClaim) -> Self {
        Self {
            status: DeliveryStatus::Duplicate,
            ..Self::claimed(claim)
        }
    }

    pub(super) fn refused(status: DeliveryStatus) -> Self {
        Self {
            session: None,
            turn_id: None,
            status,
            outbound: Vec::new(),
        }
    }
}

/// A message that is not accepted.
struct RefusedMessage {
    agent: AgentId,
    from: String,
    message_id: Option<String>,
}

impl RefusedMessage {
    fn of(new: &NewInbound) -> Self {
        Self {
            agent: new.agent.clone(),
            from: new.from.clone(),
            message_id: new.message_id.clone(),
        }
    }
}

impl App {
    /// Delivers a message of a user to an agent. Refused messages are not claimed, so the same id can be
    /// delivered again (Z-11).
    pub async fn deliver_message(
        &self,
        caller: &Identity,
        new: NewInbound,
    ) -> Result<DeliveredMessage, AppError> {
        caller.require_scope(Scope::RunsCreate)?;
        if caller.agent.is_some() {
            self.find_agent_for(caller, &new.agent)?;
        }
        let source = InboundSource {
            owner: caller.owner(),
            transport: TRANSPORT.to_owned(),
            client_id: None,
            runtime: self.runtime_for(caller),
        };
        self.deliver(&source, new).await
    }

    /// The same for whoever was found to be allowed to.
    pub(super) async fn deliver(
        &self,
        source: &InboundSource,
        mut new: NewInbound,
    ) -> Result<DeliveredMessage, AppError> {
        let recording = new.media.as_mut().map(take_bytes).transpose()?.flatten();
        check(&new)?;
        let id = new.message_id.as_deref().unwrap_or_default();
        let names = [("/from", new.from.as_str()), ("/messageId", id)];
        self.check_no_secrets(names.map(|(place, text)| (place.to_owned(), text)))?;
        let agent = self.ready_agent(&new.agent)?;
        let of = (source.owner.tenant.clone(), new.agent.clone());
        let now = self.now();
        // A chat may be the desk of takeovers and of bridges: a text that names a takeover is for that.
        let names_takeover = self.names_takeover(source, &new, &agent).await?;
        if !names_takeover
            && let Some(delivered) = self.deliver_to_bridge(source, &agent, &new).await?
        {
            return Ok(delivered);
        }
        let sender = ChatSignal {
            transport: &source.transport,
            address: &new.from,
        };
        if let Some(delivered) = self.deliver_from_desk(source, &new, &agent).await? {
            return Ok(delivered);
        }
        // Z-12: limits are for messages of users.
        let is_admin = is_command_of_known_admin(&agent, &new.body, sender);
        let admitted = match is_admin {
            true => Ok(None),
            false => self.admit_inbound(&of, &new.from, &agent).await?.map(Some),
        };
        let entering = match admitted {
            Ok(entering) => entering,
            Err(status) => {
                let id = message_id(&new, new.sent_at.unwrap_or(now));
                let transport = &source.transport;
                let claim = source
                    .runtime
                    .message_claim(&source.owner, &new.agent, transport, &id);
                // A message that was accepted is a duplicate, whatever its sender may do now (Z-8).
                if let Some(claim) = claim.await? {
                    return Ok(DeliveredMessage::duplicate(&claim));
                }
                let refused = RefusedMessage::of(&new);
                return self.refuse(source, &refused, &agent, status).await;
            }
        };
        let refused = RefusedMessage::of(&new);
        let id = message_id(&new, new.sent_at.unwrap_or(now));
        let attachment = recording.map(|content| {
            let media = media_id(&source.transport, &id);
            if let Some(Value::Object(shown)) = &mut new.media {
                shown.insert("id".to_owned(), json!(media));
                shown.insert("bytes".to_owned(), json!(content.bytes.len()));
            }
            // Its bytes say what it is.
            new.kind = new
                .kind
                .take()
                .or(content.is_audio().then(|| "audio".to_owned()));
            (media, content)
        });
        let message = NewMessage {
            agent: new.agent.clone(),
            transport: source.transport.clone(),
            owner: source.owner.clone(),
            attachment,
            message: InboundMessage {
                message_id: id,
                from: new.from.clone(),
                body: new.body,
                kind: new.kind,
                sender_profile: new.display_name.map(|name| SenderProfile {
                    display_name: Some(name),
                }),
                media: new.media,
                client_id: source.client_id.clone(),
                quoted_id: new.quoted_id,
                relayed: new.relayed,
                received_at: now,
                sent_at: new.sent_at,
            },
        };
        let runtime = &source.runtime;
        let received = match runtime.receive_message(message).await {
            Err(SubmitError::Fault(fault)) if fault.code == OVERLOADED => {
                let status = DeliveryStatus::Overloaded;
                return self.refuse(source, &refused, &agent, status).await;
            }
            received => received.map_err(|error| submit_error(error, ResourceKind::Agent))?,
        };
        match received {
            ReceivedMessage::Duplicate(claim) => Ok(DeliveredMessage::duplicate(&claim)),
            ReceivedMessage::Accepted(claim) => {
                if let Some(entering) = &entering {
                    entering.accepted(&claim);
                }
                let delivered = self.accepted(source, &claim, &new.from, new.waits).await?;
                if delivered.status == DeliveryStatus::Processed
                    && let Some(entering) = &entering
                {
                    entering.finished(&claim);
                }
                Ok(delivered)
            }
        }
    }

    /// What is answered for a message that was accepted, once its turn is over if the caller waits for that.
    pub(super) async fn accepted(
        &self,
        source: &InboundSource,
        claim: &MessageClaim,
        from: &str,
        waits: bool,
    ) -> Result<DeliveredMessage, AppError> {
        let is_over = waits && {
            let until = Instant::now() + TURN_WAIT;
            let (session, turn) = (&claim.session_id, claim.turn);
            source.runtime.wait_for_turn(session, turn, until).await?
        };
        let (status, outbound) = match is_over {
            true => (
                DeliveryStatus::Processed,
                self.sent_by_turn(claim, from).await?,
            ),
            false => (DeliveryStatus::Accepted, Vec::new()),
        };
        Ok(DeliveredMessage {
            status,
            outbound,
            ..DeliveredMessage::claimed(claim)
        })
    }

    async fn sent_by_turn(
        &self,
        claim: &MessageClaim,
        to: &str,
    ) -> Result<Vec<OutboxIntent>, AppError> {
        let turn = claim.turn;
        let events = self
            .runtime()
            .newest_session_events(&claim.session_id, |event| {
                let is_first = matches!(
                    event.event.body,
                    Body::MessageReceived { .. } | Body::TurnQueued { .. }
                );
                is_first && event.event.turn == Some(turn)
            })
            .await?;
        let mut ledger = SessionLedger::default();
        events.iter().for_each(|event| ledger.evolve(event));
        Ok(ledger.sent_by(turn, to).cloned().collect())
    }

    /// Nothing follows from the message, and it may be delivered again.
    async fn refuse(
        &self,
        source: &InboundSource,
        refused: &RefusedMessage,
        agent: &AgentSpec,
        status: DeliveryStatus,
    ) -> Result<DeliveredMessage, AppError> {
        self.record_refusal(source, refused, status).await?;
        self.tell_refusal(source, refused, agent, status).await;
        Ok(DeliveredMessage::refused(status))
    }

    /// Records the refusal in the log of the agent: no session knows of it.
    async fn record_refusal(
        &self,
        source: &InboundSource,
        refused: &RefusedMessage,
        status: DeliveryStatus,
    ) -> Result<(), AppError> {
        let refusal = match status {
            DeliveryStatus::RateLimited => InboundRefusal::RateLimited,
            DeliveryStatus::Overloaded => InboundRefusal::Overloaded,
            DeliveryStatus::Processed | DeliveryStatus::Accepted | DeliveryStatus::Duplicate => {
                return Ok(());
            }
        };
        let metrics = &self.runtime().metrics().conversations;
        metrics.inbound_refused(refusal);
        let (tenant, agent) = (&source.owner.tenant, &refused.agent);
        let of = (tenant.clone(), agent.clone());
        let limits = &self.inner.inbound;
        let listed = limits.list_refusal(&of, &refused.from, self.now());
        let Some(unlisted) = listed else {
            return Ok(());
        };
        let event = AgentLevelEvent {
            workspace: source.owner.workspace.clone(),
            actor: None,
            body: AgentLevelEventBody::InboundRefused {
                refusal,
                transport: source.transport.to_owned(),
                from: refused.from.clone(),
                message_id: refused.message_id.as_deref().map(MessageId::new),
                unlisted,
            },
        };
        self.runtime()
            .note_agent_event(tenant, agent, event)
            .await?;
        Ok(())
    }

    /// Tells the sender why nothing follows, as far as the agent has a text for it.
    async fn tell_refusal(
        &self,
        source: &InboundSource,
        new: &RefusedMessage,
        agent: &AgentSpec,
        status: DeliveryStatus,
    ) {
        let text = match status {
            DeliveryStatus::RateLimited => Some(agent.texts.rate_limit.clone()),
            DeliveryStatus::Overloaded => agent.texts.overload.clone(),
            _ => None,
        };
        if let Some(text) = text {
            let place = (&new.agent, new.from.as_str());
            self.tell_sender(source, place, &text).await;
        }
    }

    /// Sends a text to whoever wrote a message that no session takes.
    pub(super) async fn tell_sender(
        &self,
        source: &InboundSource,
        (agent, to): (&AgentId, &str),
        text: &str,
    ) {
        let Some(conversations) = self.runtime().conversations() else {
            return;
        };
        let key = EffectId::new(uuid::Uuid::new_v4().to_string());
        let context = CallContext {
            tenant: source.owner.tenant.clone(),
            agent: agent.clone(),
            session: None,
            key: key.clone(),
            data: Object::new(),
            kv: BTreeMap::new(),
            messages: Arc::from([]),
            trace: None,
            actor: None,
            now: self.now(),
        };
        let message = OutgoingMessage {
            transport: &source.transport,
            to,
            text,
            speech: None,
            key: &key,
            may_be_repeated: false,
            origin: None,
            last_received_at: Some(self.now()),
        };
        let sent = conversations.agents().send(&message, &context).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "the sender of a message was not told");
        }
    }
}

fn check(new: &NewInbound) -> Result<(), AppError> {
    let is_id = |text: &str| (1..=MAX_ID_CHARS).contains(&text.chars().count());
    let is_name = |text: &str| text.chars().count() <= MAX_ID_CHARS;
    let media = new
        .media
        .as_ref()
        .map_or(0, |media| media.to_string().len());
    let id = format!("must have 1 to {MAX_ID_CHARS} characters");
    let name = format!("must have at most {MAX_ID_CHARS} characters");
    let text = format!("must have at most {MAX_TEXT_BYTES} bytes");
    let checked = [
        ("/from", is_id(&new.from), &id),
        (
            "/messageId",
            new.message_id.as_deref().is_none_or(is_id),
            &id,
        ),
        ("/type", new.kind.as_deref().is_none_or(is_name), &name),
        (
            "/senderProfile/displayName",
            new.display_name.as_deref().is_none_or(is_name),
            &name,
        ),
        ("/body", new.body.len() <= MAX_TEXT_BYTES, &text),
        // Control characters take six bytes each where a text is stored.
        (
            "/body",
            json!(new.body).to_string().len() <= 2 * MAX_TEXT_BYTES,
            &text,
        ),
        ("/media", media <= MAX_TEXT_BYTES, &text),
    ];
    match checked.into_iter().find(|(_, fits, _)| !fits) {
        Some((path, _, message)) => Err(AppError::invalid(path, message)),
        None => Ok(()),
    }
}

/// Takes the bytes out of what a transport says of an attachment. Without them it is kept as it is.
fn take_bytes(media: &mut Value) -> Result<Option<MediaContent>, AppError> {
    let invalid = |problem: String| AppError::invalid("/media", problem);
    let Some(data) = media.as_object_mut().and_then(|media| media.remove("data")) else {
        return Ok(None);
    };
    let data = data.as_str().unwrap_or_default();
    let content_type = media["contentType"].as_str().unwrap_or_default();
    let content = MediaContent::from_base64(content_type, data);
    content.map(Some).map_err(invalid)
}

/// A message has one recording or file at most.
fn media_id(transport: &str, message: &MessageId) -> MediaId {
    let digest = Sha256::digest(format!("{transport}:{message}"));
    MediaId::from(format!("in-{}", hex(&digest[..16])))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The given id, or a fingerprint of what identifies the message within a second (Z-9).
pub(super) fn message_id(new: &NewInbound, now: Timestamp) -> MessageId {
    if let Some(id) = &new.message_id {
        return MessageId::new(id);
    }
    let seconds = now.0.div_euclid(1000);
    let text = format!("{}:{}:{seconds}", new.from, new.body);
    MessageId::from(hex(&Sha256::digest(text.as_bytes())[..16]))
}
