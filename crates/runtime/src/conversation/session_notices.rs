//! Tells people outside of an escalation or of a held text, and records when nobody could be told.

use super::agent_host::{AgentHost, CallContext};
use super::network::QuestionNotice;
use super::notice_content;
use super::send_retry::may_try_again;
use super::session_work::SessionOutcome;
use crate::leases::LeasedEffect;
use crate::runtime::Runtime;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    CodeError, NoticeRequest, NoticeSubject, SessionWork, WorkOutcome,
};

impl Runtime {
    /// One attempt. Nobody is told of a question that was closed meanwhile.
    pub(super) async fn notify(
        &self,
        session: &ChatSession,
        agents: &dyn AgentHost,
        request: &NoticeRequest,
        context: &CallContext,
        work: &LeasedEffect<SessionWork>,
    ) -> SessionOutcome {
        let content = match &request.about {
            NoticeSubject::Escalation(id) => notice_content::of_escalation(session, id),
            NoticeSubject::Draft(id) => notice_content::of_draft(session, id),
        };
        let Some(content) = content else {
            return SessionOutcome::Done(WorkOutcome::Reported);
        };
        let notice = QuestionNotice {
            transport: &request.transport,
            to: &request.to,
            question: &content,
            link: None,
            key: &context.key,
            may_be_repeated: work.past.leases > 0,
        };
        match agents.notify(&context.agent, &notice, context.now).await {
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
