//! What a visitor is sent for the events of a session, and what is kept from them.

use super::super::{UiFrame, UiProjection, UiReader};
use super::{AT, LATER, start};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AgentMode, Author, Candidate, CandidateOrigin, LedgerMessage, MessageRole, Modality,
    SessionEvent, SessionEventBody as Body, TurnOutcome, TurnTrigger,
};
use tandem_record::{Recorded, Seq};

/// One session as a client sees it.
struct Shown {
    projection: UiProjection,
    seq: u64,
}

impl Shown {
    fn from_start() -> Self {
        Self::after(None)
    }

    fn after(after: Option<Seq>) -> Self {
        let reader = UiReader {
            own_id_prefix: "web-1:".to_owned(),
            confirm_words: ("yes".to_owned(), "no".to_owned()),
            state_keys: None,
        };
        Self {
            projection: UiProjection::new(&start(), after, reader),
            seq: 0,
        }
    }

    fn event(&mut self, body: Body) -> Vec<Value> {
        let recorded = Recorded {
            seq: Seq(self.seq),
            at: AT,
            cause: None,
            event: SessionEvent {
                turn: Some(2),
                flow: None,
                actor: None,
                response: None,
                body,
            },
        };
        self.seq += 1;
        let frames = self.projection.frames(&recorded);
        frames.iter().map(|frame| json!(frame)).collect()
    }
}

fn turn_started() -> Body {
    Body::TurnStarted {
        trigger: TurnTrigger::Inbound,
        message_ids: Vec::new(),
        remembered: true,
    }
}

fn queued(key: &str, to: &str, author: Option<Author>) -> Body {
    let text = format!("text {key}");
    Body::ResponseQueued {
        effect_id: key.into(),
        to: to.to_owned(),
        message: LedgerMessage {
            id: key.to_owned(),
            role: MessageRole::Assistant,
            text: text.clone(),
            author,
            at: AT,
        },
        candidate: Candidate {
            index: 0,
            text,
            origin: CandidateOrigin::Say,
            modality: Modality::Text,
            structured: None,
        },
        remembered: true,
        transport: None,
    }
}

fn sent(key: &str) -> Body {
    Body::ResponseSent {
        effect_id: key.into(),
        provider_message_id: None,
        further_ids: Vec::new(),
        speech: None,
        template: None,
    }
}

fn confirm_event(has_schema: bool) -> Body {
    Body::ConfirmRequested {
        interrupt_id: "run-1:1".into(),
        question: "Sure?".to_owned(),
        deadline: LATER,
        has_schema,
    }
}

#[test]
fn text_is_shown_when_it_is_sent_and_to_whom_it_is_sent() {
    let mut shown = Shown::from_start();
    assert!(
        shown.event(queued("a", "u1", None)).is_empty(),
        "not sent yet"
    );
    let frames = shown.event(sent("a"));
    assert_eq!(
        frames,
        [
            json!({"type": "MESSAGE", "id": "a", "from": "agent", "text": "text a",
            "at": "2026-01-01T09:00:09.000Z", "sequence": 1, "origin": "say", "turnId": "s_1-t2"})
        ]
    );
    let colleague = Author {
        kind: "human".to_owned(),
        actor_id: "ana".to_owned(),
    };
    shown.event(queued("b", "u1", Some(colleague)));
    let frames = shown.event(sent("b"));
    assert_eq!(frames[0]["from"], "colleague");
    assert!(!frames[0].to_string().contains("ana"), "not who exactly");
    shown.event(queued("c", "finance-desk", None));
    assert!(shown.event(sent("c")).is_empty(), "for somebody else");
}

/// Z-41 (half: what was streamed and is not sent is said to be gone)
#[test]
fn streamed_text_that_is_not_sent_is_withdrawn() {
    let mut shown = Shown::from_start();
    assert_eq!(
        shown.projection.piece("stale"),
        None,
        "no turn is under way"
    );
    shown.event(turn_started());
    let piece = shown.projection.piece("Hel");
    let chunk = UiFrame::TokenChunk {
        id: "s_1-t2".to_owned(),
        content: "Hel".to_owned(),
    };
    assert_eq!(piece, Some(chunk));
    let frames = shown.event(Body::TurnEnded(TurnOutcome::Processed));
    let kinds: Vec<&Value> = frames.iter().map(|frame| &frame["type"]).collect();
    assert_eq!(kinds, ["SUPPRESSED", "TURN"]);

    shown.event(turn_started());
    shown.projection.piece("Hel");
    shown.event(queued("a", "u1", None));
    let frames = shown.event(Body::TurnEnded(TurnOutcome::Processed));
    assert_eq!(frames.len(), 1, "its text follows");
    let frames = shown.event(Body::ResponseSuppressed {
        effect_id: Some("a".into()),
        reason: "live_takeover".to_owned(),
    });
    assert_eq!(frames[0]["type"], "SUPPRESSED");
    assert!(!frames[0].to_string().contains("takeover"));
    assert!(shown.event(sent("a")).is_empty());
}

/// Z-241 (half: what was streamed before `off` is taken back at once, and nothing follows), Z-41
#[test]
fn streamed_text_is_withdrawn_when_the_agent_is_silenced() {
    for mode in [AgentMode::Off, AgentMode::DraftOnly] {
        let mut shown = Shown::from_start();
        shown.event(turn_started());
        shown.projection.piece("Hel");
        let frames = shown.event(Body::ModeChanged { mode });
        assert_eq!(frames[0]["type"], "SUPPRESSED");
        assert_eq!(shown.projection.piece("lo"), None);
        let mode = AgentMode::Auto;
        assert!(shown.event(Body::ModeChanged { mode }).is_empty());
        assert!(shown.projection.piece("again").is_some());
    }
}

/// Z-41 (half: the fallback reply replaces what was streamed)
#[test]
fn streamed_text_is_withdrawn_before_the_fallback_reply() {
    let mut shown = Shown::from_start();
    shown.event(turn_started());
    shown.projection.piece("Hel");
    let mut fallback = queued("a", "u1", None);
    if let Body::ResponseQueued { candidate, .. } = &mut fallback {
        candidate.origin = CandidateOrigin::Fallback;
    }
    assert_eq!(shown.event(fallback)[0]["type"], "SUPPRESSED");
    let frames = shown.event(Body::TurnEnded(TurnOutcome::Processed));
    assert_eq!(frames.len(), 1, "only once");
}

#[test]
fn options_are_the_words_the_flow_understands() {
    for (effect, expected) in [
        (json!({}), json!(["yes", "no"])),
        (
            json!({"positiveKeywords": ["aye"], "negativeKeywords": ["nay"]}),
            json!(["aye", "nay"]),
        ),
        (
            json!({"responseSchema": {"type": "string", "enum": ["red", "blue"]}}),
            json!(["red", "blue"]),
        ),
        (json!({"responseSchema": {"type": "number"}}), json!([])),
    ] {
        let has_schema = effect.get("responseSchema").is_some();
        let mut effect = effect;
        effect["type"] = json!("interrupt.confirm");
        let mut shown = Shown::from_start();
        shown.event(Body::FlowEffectStarted {
            step: 1,
            effect,
            host_calls: 0,
        });
        let frames = shown.event(confirm_event(has_schema));
        assert_eq!(frames[0]["options"], expected);
        let closed = shown.event(Body::FlowEnded { reason: None });
        assert_eq!(closed[0]["type"], "QUESTION_CLOSED");
    }
}

/// A client that comes back is sent what it has not seen, also a text that was queued before.
#[test]
fn events_before_the_cursor_are_folded_and_not_shown() {
    let mut shown = Shown::after(Some(Seq(1)));
    assert!(shown.event(queued("a", "u1", None)).is_empty());
    assert!(shown.event(turn_started()).is_empty(), "seen before");
    assert_eq!(shown.event(sent("a"))[0]["text"], "text a");
}

#[test]
fn nothing_of_the_host_is_shown() {
    let mut shown = Shown::from_start();
    let reserved = Body::KvChanged {
        key: "__zupa.hitl.mode".to_owned(),
        value: Some(json!("x")),
    };
    assert!(shown.event(reserved).is_empty());
    let deleted = Body::KvChanged {
        key: "cart".to_owned(),
        value: None,
    };
    assert_eq!(shown.event(deleted)[0]["delta"], json!({"cart": null}));
    let failed = Body::ResponseFailed {
        stage: "beforeLLM".to_owned(),
        reason: "secret".to_owned(),
        fatal: false,
    };
    assert!(shown.event(failed).is_empty());
}
