//! Texts on their way to the user.

use crate::session::state::ChatSession;
use crate::session::turn_state::{HeldDraft, PendingReport, Turn, UnsentText};
use tandem_record::Timestamp;
use tandem_record::conversation::{
    CandidateOrigin, ResponseSource, SessionEvent, SessionEventBody as Body,
};

impl ChatSession {
    pub(super) fn fold_response(&mut self, event: &SessionEvent, at: Timestamp) {
        match &event.body {
            Body::ResponsePrepared { candidate, source } => {
                if candidate.origin == CandidateOrigin::Fallback {
                    self.owes_fallback = false;
                }
                let is_of_flow = *source == ResponseSource::Flow;
                if self
                    .turn
                    .as_ref()
                    .is_some_and(|turn| is_of_flow && turn.flow_id.is_none())
                {
                    self.turn_speaks_for_flow();
                }
                if let Some(turn) = &mut self.turn {
                    turn.candidates = candidate.index + 1;
                    turn.candidate_action = None;
                    turn.source = *source;
                    turn.structured = candidate.structured.clone().or(turn.structured.take());
                }
            }
            Body::ResponseQueued {
                effect_id,
                to,
                message,
                candidate,
                remembered,
                ..
            } => {
                self.own_sends.add(effect_id, to, &message.text);
                let is_response = candidate.origin.passes_before_response();
                let mut text = self.subject(event, is_response, at);
                let turn = self.turn.as_ref();
                text.is_of_agent = message.author.is_none()
                    && match candidate.origin {
                        CandidateOrigin::Command
                        | CandidateOrigin::Human
                        | CandidateOrigin::Forward
                        | CandidateOrigin::Proxy => false,
                        CandidateOrigin::Side => !turn.is_some_and(Turn::is_admin_command),
                        _ => true,
                    };
                let number = text.turn;
                self.unsent.insert(effect_id.clone(), text);
                if *remembered {
                    self.message_count += 1;
                    self.remember(message.clone());
                }
                self.note_human_text(&message.text, message.author.as_ref(), at);
                if let Some(turn) = &mut self.turn
                    && turn.number == number
                    && is_response
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
                    subject: self.subject(event, candidate.origin.passes_before_response(), at),
                };
                self.drafts.insert(draft_id.clone(), draft);
            }
            Body::DraftDecided { draft_id, .. } => drop(self.drafts.remove(draft_id)),
            // It was never said.
            Body::ResponseSuppressed {
                effect_id: Some(effect_id),
                ..
            } => {
                self.unsent.remove(effect_id);
                self.own_sends.forget(effect_id);
                let id = effect_id.as_str();
                if let Some(at) = self.memory.iter().rposition(|entry| entry.id == id) {
                    self.memory.remove(at);
                    self.message_count -= 1;
                }
            }
            Body::SendFailed { effect_id, .. } => {
                self.unsent.remove(effect_id);
                // The network may have it all the same.
                self.own_sends.note_sent(effect_id, &[], at);
            }
            Body::ResponseSent {
                effect_id,
                provider_message_id,
                further_ids,
                speech,
                ..
            } => {
                self.unsent.remove(effect_id);
                let ids: Vec<&str> = provider_message_id
                    .iter()
                    .chain(further_ids)
                    .map(String::as_str)
                    .collect();
                self.own_sends.note_sent(effect_id, &ids, at);
                let bytes = speech.as_ref().map_or(0, |speech| speech.bytes);
                self.media_bytes = self.media_bytes.saturating_add(bytes);
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
                let UnsentText {
                    turn, flow, meta, ..
                } = self.subject(event, true, at);
                let inbound = self.turn.as_ref().and_then(|turn| turn.inbound());
                self.reports.push_back(PendingReport {
                    turn,
                    call: call.clone(),
                    inbound,
                    queued_at: at,
                    flow,
                    meta,
                });
            }
            _ => {}
        }
    }

    /// What a text belongs to: the turn under way if it is of that turn, else what its event says.
    pub(super) fn subject(
        &self,
        event: &SessionEvent,
        is_response: bool,
        at: Timestamp,
    ) -> UnsentText {
        let number = event.turn.unwrap_or(self.last_turn);
        let turn = self.turn.as_ref().filter(|turn| turn.number == number);
        match turn {
            Some(turn) if is_response => self.subject_of(turn, at),
            _ => UnsentText {
                turn: number,
                queued_at: at,
                flow: event.flow.clone(),
                meta: event.response.as_deref().cloned().filter(|_| is_response),
                is_of_agent: false,
                is_withheld: false,
            },
        }
    }

    /// Texts of a turn that are not sent yet are told of the state after the turn.
    pub(super) fn note_state_after_turn(&mut self) {
        let Some(turn) = &self.turn else { return };
        let state = self.hitl_state_after(turn);
        let escalation = self.escalation_after(turn);
        let number = turn.number;
        let of_turn = self.unsent.values_mut().filter(|text| text.turn == number);
        for meta in of_turn.filter_map(|text| text.meta.as_mut()) {
            state.clone_into(&mut meta.hitl_state);
            meta.escalation_id.clone_from(&escalation);
        }
    }
}
