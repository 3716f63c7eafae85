//! What opening hours change: the text that greets an escalation, and how its time is counted.

use super::draft::Draft;
use super::turn::Next;
use tandem_record::Timestamp;
use tandem_record::conversation::{CandidateOrigin, EscalationMode};

impl Draft<'_> {
    /// The user is told that a person was asked, where the agent has a text for that.
    pub(super) fn acknowledge(&mut self, mode: EscalationMode) -> Next {
        match self.acknowledgement(mode) {
            Some(text) => self.respond(&text, CandidateOrigin::Ack, None),
            None => Next::DONE,
        }
    }

    /// What the user is told when an escalation opens. While nobody is there it may be another text.
    pub(super) fn acknowledgement(&self, mode: EscalationMode) -> Option<String> {
        let hitl = &self.cx.agent.hitl;
        let hours = hitl.escalation_hours(mode);
        let is_closed = hours.is_some_and(|hours| !hours.is_open(self.now));
        let outside = hitl.escalation.outside_hours_text.as_ref();
        let text = outside.filter(|_| is_closed);
        text.or(hitl.escalation.auto_ack_text.as_ref()).cloned()
    }

    /// When the time of an escalation is over that begins now.
    pub(super) fn escalation_deadline(&self, mode: EscalationMode, ms: u64) -> Timestamp {
        let hitl = &self.cx.agent.hitl;
        match hitl.escalation_hours(mode) {
            Some(hours) if hitl.escalation.count_open_hours_only => {
                hours.plus_open_ms(self.now, ms)
            }
            _ => self.now.plus_ms(ms),
        }
    }

    /// How much of an escalation's time is left.
    pub(super) fn time_until(&self, mode: EscalationMode, deadline: Timestamp) -> u64 {
        let hitl = &self.cx.agent.hitl;
        match hitl.escalation_hours(mode) {
            Some(hours) if hitl.escalation.count_open_hours_only => {
                hours.open_ms_between(self.now, deadline)
            }
            _ => deadline.ms_since(self.now),
        }
    }
}
