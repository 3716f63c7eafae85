//! What an event belongs to beside its session: the turn, the flow run, and the event that led to it.

use super::draft::Draft;
use tandem_record::conversation::{FlowRef, SessionEventBody as Body, TurnCause};
use tandem_record::{Cause, EscalationId};

impl Draft<'_> {
    /// The turn of an event. Between turns it is the last one that was given out: an admin's decision
    /// belongs to the turn it follows.
    pub(super) fn turn_of(&self, body: &Body) -> Option<u64> {
        let session = &self.session;
        let last = Some(session.last_turn).filter(|turn| *turn > 0);
        match body {
            // The event gives out the next number.
            Body::MessageReceived { .. } | Body::TurnQueued { .. } => Some(session.last_turn + 1),
            Body::TurnStarted { .. } => session.waiting.front().map(|waiting| waiting.number),
            _ => {
                let under_way = session.turn.as_ref().map(|turn| turn.number);
                let known = self.delivered_turn.or(under_way);
                known.or(self.caused_turn).or(last)
            }
        }
    }

    /// The flow run of an event: that of its escalation, else the active one.
    pub(super) fn flow_of(&self, body: &Body) -> Option<FlowRef> {
        let session = &self.session;
        let of_escalation = |id: &EscalationId| {
            let escalation = session.escalations.get(id)?;
            Some(FlowRef {
                flow_id: escalation.flow_id.clone()?,
                flow_run_id: escalation.flow_run_id.clone()?,
            })
        };
        let named = match body {
            Body::EscalationResolved { escalation_id, .. }
            | Body::EscalationTimedOut { escalation_id, .. }
            | Body::EscalationCanceled { escalation_id, .. }
            | Body::EscalationDetached { escalation_id } => of_escalation(escalation_id),
            _ => None,
        };
        let active = session.flow.as_ref();
        named.or_else(|| active.map(super::ActiveFlow::reference))
    }

    /// The event that led to another one: the message of a turn, else the first event of the decision.
    pub(super) fn cause_of(&self, body: &Body) -> Option<Cause> {
        let waiting = self.session.waiting.front().map(|waiting| &waiting.cause);
        if let (Body::TurnStarted { .. }, Some(TurnCause::Message { received, .. })) =
            (body, waiting)
        {
            return Some(Cause::Event(*received));
        }
        self.first_event().map(Cause::Event)
    }
}
