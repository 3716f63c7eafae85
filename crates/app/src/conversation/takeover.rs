//! Live takeover: an admin speaks with a user in place of the agent, and gives the conversation back.

use super::desk_work::DeskRight;
use super::rights::{AdminCall, GrantedRight};
use super::submit_error;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{AdminRequest, SessionReply};
use tandem_record::{AgentId, EscalationId, MessageId, SessionId};
use tandem_runtime::conversation::SessionRefusal;

const START: &str = "hitl.takeover.start";
const END: &str = "hitl.takeover.end";
pub(super) const MESSAGE: &str = "hitl.takeover.message";
/// Bytes of a text to the user, and of the note for the agent.
const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_NOTE_BYTES: usize = 16 * 1024;
const MAX_ID_CHARS: usize = 256;

/// Who has a conversation after a takeover or a handback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverResult {
    /// The escalation of the takeover.
    pub escalation: EscalationId,
    /// What the session waits for now.
    pub mode: Option<String>,
}

/// What became of a text to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverMessageStatus {
    Accepted,
    /// Its id was used before, so nothing follows.
    Duplicate,
}

/// A text that a person writes to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverMessage {
    pub message_id: String,
    pub text: String,
}

impl App {
    /// Whether a reader may be offered to take conversations of an agent over. Nothing is recorded.
    pub fn takeover_right(&self, caller: &Identity, agent: &AgentId) -> DeskRight {
        self.offered_right(caller, agent, Scope::ConversationsTakeover, START)
    }

    /// The admin speaks with the user from the commit on, whatever the agent is doing.
    pub async fn take_over(
        &self,
        call: &AdminCall<'_>,
        session: SessionId,
        idempotency: Idempotency<TakeoverResult>,
    ) -> Result<Completion<TakeoverResult>, AppError> {
        call.caller.require_scope(Scope::ConversationsTakeover)?;
        let right = self.takeover_right_in(call, START, &session).await?;
        let request = AdminRequest::TakeOver;
        let reply = self.act(call, &session, right, request).await?;
        let SessionReply::Escalation(escalation) = reply else {
            unreachable!("unexpected reply to a takeover: {reply:?}");
        };
        let result = self.takeover_result(call, &session, escalation.id).await?;
        self.complete(idempotency, result).await
    }

    /// Sends a text of the admin to the user. A text whose id was used before is not sent again.
    pub async fn send_takeover_message(
        &self,
        call: &AdminCall<'_>,
        session: SessionId,
        message: TakeoverMessage,
        idempotency: Idempotency<TakeoverMessageStatus>,
    ) -> Result<Completion<TakeoverMessageStatus>, AppError> {
        call.caller.require_scope(Scope::ConversationsTakeover)?;
        let right = self.takeover_right_in(call, MESSAGE, &session).await?;
        let status = self
            .submit_takeover_message(call, &session, right, message)
            .await?;
        self.complete(idempotency, status).await
    }

    /// The same by somebody who was found to have the right. It is recorded with the text, or alone where no text
    /// follows from it.
    pub(super) async fn submit_takeover_message(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
        right: GrantedRight,
        message: TakeoverMessage,
    ) -> Result<TakeoverMessageStatus, AppError> {
        let sent = self.submit_text(call, session, &right, message).await;
        if !matches!(sent, Ok(TakeoverMessageStatus::Accepted)) {
            self.record_in_session(session, right.decision).await?;
        }
        sent
    }

    async fn submit_text(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
        right: &GrantedRight,
        message: TakeoverMessage,
    ) -> Result<TakeoverMessageStatus, AppError> {
        check(&message)?;
        let message_id = MessageId::new(&message.message_id);
        let id = message.message_id.as_str();
        self.check_no_secrets([("/messageId".to_owned(), id)])?;
        let request = AdminRequest::SendTakeoverMessage {
            message_id: message_id.clone(),
            text: message.text,
        };
        let runtime = self.runtime_for(call.caller);
        let sent = runtime.send_takeover_message(session, &message_id, right.allowing(request));
        let sent = sent.await;
        let sent = sent.map_err(|error| submit_error(error, ResourceKind::Session))?;
        Ok(match sent? {
            true => TakeoverMessageStatus::Accepted,
            false => TakeoverMessageStatus::Duplicate,
        })
    }

    /// Gives the conversation back to the agent. Answers when the turn is over that follows from it.
    pub async fn hand_back(
        &self,
        call: &AdminCall<'_>,
        session: SessionId,
        note: Option<String>,
        idempotency: Idempotency<TakeoverResult>,
    ) -> Result<Completion<TakeoverResult>, AppError> {
        call.caller.require_scope(Scope::ConversationsTakeover)?;
        if note
            .as_ref()
            .is_some_and(|note| note.len() > MAX_NOTE_BYTES)
        {
            let message = format!("must have at most {MAX_NOTE_BYTES} bytes");
            return Err(AppError::invalid("/note", message));
        }
        let current = self.find_session(call.caller, &session).await?;
        // Its rules are gone with it: nobody could be authorized, and nobody would answer the user (Z-237).
        if self.agent_spec(&current.start().agent_id).is_none() {
            return Err(AppError::SessionRefused(SessionRefusal::AgentUnavailable));
        }
        let open = current.takeover_escalation();
        let escalation = open.map(|escalation| escalation.id.clone());
        let request = AdminRequest::HandBack { note };
        self.act_and_wait(call, END, &session, request).await?;
        let escalation = escalation.ok_or(AppError::SessionRefused(SessionRefusal::NoTakeover))?;
        let result = self.takeover_result(call, &session, escalation).await?;
        self.complete(idempotency, result).await
    }

    pub(super) async fn takeover_right_in(
        &self,
        call: &AdminCall<'_>,
        action: &str,
        session: &SessionId,
    ) -> Result<GrantedRight, AppError> {
        let current = self.find_session(call.caller, session).await?;
        let escalation = current.shown_escalation().map(|open| open.id.clone());
        self.right_in_session(call, action, session, escalation.as_ref())
            .await
    }

    async fn takeover_result(
        &self,
        call: &AdminCall<'_>,
        session: &SessionId,
        escalation: EscalationId,
    ) -> Result<TakeoverResult, AppError> {
        let current = self.find_session(call.caller, session).await?;
        Ok(TakeoverResult {
            escalation,
            mode: current.hitl_mode().map(str::to_owned),
        })
    }
}

fn check(message: &TakeoverMessage) -> Result<(), AppError> {
    let ids = 1..=MAX_ID_CHARS;
    if !ids.contains(&message.message_id.chars().count()) {
        let problem = format!("must have 1 to {MAX_ID_CHARS} characters");
        return Err(AppError::invalid("/messageId", problem));
    }
    if message.text.trim().is_empty() {
        return Err(AppError::invalid("/text", "must not be empty"));
    }
    if message.text.len() > MAX_TEXT_BYTES {
        let problem = format!("must have at most {MAX_TEXT_BYTES} bytes");
        return Err(AppError::invalid("/text", problem));
    }
    Ok(())
}
