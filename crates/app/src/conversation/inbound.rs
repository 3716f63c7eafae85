//! Delivering messages of users: limits, acceptance, and waiting for the turn.

use super::submit_error;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{
    InboundMessage, Modality, OutboxIntent, SendRequest, SenderProfile, SessionEventBody as Body,
    SessionLedger,
};
use tandem_record::{AgentId, EffectId, MessageId, Object, Owner, SessionId, TenantId, Timestamp};
use tandem_runtime::conversation::{
    AgentSpec, CallContext, MessageClaim, NewMessage, OVERLOADED, ReceivedMessage, SenderRates,
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
    pub media: Option<serde_json::Value>,
    /// The answer is given when the turn is over.
    pub waits: bool,
}

/// Who hands a message over, and by which transport.
pub(super) struct InboundSource {
    /// Whose conversation it belongs to.
    pub(super) owner: Owner,
    pub(super) transport: &'static str,
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
    fn claimed(claim: &MessageClaim) -> Self {
        let session = Some(claim.session_id.clone()).filter(|_| !claim.of_other_session);
        Self {
            session,
            turn_id: Some(claim.session_id.turn_id(claim.turn)),
            status: DeliveryStatus::Accepted,
            outbound: Vec::new(),
        }
    }

    fn refused(status: DeliveryStatus) -> Self {
        Self {
            session: None,
            turn_id: None,
            status,
            outbound: Vec::new(),
        }
    }
}

/// The messages of each agent within the last minute, and those under way. Kept by this process.
#[derive(Default)]
pub struct InboundLimits(Arc<Mutex<HashMap<(TenantId, AgentId), AgentLoad>>>);

#[derive(Default)]
struct AgentLoad {
    rates: SenderRates,
    under_way: usize,
}

/// A message under way; ends when it is dropped.
struct UnderWay {
    limits: Arc<Mutex<HashMap<(TenantId, AgentId), AgentLoad>>>,
    of: (TenantId, AgentId),
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(load) = self.limits.lock().get_mut(&self.of) {
            load.under_way = load.under_way.saturating_sub(1);
        }
    }
}

impl InboundLimits {
    fn admit(
        &self,
        of: (TenantId, AgentId),
        from: &str,
        agent: &AgentSpec,
        now: Timestamp,
    ) -> Result<UnderWay, DeliveryStatus> {
        let mut all = self.0.lock();
        let load = all.entry(of.clone()).or_default();
        let now_ms = u64::try_from(now.0).unwrap_or(0);
        let limits = &agent.limits;
        let rate = limits.rate_limit_per_user_per_minute;
        if !load.rates.admit(from, now_ms, rate) {
            return Err(DeliveryStatus::RateLimited);
        }
        if load.under_way >= limits.max_inbound_concurrency {
            return Err(DeliveryStatus::Overloaded);
        }
        load.under_way += 1;
        let limits = Arc::clone(&self.0);
        Ok(UnderWay { limits, of })
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
        let source = InboundSource {
            owner: caller.owner(),
            transport: TRANSPORT,
            client_id: None,
            runtime: self.runtime_for(caller),
        };
        self.deliver(&source, new).await
    }

    /// The same for whoever was found to be allowed to.
    pub(super) async fn deliver(
        &self,
        source: &InboundSource,
        new: NewInbound,
    ) -> Result<DeliveredMessage, AppError> {
        check(&new)?;
        let id = new.message_id.as_deref().unwrap_or_default();
        let names = [("/from", new.from.as_str()), ("/messageId", id)];
        self.check_no_secrets(names.map(|(place, text)| (place.to_owned(), text)))?;
        let agent = self.ready_agent(&new.agent)?;
        let of = (source.owner.tenant.clone(), new.agent.clone());
        let now = self.now();
        let admitted = self.inner.inbound.admit(of, &new.from, &agent, now);
        let _under_way = match admitted {
            Ok(under_way) => under_way,
            Err(status) => {
                self.tell_refusal(source, &new, &agent, status).await;
                return Ok(DeliveredMessage::refused(status));
            }
        };
        let message = NewMessage {
            agent: new.agent.clone(),
            transport: source.transport.to_owned(),
            owner: source.owner.clone(),
            message: InboundMessage {
                message_id: message_id(&new, now),
                from: new.from.clone(),
                body: new.body,
                kind: new.kind,
                sender_profile: new.display_name.map(|name| SenderProfile {
                    display_name: Some(name),
                }),
                media: new.media,
                client_id: source.client_id.clone(),
                received_at: now,
            },
        };
        let runtime = &source.runtime;
        let received = match runtime.receive_message(message).await {
            Err(SubmitError::Fault(fault)) if fault.code == OVERLOADED => {
                return Ok(DeliveredMessage::refused(DeliveryStatus::Overloaded));
            }
            received => received.map_err(|error| submit_error(error, ResourceKind::Agent))?,
        };
        match received {
            ReceivedMessage::Duplicate(claim) => Ok(DeliveredMessage {
                status: DeliveryStatus::Duplicate,
                ..DeliveredMessage::claimed(&claim)
            }),
            ReceivedMessage::Accepted(claim) => {
                let is_over = new.waits && {
                    let until = Instant::now() + TURN_WAIT;
                    let (session, turn) = (&claim.session_id, claim.turn);
                    runtime.wait_for_turn(session, turn, until).await?
                };
                let (status, outbound) = match is_over {
                    true => (
                        DeliveryStatus::Processed,
                        self.sent_by_turn(&claim, &new.from).await?,
                    ),
                    false => (DeliveryStatus::Accepted, Vec::new()),
                };
                Ok(DeliveredMessage {
                    status,
                    outbound,
                    ..DeliveredMessage::claimed(&claim)
                })
            }
        }
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

    /// Tells the sender why nothing follows, as far as the agent has a text for it.
    async fn tell_refusal(
        &self,
        source: &InboundSource,
        new: &NewInbound,
        agent: &AgentSpec,
        status: DeliveryStatus,
    ) {
        let text = match status {
            DeliveryStatus::RateLimited => Some(agent.texts.rate_limit.clone()),
            DeliveryStatus::Overloaded => agent.texts.overload.clone(),
            _ => None,
        };
        let (Some(text), Some(conversations)) = (text, self.runtime().conversations()) else {
            return;
        };
        let key = EffectId::new(uuid::Uuid::new_v4().to_string());
        let context = CallContext {
            tenant: source.owner.tenant.clone(),
            agent: new.agent.clone(),
            session: None,
            key: key.clone(),
            data: Object::new(),
            kv: BTreeMap::new(),
            actor: None,
            now: self.now(),
        };
        let message = SendRequest {
            transport: source.transport.to_owned(),
            to: new.from.clone(),
            text,
            modality: Modality::Text,
            attempts: 0,
        };
        let sent = conversations.agents().send(&message, &key, &context).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a refused sender was not told");
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
        ("/media", media <= MAX_TEXT_BYTES, &text),
    ];
    match checked.into_iter().find(|(_, fits, _)| !fits) {
        Some((path, _, message)) => Err(AppError::invalid(path, message)),
        None => Ok(()),
    }
}

/// The given id, or a fingerprint of what identifies the message within a second (Z-9).
fn message_id(new: &NewInbound, now: Timestamp) -> MessageId {
    if let Some(id) = &new.message_id {
        return MessageId::new(id);
    }
    let seconds = now.0.div_euclid(1000);
    let text = format!("{}:{}:{seconds}", new.from, new.body);
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    MessageId::from(hex)
}
