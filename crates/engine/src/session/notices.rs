//! Notices of escalations: whoever the agent's `hitl.notify` names is told of each one that opens.
//!
//! A notice is work of the decision that opens the escalation. What it says is read from the session when it is
//! sent, so nothing is said about an escalation that is closed by then. It decides nothing.

use super::draft::Draft;
use super::state::ChatSession;
use tandem_record::conversation::{
    EscalationRecord, NoticeRequest, SessionEvent, SessionEventBody as Body, SessionWork,
};
use tandem_record::{EffectId, EscalationId, Recorded};

impl Draft<'_> {
    /// Requests the notices that follow from an event.
    pub(super) fn notify_of(&mut self, recorded: &Recorded<SessionEvent>) {
        let Body::EscalationCreated(escalation) = &recorded.event.body else {
            return;
        };
        // An admin who took the floor needs nobody.
        if escalation.claimed_at.is_some() {
            return;
        }
        let agent = self.cx.agent;
        for (number, target) in agent.hitl.notify.iter().enumerate() {
            let request = NoticeRequest {
                transport: target.transport.clone(),
                to: target.address.clone(),
                escalation_id: escalation.id.clone(),
                attempts: 0,
            };
            let id = EffectId::from(format!("{}:notice:{number}", escalation.id));
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
