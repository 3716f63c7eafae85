//! What admins do to the session of a test.

use super::harness::TestSession;
use crate::session::SessionRefusal;
use tandem_record::conversation::{
    AdminActor, AdminRequest, EscalationDecision, SessionCommand, SessionReply,
};

impl TestSession {
    pub(super) fn resolve(
        &mut self,
        approved: bool,
        by: &str,
    ) -> Result<SessionReply, SessionRefusal> {
        let decision = EscalationDecision {
            approved,
            message: None,
            action_data: None,
            claimed_by: None,
        };
        let escalation = None;
        self.act(
            by,
            AdminRequest::Resolve {
                escalation,
                decision,
            },
        )
    }

    /// An admin acts, and all work is performed.
    pub(super) fn act(
        &mut self,
        by: &str,
        request: AdminRequest,
    ) -> Result<SessionReply, SessionRefusal> {
        let actor = AdminActor {
            id: by.to_owned(),
            role: None,
            channel: "ui_api".to_owned(),
            metadata: None,
        };
        let reply = self.command(SessionCommand::Act { actor, request });
        self.perform_all();
        reply
    }

    /// An admin writes a command elsewhere that names this session by `target`.
    pub(super) fn run_command(&mut self, from: &str, text: &str, target: &str) -> Vec<String> {
        let before = self.sent.len();
        let message = Box::new(self.message(from, text));
        self.command(SessionCommand::RunCommand {
            message,
            transport: "desk".to_owned(),
            target: target.to_owned(),
        })
        .expect("accepted");
        self.perform_all();
        self.sent[before..].to_vec()
    }
}
