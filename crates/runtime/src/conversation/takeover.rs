//! Texts that people write to users in place of agents. Each has an id of its own, which is claimed in the commit that
//! accepts the text (Z-92).

use super::session_machine::SessionAnswer;
use super::settings::Conversations;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::submit_stream::CommitRecord;
use tandem_engine::session::SessionRefusal;
use tandem_record::conversation::SessionCommand;
use tandem_record::{MessageId, Partition, SessionId, StreamId, Timestamp};
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
