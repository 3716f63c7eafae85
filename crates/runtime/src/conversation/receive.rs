//! Accepts messages of users: claims the message id, finds the user and the active session or begins one, all in
//! one commit.

use super::session_machine::{SessionAnswer, SessionMachine};
use super::settings::Conversations;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
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
use tandem_record::{AgentId, ChatUserId, Owner, Partition, SessionId, StreamId};
use tandem_store::{Fault, IdempotencyKey, IdempotencyRecord, StoredResponse};

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

    fn claim_record(&self, claim: &MessageClaim) -> IdempotencyRecord {
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
        self.redact_in_place(&mut new.message.body);
        let profile = new.message.sender_profile.as_mut();
        if let Some(name) = profile.and_then(|profile| profile.display_name.as_mut()) {
            self.redact_in_place(name);
        }
        for _ in 0..MAX_ATTEMPTS {
            if let Some(duplicate) = self.claimed_before(&new).await? {
                return Ok(duplicate);
            }
            if let Some((session, target)) = self.addressed_session(&agent, &new).await?
                && let Some(received) = self
                    .receive_admin_command(&conversations, &session, &target, &new)
                    .await?
            {
                return Ok(received);
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
                    let start = session_start(self, &agent, known.as_ref(), &new);
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

    async fn claimed_before(&self, new: &NewMessage) -> Result<Option<ReceivedMessage>, Fault> {
        let stored = self.store().idempotency_record(&new.claim_key()).await?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        let claim = serde_json::from_str(&stored.response.body).map_err(|error| {
            Fault::permanent("corrupt", format!("a claim cannot be read: {error}"))
        })?;
        Ok(Some(ReceivedMessage::Duplicate(claim)))
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
        let command = SessionCommand::Receive {
            message: Box::new(new.message.clone()),
        };
        self.submit_claimed(conversations, session, command, new, false)
            .await
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
        let records = |answer: &SessionAnswer| match answer.result {
            Ok(SessionReply::Accepted { turn }) => vec![new.claim_record(&claim(turn))],
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
        let contact = FirstContact {
            agent_id: self.start.agent_id.clone(),
            owner: self.start.owner.clone(),
            user: self.start.user.clone(),
            transport: self.start.transport.clone(),
            address: self.start.address.clone(),
        };
        let command = ChatUserCommand::OpenSession {
            contact: Box::new(contact),
            session: self.start.session_id.clone(),
        };
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
        Ok(claim)
    }
}

fn session_start(
    runtime: &Runtime,
    agent: &AgentSpec,
    known: Option<&AgentUser>,
    new: &NewMessage,
) -> SessionStart {
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
        None => ChatUser {
            id: new.user_id(),
            external_user_id: message.from.clone(),
            display_name: given.unwrap_or_else(|| message.from.clone()),
            name_is_chosen: false,
            tags: Vec::new(),
            preferences: serde_json::json!({}),
            consent: None,
        },
    };
    let unique = runtime.inner.config.ids.run_id();
    let unique = unique.as_str().trim_start_matches("run-").to_owned();
    SessionStart {
        session_id: SessionId::from(format!("ses-{unique}")),
        agent_id: new.agent.clone(),
        owner: new.owner.clone(),
        welcome: agent.texts.welcome.clone().filter(|_| profile.is_none()),
        user,
        transport: new.transport.clone(),
        address: message.from.clone(),
        idle_timeout_ms: agent.limits.session_idle_timeout_minutes * MINUTE_MS,
    }
}
