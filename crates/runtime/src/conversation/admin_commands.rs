//! Commands of admins that act on the session of somebody else: `/resolve <escalation> …`, `/vip <user>`.
//!
//! The command runs in that session, so that it is ordered with everything else that happens there and its
//! authorization is part of that session's log (Z-27, Z-256).

use super::receive::{NewMessage, ReceivedMessage};
use super::settings::Conversations;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use tandem_engine::agent::AgentSpec;
use tandem_engine::chat_user::{AgentUser, user_id};
use tandem_engine::session::{ChatSession, command_target};
use tandem_record::conversation::{ChatUser, SessionCommand};
use tandem_record::{EscalationId, Partition, ProxyId, SessionId, StreamId};
use tandem_store::Fault;

impl Runtime {
    /// The session that an admin command names, with the word that names it. A session, an escalation, a
    /// bridge or a user can be named.
    pub(super) async fn addressed_session(
        &self,
        agent: &AgentSpec,
        new: &NewMessage,
    ) -> Result<Option<(SessionId, String)>, Fault> {
        if let Some(found) = self.bridge_of_command(agent, new).await? {
            return Ok(Some(found));
        }
        let Some(target) = command_target(agent, &new.message.body) else {
            return Ok(None);
        };
        for session in self.sessions_named(target, new).await? {
            let found = self.read_session(&session).await?;
            if found.is_some_and(|found| is_reachable(&found, new)) {
                return Ok(Some((session, target.to_owned())));
            }
        }
        Ok(None)
    }

    async fn sessions_named(
        &self,
        target: &str,
        new: &NewMessage,
    ) -> Result<Vec<SessionId>, Fault> {
        let tenant = &new.owner.tenant;
        let escalation = EscalationId::new(target);
        let escalation = self.store().escalation(tenant, &escalation).await?;
        let user = user_id(&Partition::from(&new.owner), &new.agent, target);
        let user = match self.conversations() {
            Some(conversations) => {
                let stream = StreamId::of_chat_user(&user);
                self.read_machine(&conversations.users, &stream).await?
            }
            None => None,
        };
        let of_user = user.as_ref().and_then(AgentUser::active_session).cloned();
        let of_escalation = escalation.map(|row| row.session_id);
        let bridge = self.store().proxy(tenant, &ProxyId::new(target)).await?;
        let of_bridge = bridge.map(|row| row.session_id);
        let named = [
            Some(SessionId::new(target)),
            of_escalation,
            of_bridge,
            of_user,
        ];
        Ok(named.into_iter().flatten().collect())
    }

    /// `None` when the session has ended.
    pub(super) async fn receive_admin_command(
        &self,
        conversations: &Conversations,
        session: &SessionId,
        target: &str,
        new: &NewMessage,
    ) -> Result<Option<ReceivedMessage>, SubmitError> {
        let current = self.read_session(session).await?;
        let of_sender = |user: &ChatUser| user.external_user_id == new.message.from;
        let is_own = current.is_some_and(|current| of_sender(&current.start().user));
        let command = SessionCommand::RunCommand {
            message: Box::new(new.message.clone()),
            transport: new.transport.clone(),
            target: target.to_owned(),
        };
        self.submit_claimed(conversations, session, command, new, !is_own)
            .await
    }
}

/// Whether the session is one of this agent that the entry point may reach.
fn is_reachable(session: &ChatSession, new: &NewMessage) -> bool {
    let start = session.start();
    let workspace = new.owner.workspace.as_ref();
    session.ended().is_none()
        && start.agent_id == new.agent
        && start.owner.tenant == new.owner.tenant
        && workspace.is_none_or(|workspace| start.owner.workspace.as_ref() == Some(workspace))
}
