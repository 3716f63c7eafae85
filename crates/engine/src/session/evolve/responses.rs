//! Texts on their way to the user.

use crate::session::state::ChatSession;
use crate::session::turn_state::{HeldDraft, PendingReport};
use tandem_record::Timestamp;
use tandem_record::conversation::{SessionEvent, SessionEventBody as Body};

impl ChatSession {
    pub(super) fn fold_response(&mut self, event: &SessionEvent, at: Timestamp) {
        match &event.body {
            Body::ResponsePrepared { candidate, source } => {
                if let Some(turn) = &mut self.turn {
                    turn.candidates = candidate.index + 1;
                    turn.source = *source;
                    turn.structured = candidate.structured.clone().or(turn.structured.take());
                }
            }
            Body::ResponseQueued {
                effect_id,
                message,
                candidate,
                remembered,
                ..
            } => {
                let turn = event.turn.unwrap_or(self.last_turn);
                self.unsent.insert(effect_id.clone(), turn);
                if *remembered {
                    self.message_count += 1;
                    self.remember(message.clone());
                }
                if let Some(turn) = &mut self.turn
                    && candidate.origin.passes_before_response()
                {
                    turn.texts.push(message.text.clone());
                    turn.structured = candidate.structured.clone().or(turn.structured.take());
                }
            }
            Body::DraftHeld {
                draft_id,
                candidate,
            } => {
                let draft = HeldDraft {
                    candidate: candidate.clone(),
                    created_at: at,
                };
                self.drafts.insert(draft_id.clone(), draft);
            }
            Body::DraftDecided { draft_id, .. } => drop(self.drafts.remove(draft_id)),
            Body::ResponseSuppressed {
                effect_id: Some(effect_id),
                ..
            }
            | Body::ResponseSent { effect_id, .. }
            | Body::SendFailed { effect_id, .. } => {
                self.unsent.remove(effect_id);
            }
            Body::ResponseFailed {
                reason,
                fatal: true,
                ..
            } => {
                if let Some(turn) = &mut self.turn {
                    turn.failure = Some(reason.clone());
                }
            }
            Body::ReportQueued { call } => {
                let turn = event.turn.unwrap_or(self.last_turn);
                self.reports.push_back(PendingReport {
                    turn,
                    call: call.clone(),
                });
            }
            _ => {}
        }
    }
}
