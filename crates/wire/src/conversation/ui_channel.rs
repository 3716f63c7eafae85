//! The UI channel (Z-41): what a client on the web is sent, as JSON frames over a WebSocket.
//!
//! [`UiProjection`] is the one path from stored events of a session to a visitor. A visitor sees what was said
//! to them and what they may do next, never ids of people, reasons of admins, reserved keys or the code's own
//! data. A text is shown when its transport took it: one that was suppressed before is never shown.

use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use tandem_record::conversation::{
    AgentMode, CandidateOrigin, ConfirmOutcome, LedgerMessage, MediaRef, SessionEnd, SessionEvent,
    SessionEventBody as Body, SessionStart,
};
use tandem_record::{EffectId, InterruptId, MediaId, Recorded, Seq, SessionId};

/// Keys of the host, which visitors are not shown.
const RESERVED_PREFIX: &str = "__zupa.";
/// More options than this are not offered as buttons.
const MAX_OPTIONS: usize = 8;

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UiSpeaker {
    Visitor,
    Agent,
    /// A person who answers for the agent.
    Colleague,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UiTurnState {
    Started,
    Ended,
}

/// What became of a message of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UiAckStatus {
    Accepted,
    Duplicate,
    /// Not taken; the client may send it again later.
    Ratelimited,
    Overloaded,
    /// Not taken and never will be.
    Refused,
}

/// One frame to a client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub enum UiFrame {
    /// The first frame. The client keeps `client_id` and connects with it again.
    Connected {
        client_id: String,
        agent_id: String,
        title: String,
    },
    /// All frames that follow are of this session.
    Session {
        session_id: SessionId,
        /// The client saw its beginning before, and goes on where it was.
        resumed: bool,
        /// The history begins later than the session.
        shortened: bool,
    },
    Message {
        id: String,
        from: UiSpeaker,
        text: String,
        at: String,
        sequence: Seq,
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<CandidateOrigin>,
        #[serde(skip_serializing_if = "Option::is_none")]
        turn_id: Option<String>,
        /// The text as speech; the client asks for its bytes with `GET_MEDIA`.
        #[serde(skip_serializing_if = "Option::is_none")]
        speech: Option<MediaRef>,
    },
    /// A recording that the client asked for.
    Media {
        id: MediaId,
        content_type: String,
        /// In base64.
        data: String,
    },
    /// A piece of an answer that is not final.
    TokenChunk {
        /// The turn that answers.
        id: String,
        content: String,
    },
    /// What was streamed in a turn is not what is sent: it is gone, or the next message replaces it.
    Suppressed {
        turn_id: String,
        sequence: Seq,
    },
    Turn {
        id: String,
        state: UiTurnState,
        sequence: Seq,
    },
    /// The agent waits for one of these words.
    Question {
        id: InterruptId,
        options: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<String>,
        sequence: Seq,
    },
    QuestionClosed {
        id: InterruptId,
        timed_out: bool,
        sequence: Seq,
    },
    /// Changed keys of the session; `null` for a deleted one.
    StateDelta {
        delta: BTreeMap<String, Value>,
        sequence: Seq,
    },
    SessionEnded {
        reason: SessionEnd,
        sequence: Seq,
    },
    Ack {
        message_id: String,
        status: UiAckStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    Error {
        code: &'static str,
        message: String,
    },
}

/// Who is shown a session, and how.
#[derive(Clone, Debug)]
pub struct UiReader {
    /// Before the client's own ids in the ids of its messages.
    pub own_id_prefix: String,
    /// Words for yes and no where the flow names none.
    pub confirm_words: (String, String),
    /// The session keys to show; all but reserved ones if absent.
    pub state_keys: Option<Vec<String>>,
}

/// The frames of one session, event by event.
pub struct UiProjection {
    reader: UiReader,
    session: SessionId,
    /// Where the user is written to. Texts to others are not shown.
    address: String,
    /// Events up to this one were seen before: they are folded and not shown.
    after: Option<Seq>,
    /// Texts that no transport took yet.
    queued: HashMap<EffectId, QueuedText>,
    turn: Option<TurnUnderWay>,
    /// The one that waits while another takes place.
    aside: Option<TurnUnderWay>,
    /// Options of the confirmation that the flow is about to ask.
    options: Vec<String>,
    question: Option<InterruptId>,
    /// A person has the floor: nothing more of an answer is shown.
    is_taken_over: bool,
    /// Nothing that the agent writes is sent without a person.
    is_held_back: bool,
}

struct QueuedText {
    message: LedgerMessage,
    origin: CandidateOrigin,
    turn: Option<u64>,
}

struct TurnUnderWay {
    number: u64,
    has_streamed: bool,
    has_queued: bool,
}

impl UiProjection {
    pub fn new(start: &SessionStart, after: Option<Seq>, reader: UiReader) -> Self {
        Self {
            reader,
            session: start.session_id.clone(),
            address: start.address.clone(),
            after,
            queued: HashMap::new(),
            turn: None,
            aside: None,
            options: Vec::new(),
            question: None,
            is_taken_over: false,
            is_held_back: false,
        }
    }

    /// A piece of the answer of the turn under way.
    pub fn piece(&mut self, content: &str) -> Option<UiFrame> {
        if self.is_taken_over || self.is_held_back {
            return None;
        }
        let turn = self.turn.as_mut()?;
        turn.has_streamed = true;
        Some(UiFrame::TokenChunk {
            id: self.session.turn_id(turn.number),
            content: content.to_owned(),
        })
    }

    /// What the client is sent for an event.
    pub fn frames(&mut self, recorded: &Recorded<SessionEvent>) -> Vec<UiFrame> {
        let frames = self.fold(recorded);
        match Some(recorded.seq) <= self.after {
            true => Vec::new(),
            false => frames,
        }
    }

    fn fold(&mut self, recorded: &Recorded<SessionEvent>) -> Vec<UiFrame> {
        let (seq, turn) = (recorded.seq, recorded.event.turn);
        match &recorded.event.body {
            Body::MessageReceived { message, .. } => {
                let id = message.message_id.as_str();
                let own = id.strip_prefix(&self.reader.own_id_prefix);
                vec![UiFrame::Message {
                    id: own.unwrap_or(id).to_owned(),
                    from: UiSpeaker::Visitor,
                    text: message.body.clone(),
                    at: message.received_at.rfc3339(),
                    sequence: seq,
                    origin: None,
                    turn_id: None,
                    speech: None,
                }]
            }
            Body::TurnStarted { .. } => {
                self.aside = self.turn.take();
                self.turn = turn.map(|number| TurnUnderWay {
                    number,
                    has_streamed: false,
                    has_queued: false,
                });
                self.turn_frame(turn, UiTurnState::Started, seq)
            }
            Body::TurnEnded(_) => {
                if self.aside.as_ref().map(|aside| aside.number) == turn {
                    std::mem::swap(&mut self.turn, &mut self.aside);
                }
                let ended = self.turn.take();
                self.turn = self.aside.take();
                let is_lost = ended.is_some_and(|turn| turn.has_streamed && !turn.has_queued);
                let lost = turn.filter(|_| is_lost).map(|number| UiFrame::Suppressed {
                    turn_id: self.session.turn_id(number),
                    sequence: seq,
                });
                let mut frames: Vec<UiFrame> = lost.into_iter().collect();
                frames.extend(self.turn_frame(turn, UiTurnState::Ended, seq));
                frames
            }
            Body::ModeChanged { mode } => {
                self.is_held_back = *mode != AgentMode::Auto;
                match self.is_held_back {
                    true => self.withdraw(seq),
                    false => Vec::new(),
                }
            }
            Body::ResponseQueued {
                effect_id,
                to,
                message,
                candidate,
                ..
            } if *to == self.address => {
                // Another text than the one that was streamed.
                let replaced = match candidate.origin {
                    CandidateOrigin::Fallback => self.withdraw(seq),
                    _ => Vec::new(),
                };
                if let Some(under_way) = &mut self.turn {
                    under_way.has_queued = true;
                }
                let text = QueuedText {
                    message: message.clone(),
                    origin: candidate.origin,
                    turn,
                };
                self.queued.insert(effect_id.clone(), text);
                replaced
            }
            Body::ResponseSent {
                effect_id, speech, ..
            } => {
                let sent = self.queued.remove(effect_id);
                sent.map(|sent| self.message(effect_id, sent, speech.clone(), seq))
                    .into_iter()
                    .collect()
            }
            Body::ResponseSuppressed {
                effect_id: Some(effect_id),
                ..
            }
            | Body::SendFailed { effect_id, .. } => {
                let turn = self.queued.remove(effect_id).and_then(|text| text.turn);
                let suppressed = turn.map(|number| UiFrame::Suppressed {
                    turn_id: self.session.turn_id(number),
                    sequence: seq,
                });
                suppressed.into_iter().collect()
            }
            Body::LiveTakeoverStarted { .. } => {
                self.is_taken_over = true;
                self.withdraw(seq)
            }
            Body::LiveTakeoverEnded(_) => {
                self.is_taken_over = false;
                Vec::new()
            }
            Body::KvChanged { key, value } if self.shows_key(key) => {
                let value = value.clone().unwrap_or_default();
                vec![UiFrame::StateDelta {
                    delta: BTreeMap::from([(key.clone(), value)]),
                    sequence: seq,
                }]
            }
            Body::FlowEffectStarted { effect, .. } => {
                self.options = self.options_of(effect);
                Vec::new()
            }
            Body::ConfirmRequested {
                interrupt_id,
                deadline,
                has_schema,
                ..
            } => {
                self.question = Some(interrupt_id.clone());
                let mut options = std::mem::take(&mut self.options);
                if options.is_empty() && !has_schema {
                    let (yes, no) = self.reader.confirm_words.clone();
                    options = vec![yes, no];
                }
                vec![UiFrame::Question {
                    id: interrupt_id.clone(),
                    options,
                    deadline: Some(deadline.rfc3339()),
                    sequence: seq,
                }]
            }
            Body::ConfirmResolved { decision, .. } => {
                self.closed(seq, *decision == ConfirmOutcome::TimedOut)
            }
            Body::ConfirmTimedOut { .. } => self.closed(seq, true),
            Body::FlowEnded { .. } | Body::FlowFailed { .. } | Body::FlowDiverged { .. } => {
                self.closed(seq, false)
            }
            Body::SessionEnded { reason } => {
                let mut frames = self.closed(seq, false);
                frames.push(UiFrame::SessionEnded {
                    reason: *reason,
                    sequence: seq,
                });
                frames
            }
            // Nothing else concerns a visitor.
            _ => Vec::new(),
        }
    }

    /// What was streamed of the answer under way is not sent.
    fn withdraw(&mut self, sequence: Seq) -> Vec<UiFrame> {
        let under_way = self.turn.as_mut().filter(|turn| turn.has_streamed);
        let streamed = under_way.filter(|turn| !turn.has_queued).map(|turn| {
            turn.has_streamed = false;
            turn.number
        });
        let lost = streamed.map(|number| UiFrame::Suppressed {
            turn_id: self.session.turn_id(number),
            sequence,
        });
        lost.into_iter().collect()
    }

    fn turn_frame(&self, turn: Option<u64>, state: UiTurnState, sequence: Seq) -> Vec<UiFrame> {
        let frame = turn.map(|number| UiFrame::Turn {
            id: self.session.turn_id(number),
            state,
            sequence,
        });
        frame.into_iter().collect()
    }

    fn message(
        &self,
        id: &EffectId,
        sent: QueuedText,
        speech: Option<MediaRef>,
        sequence: Seq,
    ) -> UiFrame {
        UiFrame::Message {
            id: id.to_string(),
            from: match sent.message.author {
                Some(_) => UiSpeaker::Colleague,
                None => UiSpeaker::Agent,
            },
            text: sent.message.text,
            at: sent.message.at.rfc3339(),
            sequence,
            origin: Some(sent.origin),
            turn_id: sent.turn.map(|turn| self.session.turn_id(turn)),
            speech,
        }
    }

    /// The open question is over, if there is one.
    fn closed(&mut self, sequence: Seq, timed_out: bool) -> Vec<UiFrame> {
        let open = self.question.take();
        let frame = open.map(|id| UiFrame::QuestionClosed {
            id,
            timed_out,
            sequence,
        });
        frame.into_iter().collect()
    }

    fn shows_key(&self, key: &str) -> bool {
        let is_listed = |keys: &Vec<String>| keys.iter().any(|listed| listed == key);
        !key.starts_with(RESERVED_PREFIX) && self.reader.state_keys.as_ref().is_none_or(is_listed)
    }

    /// The words that answer a confirmation: those of its schema if it lists them, else yes and no.
    fn options_of(&self, effect: &Value) -> Vec<String> {
        if effect["type"] != "interrupt.confirm" {
            return Vec::new();
        }
        let first = |name: &str, plain: &str| {
            let own = effect[name].get(0).and_then(Value::as_str);
            own.unwrap_or(plain).to_owned()
        };
        let (yes, no) = &self.reader.confirm_words;
        let yes_no = || {
            vec![
                first("positiveKeywords", yes),
                first("negativeKeywords", no),
            ]
        };
        let schema = &effect["responseSchema"];
        if schema.is_null() || schema["type"] == "boolean" {
            return yes_no();
        }
        let listed = schema["enum"].as_array();
        let listed = listed.filter(|words| words.len() <= MAX_OPTIONS);
        let words = listed.map(|words| words.iter().filter_map(Value::as_str));
        words.map_or_else(Vec::new, |words| words.map(str::to_owned).collect())
    }
}
