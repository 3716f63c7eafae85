//! Tells people outside of an escalation, and records when nobody could be told.

use super::agent_host::{AgentHost, CallContext};
use super::network::EscalationNotice;
use super::send_retry::may_try_again;
use super::session_work::SessionOutcome;
use crate::leases::LeasedEffect;
use crate::runtime::Runtime;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{CodeError, NoticeRequest, SessionWork, WorkOutcome};

impl Runtime {
    /// One attempt. Nobody is told of an escalation that was closed meanwhile.
    pub(super) async fn notify(
        &self,
        session: &ChatSession,
        agents: &dyn AgentHost,
        request: &NoticeRequest,
        context: &CallContext,
        work: &LeasedEffect<SessionWork>,
    ) -> SessionOutcome {
        let Some(escalation) = session.escalation_to_notify(&request.escalation_id) else {
            return SessionOutcome::Done(WorkOutcome::Reported);
        };
        let notice = EscalationNotice {
            transport: &request.transport,
            to: &request.to,
            escalation,
            session: session.id(),
            user: &session.start().user.external_user_id,
            link: None,
            key: &context.key,
            may_be_repeated: work.past.leases > 0,
        };
        match agents.notify(&notice, context).await {
            Ok(()) => SessionOutcome::Done(WorkOutcome::Reported),
            Err(error) if may_try_again(&error, request.attempts) => {
                SessionOutcome::SendAgain(error)
            }
            Err(error) => {
                let mut message = error.message;
                self.redact_in_place(&mut message);
                SessionOutcome::Done(WorkOutcome::NoticeFailed(CodeError {
                    code: "failed".to_owned(),
                    message,
                }))
            }
        }
    }
}
