//! What an event belongs to beside its session: the turn, the flow run, the response, and the event that led
//! to it.

use super::draft::Draft;
use super::state::ChatSession;
use super::turn_state::{ConsumedOutcome, Turn, UnsentText};
use tandem_record::conversation::{FlowRef, ResponseMeta, SessionEventBody as Body, TurnCause};
use tandem_record::{Cause, EscalationId, Timestamp};

impl Draft<'_> {
    /// The turn of an event. Between turns it is the last one that was given out: an admin's decision
    /// belongs to the turn it follows.
    pub(super) fn turn_of(&self, body: &Body) -> Option<u64> {
        let session = &self.session;
        let last = Some(session.last_turn).filter(|turn| *turn > 0);
        match body {
            // It joins the turn of those that are held already.
            Body::MessageReceived {
                held_until: Some(_),
                ..
            } if let Some(burst) = &session.burst => Some(burst.number),
            // The event gives out the next number.
            Body::MessageReceived { .. } | Body::TurnQueued { .. } => Some(session.last_turn + 1),
            Body::TurnStarted { .. } => self.next_turn().map(|waiting| waiting.number),
            Body::WorkFinished { effect_id } if self.delivered.is_none() => {
                let turn = session.turn_of_work(effect_id).map(|turn| turn.number);
                turn.or(self.caused_turn).or(last)
            }
            _ => {
                let under_way = session.turn.as_ref().map(|turn| turn.number);
                let delivered = self.delivered.as_ref().map(|text| text.turn);
                let known = delivered.or(under_way);
                known.or(self.caused_turn).or(last)
            }
        }
    }

    /// The flow run of an event: that of its text or escalation, else the active one.
    pub(super) fn flow_of(&self, body: &Body) -> Option<FlowRef> {
        if let Some(text) = &self.delivered {
            return text.flow.clone();
        }
        let session = &self.session;
        let of_escalation = |id: &EscalationId| {
            let escalation = session.escalations.get(id)?;
            Some(FlowRef {
                flow_id: escalation.flow_id.clone()?,
                flow_run_id: escalation.flow_run_id.clone()?,
            })
        };
        let named = match body {
            Body::EscalationClaimed { escalation_id, .. }
            | Body::EscalationReleased { escalation_id, .. }
            | Body::EscalationAssigned { escalation_id, .. }
            | Body::EscalationResolved { escalation_id, .. }
            | Body::EscalationTimedOut { escalation_id, .. }
            | Body::EscalationCanceled { escalation_id, .. }
            | Body::EscalationDetached { escalation_id }
            | Body::LiveTakeoverStarted { escalation_id, .. } => of_escalation(escalation_id),
            Body::LiveTakeoverEnded(ended) => of_escalation(&ended.escalation_id),
            _ => None,
        };
        let active = session.flow.as_ref();
        named.or_else(|| active.map(super::ActiveFlow::reference))
    }

    /// Where a response comes from and how it was decided about, for events about one.
    pub(super) fn response_of(&self, body: &Body) -> Option<Box<ResponseMeta>> {
        let is_about_response = match body {
            // Of a draft: its turn is over.
            Body::ResponseQueued { .. } => self.delivered.is_some(),
            Body::ResponsePrepared { .. }
            | Body::ResponseCanceled { .. }
            | Body::ResponseSuppressed { .. }
            | Body::ResponseSent { .. }
            | Body::ResponsePersisted { .. }
            | Body::ResponseFailed { .. } => true,
            _ => false,
        };
        if !is_about_response {
            return None;
        }
        if let Some(text) = &self.delivered {
            return text.meta.clone().map(Box::new);
        }
        let meta = self.session.response_meta(self.session.turn.as_ref()?);
        Some(Box::new(match body {
            // The event makes it the source of the turn, and nobody has decided about it.
            Body::ResponsePrepared { source, .. } => ResponseMeta {
                source: *source,
                before_response_action: None,
                ..meta
            },
            _ => meta,
        }))
    }

    /// The event that led to another one: the message of a turn, else the first event of the decision.
    pub(super) fn cause_of(&self, body: &Body) -> Option<Cause> {
        let waiting = self.next_turn().map(|waiting| &waiting.cause);
        if let (Body::TurnStarted { .. }, Some(TurnCause::Message { received, .. })) =
            (body, waiting)
        {
            return Some(Cause::Event(*received));
        }
        self.first_event().map(Cause::Event)
    }
}

impl ChatSession {
    /// What is told of the last candidate of a turn.
    pub(super) fn response_meta(&self, turn: &Turn) -> ResponseMeta {
        ResponseMeta {
            source: turn.source,
            before_llm_action: turn.before_llm_action.clone(),
            before_response_action: turn.candidate_action.clone(),
            hitl_state: self.hitl_state_after(turn).to_owned(),
            escalation_id: self.escalation_after(turn),
            proxy_id: self.bridge().map(|bridge| bridge.id.clone()),
            schedule: turn
                .cause
                .scheduled()
                .map(|scheduled| Box::new(scheduled.reference(&self.start.user.external_user_id))),
        }
    }

    /// What a person has to do after a turn, or what the turn used of it.
    pub(super) fn hitl_state_after(&self, turn: &Turn) -> &'static str {
        match (self.hitl_state(), turn.consumed) {
            (Some(mode), _) => mode,
            (None, Some(ConsumedOutcome::Resolved)) => "resolved",
            (None, Some(ConsumedOutcome::TimedOut)) => "timed_out",
            (None, None) => "none",
        }
    }

    /// The escalation that this is about.
    pub(super) fn escalation_after(&self, turn: &Turn) -> Option<EscalationId> {
        let open = self.shown_escalation().map(|open| open.id.clone());
        open.or_else(|| turn.escalation.clone())
    }

    /// The turn under way as what a text of it belongs to.
    pub(super) fn subject_of(&self, turn: &Turn, at: Timestamp) -> UnsentText {
        UnsentText {
            turn: turn.number,
            queued_at: at,
            flow: turn.flow(),
            meta: Some(self.response_meta(turn)),
            is_of_agent: false,
            is_withheld: false,
        }
    }
}
