//! Accepts messages of users: claims the message id, finds the user and the active session or begins one, all in
//! one commit.

use super::earlier_sessions::{earlier_sessions, last_received_at};
use super::media::MediaContent;
use super::session_machine::{SessionAnswer, SessionMachine};
use super::settings::Conversations;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::submit_stream::CommitRecord;
use crate::transact::TransactionParts;
use crate::transaction::Transaction;
use serde::{Deserialize, Serialize};
use tandem_engine::agent::AgentSpec;
use tandem_engine::chat_user::{AgentUser, user_id};
use tandem_engine::session::SessionRefusal;
use tandem_record::conversation::{
    ChatUser, ChatUserCommand, ChatUserReply, FirstContact, InboundMessage, SessionCommand,
    SessionReply, SessionStart, SessionTimer,
};
use tandem_record::{
    AgentId, ChatUserId, MediaId, MessageId, Owner, Partition, SessionId, StreamId,
};
use tandem_store::{Append, Fault, IdempotencyKey, IdempotencyRecord, StoredResponse};

/// Sessions that ended or began elsewhere while a message was accepted.
const MAX_ATTEMPTS: usize = 8;
const MINUTE_MS: u64 = 60_000;
/// The code of the fault when too many messages of a session wait.
pub const OVERLOADED: &str = "overloaded";

/// A message as an entry point hands it over.
#[derive(Debug, Clone)]
pub struct NewMessage {
    pub agent: AgentId,
    pub transport: String,
    /// Whose agent it is; the principal is that of the entry point.
    pub owner: Owner,
    pub message: InboundMessage,
    /// The recording or file of the message, which names it in `media`.
    pub attachment: Option<(MediaId, MediaContent)>,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceivedMessage {
    Accepted(MessageClaim),
    /// The id was claimed before.
    Duplicate(MessageClaim),
}

/// What the claim of a message id remembers: the turn that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageClaim {
    pub session_id: SessionId,
    pub turn: u64,
    /// An admin's command about the session of somebody else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_other_session: bool,
}

impl NewMessage {
    fn claim_key(&self) -> IdempotencyKey {
        let message = &self.message.message_id;
        IdempotencyKey::of_message(&self.partition(), &self.agent, &self.transport, message)
    }

    fn user_id(&self) -> ChatUserId {
        user_id(&self.partition(), &self.agent, &self.message.from)
    }

    fn partition(&self) -> Partition {
        Partition::from(&self.owner)
    }

    pub(super) fn claim_record(&self, claim: &MessageClaim) -> IdempotencyRecord {
        IdempotencyRecord {
            key: self.claim_key(),
            digest: String::new(),
            response: StoredResponse {
                status: 200,
                body: serde_json::to_string(claim).expect("a claim is plain data"),
            },
            recorded_at: self.message.received_at,
            session: Some(claim.session_id.clone()),
        }
    }
}

impl Runtime {
    /// The conversations of this host.
    pub fn conversations(&self) -> Option<&Conversations> {
        self.inner.config.conversations.as_ref()
    }

    /// Accepts a message. It is durable when this returns; its turn follows.
    pub async fn receive_message(
        &self,
        mut new: NewMessage,
    ) -> Result<ReceivedMessage, SubmitError> {
        let conversations = self.conversations().ok_or(SubmitError::NotFound)?.clone();
        let agent = conversations.agents().agent(&new.agent);
        let agent = agent.ok_or(SubmitError::NotFound)?;
        self.redact_message(&mut new.message);
        for attempt in 0..MAX_ATTEMPTS {
            // The commit refuses a message whose id is claimed, so one that looks new is only looked for then.
            let looks_new = attempt == 0 && self.looks_new(&conversations, &new).await?;
            if !looks_new && let Some(duplicate) = self.claimed_before(&new).await? {
                self.inner.metrics.conversations.duplicate_dropped();
                return Ok(duplicate);
            }
            if let Some((session, target)) = self.addressed_session(&agent, &new).await? {
                match self
                    .receive_admin_command(&conversations, &session, &target, &new)
                    .await
                {
                    Ok(Some(received)) => return Ok(received),
                    Ok(None) => {}
                    // It is a duplicate, which the next attempt finds.
                    Err(SubmitError::IdempotencyKeyUsed) => continue,
                    Err(error) => return Err(error),
                }
            }
            let user = new.user_id();
            let user_stream = StreamId::of_chat_user(&user);
            let known = self
                .read_machine(&conversations.users, &user_stream)
                .await?;
            let active = known.as_ref().and_then(AgentUser::active_session).cloned();
            let received = match active {
                Some(session) => {
                    self.receive_in_session(&conversations, &session, &new)
                        .await
                }
                None => {
                    let start = session_start(self, &agent, known.as_ref(), &new).await?;
                    self.receive_in_new_session(&conversations, start, &user_stream, &new)
                        .await
                }
            };
            match received {
                Ok(Some(received)) => return Ok(received),
                // Another message or the end of the session came first.
                Ok(None) | Err(SubmitError::IdempotencyKeyUsed) => {}
                Err(error) => return Err(error),
            }
        }
        let message = format!("the session of {} changes too often", new.message.from);
        Err(Fault::retryable("contended", message).into())
    }

    /// Before anything is decided on it: a flow and its journal see the same.
    pub(super) fn redact_message(&self, message: &mut InboundMessage) {
        let profile = message.sender_profile.as_mut();
        let name = profile.and_then(|profile| profile.display_name.as_mut());
        let texts = [Some(&mut message.body), message.kind.as_mut(), name];
        for text in texts.into_iter().flatten() {
            self.redact_in_place(text);
        }
        if let Some(media) = &mut message.media {
            self.redact_value(media);
        }
    }

    /// Whether the message goes to a session in progress that does not remember it.
    async fn looks_new(
        &self,
        conversations: &Conversations,
        new: &NewMessage,
    ) -> Result<bool, Fault> {
        let user = StreamId::of_chat_user(&new.user_id());
        let user = self.read_machine(&conversations.users, &user).await?;
        let Some(active) = user.as_ref().and_then(AgentUser::active_session) else {
            return Ok(false);
        };
        let stream = StreamId::of_session(active);
        let machine = self.read_machine(&conversations.sessions, &stream).await?;
        let session = machine.as_ref().and_then(SessionMachine::session);
        let now = self.clock().now();
        Ok(session.is_some_and(|session| {
            session.ended().is_none()
                && !session.is_idle(now)
                && session.turn_of_message(&new.message.message_id).is_none()
                && !session.remembers(&new.message.message_id)
        }))
    }

    pub(super) async fn claimed_before(
        &self,
        new: &NewMessage,
    ) -> Result<Option<ReceivedMessage>, Fault> {
        let claim = self.stored_claim(&new.claim_key()).await?;
        Ok(claim.map(ReceivedMessage::Duplicate))
    }

    /// What became of a message that was accepted.
    pub async fn message_claim(
        &self,
        owner: &Owner,
        agent: &AgentId,
        transport: &str,
        message: &MessageId,
    ) -> Result<Option<MessageClaim>, Fault> {
        let partition = Partition::from(owner);
        let key = IdempotencyKey::of_message(&partition, agent, transport, message);
        self.stored_claim(&key).await
    }

    async fn stored_claim(&self, key: &IdempotencyKey) -> Result<Option<MessageClaim>, Fault> {
        let Some(stored) = self.store().idempotency_record(key).await? else {
            return Ok(None);
        };
        let claim = serde_json::from_str(&stored.response.body);
        claim.map(Some).map_err(|error| {
            Fault::permanent("corrupt", format!("a claim cannot be read: {error}"))
        })
    }

    /// `None` when the session has ended.
    async fn receive_in_session(
        &self,
        conversations: &Conversations,
        session: &SessionId,
        new: &NewMessage,
    ) -> Result<Option<ReceivedMessage>, SubmitError> {
        let sessions = &conversations.sessions;
        let stream = StreamId::of_session(session);
        let machine = self.read_machine(sessions, &stream).await?;
        let current = machine.as_ref().and_then(SessionMachine::session);
        let now = self.clock().now();
        let is_gone = current.is_none_or(|session| session.ended().is_some());
        if is_gone {
            self.forget_session(conversations, session, new).await?;
            return Ok(None);
        }
        if current.is_some_and(|session| session.is_idle(now)) {
            let command = SessionCommand::FireTimer(SessionTimer::Idle);
            self.submit_command(sessions, &stream, command, None)
                .await?;
            return Ok(None);
        }
        let message = Box::new(new.message.clone());
        // The named points of tests lie between the two commits (Z-258).
        let command = match self.inner.crash.is_armed() {
            true => SessionCommand::Receive { message },
            false => SessionCommand::ReceiveAndBegin { message },
        };
        let received = self
            .submit_claimed(conversations, session, command, new, false)
            .await?;
        // The turn may have taken place (Z-217). The message is accepted whatever the check finds.
        if let Err(fault) = self.check_driven_flows(sessions).await {
            tracing::warn!(%session, error = %fault, "flows of a turn cannot be checked");
        }
        Ok(received)
    }

    /// The bytes that come with a message. What is too much for the session is not kept: its message is read
    /// without it.
    async fn attachment_of(
        &self,
        conversations: &Conversations,
        session: &SessionId,
        new: &NewMessage,
    ) -> Result<Option<Append>, Fault> {
        let Some((id, content)) = &new.attachment else {
            return Ok(None);
        };
        let known = self.media_bytes_of(conversations, session).await?;
        let at = new.message.received_at;
        Ok(content
            .fits_beside(known)
            .then(|| content.append(session, id, at)))
    }

    /// Submits a command that accepts a message, and claims the message's id in the same commit. `None` when
    /// the session has ended.
    pub(super) async fn submit_claimed(
        &self,
        conversations: &Conversations,
        session: &SessionId,
        command: SessionCommand,
        new: &NewMessage,
        of_other_session: bool,
    ) -> Result<Option<ReceivedMessage>, SubmitError> {
        let stream = StreamId::of_session(session);
        let claim = |turn: u64| MessageClaim {
            session_id: session.clone(),
            turn,
            of_other_session,
        };
        let attachment = self.attachment_of(conversations, session, new).await?;
        let records = |answer: &SessionAnswer| match answer.result {
            Ok(SessionReply::Accepted { turn }) => {
                let claim = CommitRecord::Response(new.claim_record(&claim(turn)));
                let stream = attachment.clone().map(CommitRecord::Stream);
                [claim].into_iter().chain(stream).collect()
            }
            _ => Vec::new(),
        };
        let answer = self
            .submit_command(&conversations.sessions, &stream, command, Some(&records))
            .await?;
        match answer.result {
            Ok(SessionReply::Accepted { turn }) => Ok(Some(ReceivedMessage::Accepted(claim(turn)))),
            Ok(_) | Err(SessionRefusal::Ended | SessionRefusal::Unknown) => Ok(None),
            Err(refusal @ SessionRefusal::Overloaded) => {
                Err(Fault::retryable(OVERLOADED, refusal.to_string()).into())
            }
            Err(refusal) => {
                let fault = Fault::permanent("internal", refusal.to_string());
                Err(fault.into())
            }
        }
    }

    /// The user's session is over, although the user's stream does not say so.
    async fn forget_session(
        &self,
        conversations: &Conversations,
        session: &SessionId,
        new: &NewMessage,
    ) -> Result<(), SubmitError> {
        let user = new.user_id();
        let stream = StreamId::of_chat_user(&user);
        let session = session.clone();
        let command = ChatUserCommand::CloseSession { session };
        self.submit_command(&conversations.users, &stream, command, None)
            .await?;
        Ok(())
    }

    /// `None` when another session of the user began meanwhile.
    async fn receive_in_new_session(
        &self,
        conversations: &Conversations,
        start: SessionStart,
        user_stream: &StreamId,
        new: &NewMessage,
    ) -> Result<Option<ReceivedMessage>, SubmitError> {
        let parts = NewSession {
            conversations,
            start: &start,
            user_stream,
            new,
        };
        match self.transact(&new.owner.tenant, &parts).await {
            Ok(claim) => Ok(Some(ReceivedMessage::Accepted(claim))),
            Err(SubmitError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The first message of a session: the session begins, and its user knows it.
struct NewSession<'a> {
    conversations: &'a Conversations,
    start: &'a SessionStart,
    user_stream: &'a StreamId,
    new: &'a NewMessage,
}

impl TransactionParts for NewSession<'_> {
    type Reply = MessageClaim;

    async fn submit_to(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> Result<MessageClaim, SubmitError> {
        let stream = StreamId::of_session(&self.start.session_id);
        let command = SessionCommand::Start {
            start: Box::new(self.start.clone()),
            message: Box::new(self.new.message.clone()),
        };
        let sessions = &self.conversations.sessions;
        let answer = transaction.submit(sessions, &stream, &command).await?;
        let Ok(SessionReply::Accepted { turn }) = answer.result else {
            return Err(SubmitError::NotFound);
        };
        let command = open_session(self.start);
        let users = &self.conversations.users;
        match transaction
            .submit(users, self.user_stream, &command)
            .await?
        {
            ChatUserReply::Done => {}
            ChatUserReply::HasSession(_) | ChatUserReply::Unknown => {
                return Err(SubmitError::NotFound);
            }
        }
        let claim = MessageClaim {
            session_id: self.start.session_id.clone(),
            turn,
            of_other_session: false,
        };
        transaction.store_response(self.new.claim_record(&claim));
        if let Some((id, content)) = &self.new.attachment {
            let at = self.new.message.received_at;
            let append = content.append(&claim.session_id, id, at);
            transaction.store(CommitRecord::Stream(append));
        }
        Ok(claim)
    }
}

/// The command by which a user learns of their session.
pub(super) fn open_session(start: &SessionStart) -> ChatUserCommand {
    ChatUserCommand::OpenSession {
        contact: Box::new(FirstContact {
            agent_id: start.agent_id.clone(),
            owner: start.owner.clone(),
            user: start.user.clone(),
            transport: start.transport.clone(),
            address: start.address.clone(),
        }),
        session: start.session_id.clone(),
    }
}

async fn session_start(
    runtime: &Runtime,
    agent: &AgentSpec,
    known: Option<&AgentUser>,
    new: &NewMessage,
) -> Result<SessionStart, Fault> {
    let message = &new.message;
    let given = message.sender_profile.as_ref();
    let given = given.and_then(|profile| profile.display_name.clone());
    let profile = known.and_then(AgentUser::profile);
    let user = match profile {
        Some(profile) => {
            let mut user = profile.clone();
            if let Some(name) = given.filter(|_| !user.name_is_chosen) {
                user.display_name = name;
            }
            user
        }
        None => {
            let mut user = ChatUser::stranger(new.user_id(), &message.from);
            if let Some(name) = given {
                user.display_name = name;
            }
            user
        }
    };
    let beginning = SessionBeginning {
        agent_id: &new.agent,
        owner: &new.owner,
        transport: new.transport.clone(),
        address: message.from.clone(),
        user,
        is_known: profile.is_some(),
    };
    new_session(runtime, agent, beginning).await
}

/// Whose session begins, and how they are reached.
pub(super) struct SessionBeginning<'a> {
    pub(super) agent_id: &'a AgentId,
    pub(super) owner: &'a Owner,
    pub(super) transport: String,
    pub(super) address: String,
    pub(super) user: ChatUser,
    /// Somebody new is welcomed.
    pub(super) is_known: bool,
}

pub(super) async fn new_session(
    runtime: &Runtime,
    agent: &AgentSpec,
    beginning: SessionBeginning<'_>,
) -> Result<SessionStart, Fault> {
    let unique = runtime.inner.config.ids.run_id();
    let unique = unique.as_str().trim_start_matches("run-").to_owned();
    Ok(SessionStart {
        session_id: SessionId::from(format!("ses-{unique}")),
        agent_id: beginning.agent_id.clone(),
        owner: beginning.owner.clone(),
        welcome: agent.texts.welcome.clone().filter(|_| !beginning.is_known),
        earlier: earlier_sessions(runtime, agent, &beginning).await?,
        last_received_at: last_received_at(runtime, agent, &beginning).await?,
        user: beginning.user,
        transport: beginning.transport,
        address: beginning.address,
        idle_timeout_ms: agent.limits.session_idle_timeout_minutes * MINUTE_MS,
    })
}
