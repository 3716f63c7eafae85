//! A live takeover as the state of a session knows it, and what is told of it when it ends.

use super::pending::{MAX_TEXTS_BYTES, json_bytes};
use super::state::ChatSession;
use super::turn_state::{Turn, WaitingTurn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use tandem_record::conversation::{
    EscalationRecord, SessionTimer, TakeoverEndReason, TakeoverEnding, TurnCause,
};
use tandem_record::{EscalationId, Timestamp};

/// Who ends a takeover that nobody hands back.
pub(super) const HOST: &str = "host";

/// A person has the floor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Takeover {
    pub(super) escalation: EscalationId,
    pub(super) started_at: Timestamp,
    /// The turn that asked for a person, and may tell the user so.
    pub(super) opened_in: Option<u64>,
    pub(super) idle_handback_ms: Option<u64>,
    /// When the person last did something.
    pub(super) last_sign_at: Timestamp,
    /// What was said, oldest first; the first lines are forgotten when it grows too long for a flow.
    pub(super) transcript: VecDeque<TakeoverLine>,
    pub(super) transcript_bytes: usize,
    /// People who wrote to the user, in the order of their first texts.
    pub(super) speakers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TakeoverLine {
    /// `user` or `human`.
    from: String,
    text: String,
    at: Timestamp,
}

impl Takeover {
    pub(super) fn add_line(&mut self, from: &str, text: &str, at: Timestamp) {
        /// What a line takes beside its text.
        const FIELDS: usize = 80;
        self.transcript_bytes += json_bytes(text) + FIELDS;
        self.transcript.push_back(TakeoverLine {
            from: from.to_owned(),
            text: text.to_owned(),
            at,
        });
        while self.transcript_bytes > MAX_TEXTS_BYTES {
            let Some(first) = self.transcript.pop_front() else {
                return;
            };
            self.transcript_bytes -= json_bytes(&first.text) + FIELDS;
        }
    }

    pub(super) fn add_speaker(&mut self, actor: &str) {
        if self.speakers.iter().all(|known| known != actor) {
            self.speakers.push(actor.to_owned());
        }
    }
}

impl ChatSession {
    /// The escalation of the takeover under way.
    pub fn takeover_escalation(&self) -> Option<&EscalationRecord> {
        self.escalations.get(&self.takeover.as_ref()?.escalation)
    }

    /// Whether a person has the floor.
    pub fn is_taken_over(&self) -> bool {
        self.takeover.is_some()
    }

    /// The escalation that readers are shown beside the mode: of a takeover, else of a pending decision.
    pub fn shown_escalation(&self) -> Option<&EscalationRecord> {
        self.takeover_escalation()
            .or_else(|| self.attached_escalation())
    }

    /// Turns that have not begun, those that wait for the end of a takeover included.
    pub(super) fn queued_turns(&self) -> impl Iterator<Item = &WaitingTurn> {
        self.waiting.iter().chain(&self.held)
    }

    /// The turn that ends the takeover, if it is under way or waits.
    pub(super) fn ending_turn(&self) -> Option<u64> {
        let is_ending = |cause: &TurnCause| matches!(cause, TurnCause::EndTakeover(_));
        let under_way = self.turns_under_way().filter(|turn| is_ending(&turn.cause));
        let waiting = self.waiting.iter().filter(|w| is_ending(&w.cause));
        let mut numbers = under_way
            .map(|turn| turn.number)
            .chain(waiting.map(|waiting| waiting.number));
        numbers.next()
    }

    /// When a takeover ends whose person gives no sign.
    pub(super) fn takeover_idle_at(&self) -> Option<(SessionTimer, Timestamp)> {
        let takeover = self.takeover.as_ref()?;
        let idle = takeover.idle_handback_ms?;
        let due = takeover.last_sign_at.plus_ms(idle);
        (self.ending_turn().is_none()).then_some((SessionTimer::TakeoverIdle, due))
    }

    /// What a flow that waits for the handback gets.
    pub(super) fn handback_payload(&self, ending: &TakeoverEnding, at: Timestamp) -> Value {
        let id = &ending.escalation;
        let queued = self.queued_inbound();
        match ending.reason {
            TakeoverEndReason::Timeout => json!({
                "outcome": "timed_out", "timedOut": true, "approved": false,
                "escalationId": id, "at": at.rfc3339(), "queuedInbound": queued,
            }),
            TakeoverEndReason::Canceled => json!({
                "outcome": "canceled", "approved": false, "escalationId": id,
                "reason": super::human::CANCELED,
            }),
            TakeoverEndReason::Handback
            | TakeoverEndReason::Idle
            | TakeoverEndReason::SessionEnded => {
                let takeover = self.takeover.as_ref();
                let lines = takeover.map(|takeover| {
                    let shown = takeover.transcript.iter();
                    let shown = shown.map(|line| {
                        json!({"from": line.from, "text": line.text, "at": line.at.rfc3339()})
                    });
                    shown.collect::<Vec<_>>()
                });
                let by = ending.actor.as_ref().map_or(HOST, |actor| &actor.id);
                let mut payload = json!({
                    "outcome": "handed_back",
                    "escalationId": id,
                    "by": by,
                    "transcript": lines.unwrap_or_default(),
                    "endedAt": at.rfc3339(),
                });
                if let Some(note) = &ending.note {
                    payload["note"] = json!(note);
                }
                payload
            }
        }
    }
}

/// Whether a turn waits for the end of a takeover: whatever would advance the flow or speak for the agent. A scheduled
/// turn is cancelled instead (Z-166).
pub(super) fn waits_for_handback(cause: &TurnCause) -> bool {
    match cause {
        TurnCause::Message { .. }
        | TurnCause::AdminCommand { .. }
        | TurnCause::Scheduled(_)
        | TurnCause::EndTakeover(_) => false,
        TurnCause::QueueReplay { .. }
        | TurnCause::Deadline { .. }
        | TurnCause::EscalationClosed { .. }
        | TurnCause::ProxyInput { .. }
        | TurnCause::ProxyClosed { .. }
        | TurnCause::ProxyEnding(_)
        | TurnCause::StartFlow(_)
        | TurnCause::Reminder { .. }
        | TurnCause::Answered { .. }
        | TurnCause::WorkflowAsked { .. }
        | TurnCause::WorkflowFinished { .. } => true,
    }
}

impl Turn {
    /// Whether it carries out a command for an admin who may use it.
    pub(super) fn is_admin_command(&self) -> bool {
        self.is_command() && self.actor.is_some()
    }
}
