//! Live takeovers: who has the floor, what is said meanwhile, which turns wait.

use crate::session::state::ChatSession;
use crate::session::takeover_state::{Takeover, waits_for_handback};
use std::collections::VecDeque;
use tandem_record::conversation::{
    Author, SessionEvent, SessionEventBody as Body, TakeoverDirection, TakeoverEnding,
    TakeoverOrigin,
};
use tandem_record::{EscalationId, Timestamp};

impl ChatSession {
    pub(super) fn fold_takeover(&mut self, event: &SessionEvent, at: Timestamp) {
        match &event.body {
            Body::LiveTakeoverStarted {
                escalation_id,
                by,
                idle_handback_ms,
            } => {
                let asks = matches!(by, TakeoverOrigin::Effect | TakeoverOrigin::UserRequest);
                self.takeover = Some(Takeover {
                    escalation: escalation_id.clone(),
                    started_at: at,
                    opened_in: event.turn.filter(|_| asks),
                    idle_handback_ms: *idle_handback_ms,
                    last_sign_at: at,
                    transcript: VecDeque::new(),
                    transcript_bytes: 0,
                    speakers: Vec::new(),
                });
                for text in self.unsent.values_mut().filter(|text| text.is_of_agent) {
                    text.is_withheld = true;
                }
                let all = std::mem::take(&mut self.waiting);
                let (held, waiting) = all
                    .into_iter()
                    .partition(|waiting| waits_for_handback(&waiting.cause));
                (self.held, self.waiting) = (held, waiting);
            }
            Body::LiveTakeoverMessage {
                direction: TakeoverDirection::HumanToUser,
                ..
            } => {
                if let Some(takeover) = &mut self.takeover {
                    takeover.last_sign_at = at;
                }
            }
            Body::LiveTakeoverMessage {
                direction: TakeoverDirection::UserToHuman,
                message_id,
            } => {
                let (Some(takeover), Some(turn)) = (&mut self.takeover, &self.turn) else {
                    return;
                };
                // Several messages of one turn are one text.
                let last = turn.cause.message().map(|message| &message.message_id);
                if last == Some(message_id) {
                    takeover.add_line("user", turn.text(), at);
                }
            }
            Body::LiveTakeoverForwarded(forwarded) => {
                let text = self.subject(event, false, at);
                self.unsent.insert(forwarded.effect_id.clone(), text);
            }
            Body::LiveTakeoverEnded(ended) => {
                let ending = TakeoverEnding {
                    escalation: ended.escalation_id.clone(),
                    reason: ended.reason,
                    note: ended.note.clone(),
                    actor: event.actor.clone(),
                };
                let payload = self.handback_payload(&ending, at);
                if let Some(flow) = &mut self.flow {
                    flow.handback = Some(payload);
                }
                self.takeover = None;
                let mut waiting = std::mem::take(&mut self.held);
                waiting.append(&mut self.waiting);
                self.waiting = waiting;
                self.remember(ended.entry.clone());
            }
            Body::ExternalReplyRecorded { message, .. } => {
                self.message_count += 1;
                self.note_human_text(&message.text, message.author.as_ref(), at);
                self.remember((**message).clone());
            }
            _ => {}
        }
    }

    /// A text to the user that a person wrote.
    pub(super) fn note_human_text(&mut self, text: &str, author: Option<&Author>, at: Timestamp) {
        if let (Some(takeover), Some(author)) = (&mut self.takeover, author) {
            takeover.add_line("human", text, at);
            takeover.add_speaker(&author.actor_id);
        }
    }

    /// The person who works on the takeover gave a sign.
    pub(super) fn note_sign(&mut self, escalation: &EscalationId, at: Timestamp) {
        let takeover = self.takeover.as_mut();
        if let Some(takeover) = takeover.filter(|takeover| takeover.escalation == *escalation) {
            takeover.last_sign_at = at;
        }
    }
}
