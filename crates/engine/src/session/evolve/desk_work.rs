//! Whose work an escalation is, and its time.

use crate::session::state::ChatSession;
use tandem_record::conversation::{FlowPause, RestartedTimeout, SessionEventBody as Body};
use tandem_record::{EscalationId, Timestamp};

impl ChatSession {
    pub(super) fn fold_desk_work(&mut self, body: &Body, at: Timestamp) {
        match body {
            Body::EscalationClaimed {
                escalation_id: id,
                by,
                stopped,
                wait_left_ms,
            } => {
                self.give(id, Some(by), Some(at));
                self.note_sign(id, at);
                if let Some(stopped) = stopped {
                    if let Some(escalation) = self.escalations.get_mut(id) {
                        escalation.stopped = Some(*stopped);
                        escalation.deadline = None;
                    }
                    self.change_wait(id, None, *wait_left_ms);
                }
            }
            Body::EscalationReleased {
                escalation_id: id,
                restarted,
            } => {
                self.give(id, None, None);
                self.restart(id, restarted.as_ref());
            }
            Body::EscalationAssigned {
                escalation_id: id,
                assignee,
                restarted,
            } => {
                self.give(id, Some(assignee), None);
                self.restart(id, restarted.as_ref());
            }
            _ => {}
        }
    }

    fn give(&mut self, id: &EscalationId, to: Option<&String>, claimed_at: Option<Timestamp>) {
        if let Some(escalation) = self.escalations.get_mut(id) {
            escalation.assignee = to.cloned();
            escalation.claimed_at = claimed_at;
        }
    }

    fn restart(&mut self, id: &EscalationId, restarted: Option<&RestartedTimeout>) {
        let Some(restarted) = restarted else { return };
        if let Some(escalation) = self.escalations.get_mut(id) {
            escalation.stopped = None;
            escalation.deadline = restarted.deadline;
        }
        self.change_wait(id, restarted.wait_deadline, None);
    }

    fn change_wait(&mut self, id: &EscalationId, until: Option<Timestamp>, left: Option<u64>) {
        let pause = self.flow.as_mut().and_then(|flow| flow.pause.as_mut());
        if let Some(FlowPause::Wait {
            escalation_id: Some(escalation),
            deadline,
            left_ms,
            ..
        }) = pause
            && escalation == id
        {
            *deadline = until;
            *left_ms = left;
        }
    }
}
