//! Texts that people write to users in place of agents. Each has an id of its own, which is claimed in the commit that
//! accepts the text (Z-92).

use super::receive::{SessionBeginning, new_session};
use super::session_machine::SessionAnswer;
use super::settings::Conversations;
use super::workflow_flows::SessionWithoutMessage;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::submit_stream::CommitRecord;
use tandem_engine::chat_user::{AgentUser, user_id};
use tandem_engine::session::SessionRefusal;
use tandem_record::conversation::{ChatUser, SessionCommand};
use tandem_record::{AgentId, MessageId, Owner, Partition, SessionId, StreamId, Timestamp};
use tandem_store::{IdempotencyKey, IdempotencyRecord, StoredResponse};

impl Runtime {
    /// Sends a text of an admin to the user of a session, by a command that sends it. False when its id was used
    /// before.
    pub async fn send_takeover_message(
        &self,
        session: &SessionId,
        message_id: &MessageId,
        mut command: SessionCommand,
    ) -> Result<Result<bool, SessionRefusal>, SubmitError> {
        self.redact_admin_command(&mut command);
        let place = format!("takeover:{session}");
        self.submit_once(session, &place, message_id, command).await
    }

    /// Begins a session of somebody whom a person wrote to past this host, or gives the one that began meanwhile.
    pub async fn open_session(
        &self,
        agent_id: &AgentId,
        owner: &Owner,
        transport: &str,
        address: &str,
    ) -> Result<SessionId, SubmitError> {
        let conversations = self.conversations().ok_or(SubmitError::NotFound)?.clone();
        let agent = conversations.agents().agent(agent_id);
        let agent = agent.ok_or(SubmitError::NotFound)?;
        let id = user_id(&Partition::from(owner), agent_id, address);
        let user_stream = StreamId::of_chat_user(&id);
        let users = &conversations.users;
        let known = self.read_machine(users, &user_stream).await?;
        let profile = known.as_ref().and_then(AgentUser::profile).cloned();
        let beginning = SessionBeginning {
            agent_id,
            owner,
            transport: transport.to_owned(),
            address: address.to_owned(),
            is_known: profile.is_some(),
            user: profile.unwrap_or_else(|| ChatUser::stranger(id, address)),
        };
        let start = new_session(self, &agent, beginning).await?;
        let opened = SessionWithoutMessage {
            conversations: &conversations,
            start: &start,
            user_stream: &user_stream,
        };
        match self.transact(&owner.tenant, &opened).await {
            Ok(()) => Ok(start.session_id.clone()),
            Err(SubmitError::NotFound) => {
                let user = self.read_machine(users, &user_stream).await?;
                let active = user.as_ref().and_then(AgentUser::active_session);
                active.cloned().ok_or(SubmitError::NotFound)
            }
            Err(error) => Err(error),
        }
    }

    /// Records an answer that somebody gave from the agent's own account. False when it is known.
    pub async fn record_external_reply(
        &self,
        session: &SessionId,
        transport: &str,
        message_id: &MessageId,
        mut text: String,
        sent_at: Timestamp,
    ) -> Result<Result<bool, SessionRefusal>, SubmitError> {
        self.redact_in_place(&mut text);
        let command = SessionCommand::RecordExternalReply {
            message_id: message_id.clone(),
            text,
            sent_at,
        };
        let place = format!("own:{transport}");
        self.submit_once(session, &place, message_id, command).await
    }

    /// Submits a command that takes a message, and claims the message's id in the same commit.
    async fn submit_once(
        &self,
        session: &SessionId,
        place: &str,
        message_id: &MessageId,
        command: SessionCommand,
    ) -> Result<Result<bool, SessionRefusal>, SubmitError> {
        let conversations = self.conversations().ok_or(SubmitError::NotFound)?.clone();
        let key = self.spoken_key(session, place, message_id).await?;
        if self.store().idempotency_record(&key).await?.is_some() {
            return Ok(Ok(false));
        }
        let Conversations { sessions, .. } = &conversations;
        let claim = IdempotencyRecord {
            key,
            digest: String::new(),
            response: StoredResponse {
                status: 200,
                body: "{}".to_owned(),
            },
            recorded_at: self.clock().now(),
            session: Some(session.clone()),
        };
        let records = |answer: &SessionAnswer| match answer.result {
            Ok(_) => vec![CommitRecord::Response(claim.clone())],
            Err(_) => Vec::new(),
        };
        let stream = StreamId::of_session(session);
        let answer = self.submit_command(sessions, &stream, command, Some(&records));
        match answer.await {
            Ok(answer) => Ok(answer.result.map(|_| true)),
            // The same text came twice at the same time.
            Err(SubmitError::IdempotencyKeyUsed) => Ok(Ok(false)),
            Err(error) => Err(error),
        }
    }

    async fn spoken_key(
        &self,
        session: &SessionId,
        place: &str,
        message_id: &MessageId,
    ) -> Result<IdempotencyKey, SubmitError> {
        let current = self.read_session(session).await?;
        let current = current.ok_or(SubmitError::NotFound)?;
        let start = current.start();
        let partition = Partition::from(&start.owner);
        Ok(IdempotencyKey::of_message(
            &partition,
            &start.agent_id,
            place,
            message_id,
        ))
    }
}
