//! What a message may mean before the agent looks at it: its speech as text, consent, the wish for a
//! person. Also how messages are accepted: alone, with others, or over a model call.

use super::draft::Draft;
use super::keywords::KeywordList;
use super::pending::{MAX_TEXTS_BYTES, json_bytes};
use super::turn::Next;
use super::turn_state::{WaitingTurn, is_command};
use crate::agent::NewMessagePolicy;
use tandem_record::conversation::{
    AgentMode, CodeError, FlowPause, InboundMessage, ModelPurpose, ProfileChange,
    SessionEventBody as Body, SessionTimer, SessionWork, TurnCause, TurnOutcome, WorkPurpose,
};

/// Messages that become one turn at most.
const MAX_BURST: usize = 100;
const STOPPED: &str = "You will not get messages from us unless you write first.";
const STARTED: &str = "You will get messages from us again.";

impl Draft<'_> {
    /// Accepts a message; gives the turn it belongs to.
    pub(super) fn accept(&mut self, message: InboundMessage) -> u64 {
        let window = self.cx.agent.inbound;
        let is_held = window.debounce_ms > 0 && !is_command(&message.body);
        if is_held && self.would_overfill_burst(&message.body) {
            self.emit(Body::BurstClosed);
        }
        let held_until = is_held.then(|| {
            let burst = self.session.burst.as_ref();
            let latest = burst
                .map_or(self.now, |b| b.opened_at)
                .plus_ms(window.max_wait_ms);
            self.now.plus_ms(window.debounce_ms).min(latest)
        });
        self.emit(Body::MessageReceived {
            message: Box::new(message),
            held_until,
        });
        if !is_held {
            let turn = self.session.last_turn;
            self.interrupt_model_call();
            return turn;
        }
        let burst = self.session.burst.as_ref();
        let (turn, count) = burst.map_or((0, 0), |b| (b.number, b.messages.len()));
        if count >= MAX_BURST {
            self.emit(Body::BurstClosed);
        }
        turn
    }

    /// The joined texts may be the answer to a question, which is one record of a journal.
    fn would_overfill_burst(&self, text: &str) -> bool {
        let held = self.session.burst.iter().flat_map(|burst| &burst.messages);
        let bytes: usize = held.map(|message| json_bytes(&message.body)).sum();
        bytes > 0 && bytes.saturating_add(json_bytes(text)) > MAX_TEXTS_BYTES
    }

    /// The window closes: what arrived in it is one turn.
    pub(super) fn close_burst(&mut self) {
        if self.is_due(&SessionTimer::Burst) {
            self.emit(Body::BurstClosed);
            self.interrupt_model_call();
        }
    }

    /// A message cancels the classic model call that is under way, if the agent wants that.
    fn interrupt_model_call(&mut self) {
        let turn = self.session.turn.as_ref();
        let pending = turn.and_then(|turn| turn.pending.as_ref());
        let calls_model = pending.is_some_and(|work| {
            let purpose = ModelPurpose::Chat;
            work.purpose == WorkPurpose::Model { purpose }
        });
        if calls_model && self.is_interrupted() {
            self.drop_pending_work();
            self.end_turn(TurnOutcome::Interrupted);
        }
    }

    /// Whether a later message takes over the turn under way. Flows are never interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        let turn = self.session.turn.as_ref();
        let is_classic = self.session.flow.is_none()
            && turn.is_some_and(|turn| matches!(turn.cause, TurnCause::Message { .. }));
        let mut waiting = self.session.waiting.iter();
        is_classic
            && self.session.takeover.is_none()
            && self.cx.agent.on_new_message == NewMessagePolicy::Interrupt
            && waiting.any(WaitingTurn::is_plain_message)
    }

    /// Who writes to the user now.
    pub(super) fn agent_mode(&self) -> AgentMode {
        self.session.mode.unwrap_or(self.cx.agent.agent_mode)
    }

    pub(super) fn listen(&mut self) -> Next {
        let turn = self.turn();
        let message = turn.cause.message().filter(|_| turn.transcript.is_none());
        let speech = message.filter(|m| matches!(m.kind.as_deref(), Some("voice" | "audio")));
        if let Some(media) = speech.and_then(|message| message.media.clone()) {
            let timeout_ms = self.cx.agent.timeouts.stt_ms;
            let work = SessionWork::Transcribe { media, timeout_ms };
            self.request(WorkPurpose::Transcript, work);
            return Next::Wait;
        }
        let is_consent = self.read_consent();
        if self.is_taken_from_agent() {
            return self.route_to_human();
        }
        if is_consent && !self.has_open_question() {
            return Next::DONE;
        }
        if self.wants_human() && self.agent_mode() != AgentMode::Off {
            return self.call_human();
        }
        Next::BeforeLlm
    }

    /// The message is read as text; what could not be read keeps its written part.
    pub(super) fn use_transcript(&mut self, result: &Result<String, CodeError>) -> Next {
        let text = match result {
            Ok(heard) => Some(self.with_other_texts(heard)),
            Err(error) => {
                self.report_failure("transcription", &error.message);
                None
            }
        };
        self.emit(Body::MessageTranscribed { text });
        Next::Listen
    }

    /// What was said, after what else was written in the same burst.
    fn with_other_texts(&self, heard: &str) -> String {
        match &self.turn().cause {
            TurnCause::Message {
                message, joined, ..
            } if joined.len() > 1 => format!("{}\n{heard}", message.body).trim().to_owned(),
            _ => heard.to_owned(),
        }
    }

    /// The user is asked something that this message may answer.
    fn has_open_question(&self) -> bool {
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.as_ref());
        self.session.approval.is_some()
            || self.session.asked_workflow_question().is_some()
            || matches!(
                pause,
                Some(FlowPause::Ask { .. } | FlowPause::Confirm { .. })
            )
    }

    /// Whether the message refuses or allows messages the user does not cause. A change is confirmed,
    /// a repetition is not.
    fn read_consent(&mut self) -> bool {
        let Some(consent) = &self.cx.agent.consent else {
            return false;
        };
        let text = self.turn().text();
        let is_one_of =
            |words: &[String]| KeywordList::new(words.iter().map(String::as_str)).equals(text);
        let stops = is_one_of(&consent.stop_keywords);
        if !stops && !is_one_of(&consent.start_keywords) {
            return false;
        }
        let proactive = !stops;
        let known = self.session.start.user.consent.map(|known| known.proactive);
        if known.unwrap_or(true) != proactive {
            self.emit(Body::ProfileChanged(Box::new(ProfileChange {
                proactive: Some(proactive),
                ..ProfileChange::default()
            })));
            let to = self.session.start.address.clone();
            self.send_side_message(&to, if proactive { STARTED } else { STOPPED });
        }
        true
    }
}
