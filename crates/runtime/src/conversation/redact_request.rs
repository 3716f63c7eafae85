//! Takes secrets out of what admins ask for, before it is decided on: the log, the answer to the request and the flow
//! see the same, and the same request again is known as the same.

use crate::runtime::Runtime;
use tandem_record::conversation::{AdminRequest, DraftDecision, SessionCommand};

impl Runtime {
    pub(super) fn redact_admin_command(&self, command: &mut SessionCommand) {
        match command {
            SessionCommand::Authorized { command, .. } => self.redact_admin_command(command),
            SessionCommand::Act { request, .. } => self.redact_admin_request(request),
            _ => {}
        }
    }

    fn redact_admin_request(&self, request: &mut AdminRequest) {
        match request {
            AdminRequest::Resolve { decision, .. } => {
                let texts = [&mut decision.message, &mut decision.claimed_by];
                for text in texts.into_iter().flatten() {
                    self.redact_in_place(text);
                }
                if let Some(data) = &mut decision.action_data {
                    self.redact_value(data);
                }
            }
            AdminRequest::StartFlow { input, .. } => {
                if let Some(input) = input {
                    self.redact_value(input);
                }
            }
            AdminRequest::AnswerForUser { value, .. } => self.redact_value(value),
            AdminRequest::DecideDraft { decision, .. } => {
                if let DraftDecision::Edit(text) = decision {
                    self.redact_in_place(text);
                }
            }
            AdminRequest::SendTakeoverMessage { text, .. } => self.redact_in_place(text),
            AdminRequest::HandBack { note } => {
                if let Some(note) = note {
                    self.redact_in_place(note);
                }
            }
            AdminRequest::StopProxy { reason, .. } => {
                if let Some(reason) = reason {
                    self.redact_in_place(reason);
                }
            }
            // Names of admins, which the agent's rules compare.
            AdminRequest::Desk { .. }
            | AdminRequest::TakeOver
            | AdminRequest::AbortFlow
            | AdminRequest::EndSession
            | AdminRequest::SetMode { .. }
            | AdminRequest::SettleDivergence { .. } => {}
        }
    }
}
