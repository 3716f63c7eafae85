//! Notices of questions: whoever the agent's `hitl.notify` names is told of each escalation that opens, and of each
//! text that waits for an approval.
//!
//! A notice is work of the decision that opens the question. What it says is read from the session when it is
//! sent, so nothing is said about a question that is closed by then. It decides nothing.

use super::draft::Draft;
use super::state::ChatSession;
use tandem_record::conversation::{
    EscalationRecord, NoticeRequest, NoticeSubject, SessionEvent, SessionEventBody as Body,
    SessionWork,
};
use tandem_record::{EffectId, EscalationId, Recorded};

impl Draft<'_> {
    /// Requests the notices that follow from an event.
    pub(super) fn notify_of(&mut self, recorded: &Recorded<SessionEvent>) {
        let (question, about) = match &recorded.event.body {
            // An admin who took the floor needs nobody.
            Body::EscalationCreated(escalation) if escalation.claimed_at.is_none() => {
                let id = escalation.id.clone();
                (escalation.id.to_string(), NoticeSubject::Escalation(id))
            }
            Body::DraftHeld { draft_id, .. } => {
                (draft_id.to_string(), NoticeSubject::Draft(draft_id.clone()))
            }
            _ => return,
        };
        let agent = self.cx.agent;
        for (number, target) in agent.hitl.notify.iter().enumerate() {
            let request = NoticeRequest {
                transport: target.transport.clone(),
                to: target.address.clone(),
                about: about.clone(),
                attempts: 0,
            };
            let id = EffectId::from(format!("{question}:notice:{number}"));
            self.add_work(id, SessionWork::Notify(request));
        }
    }
}

impl ChatSession {
    /// The escalation a notice is about, while there is something to decide.
    pub fn escalation_to_notify(&self, id: &EscalationId) -> Option<&EscalationRecord> {
        self.escalations.get(id).filter(|e| e.is_open())
    }
}
