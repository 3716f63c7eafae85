//! Flows: effects and their results, questions and deadlines.

use super::harness::{Code, TestSession, code, done, effect, failed, text_of};
use crate::session::{ProgramStep, Resume};
use serde_json::{Value, json};
use tandem_record::conversation::{
    FlowFailure, FlowRecord, SessionEventBody as Body, SessionTimer,
};

const ASKED: &str = "When do you want the appointment?";
const QUESTION: &str = "Confirm booking for Monday? Reply YES or NO";

/// The booking sample of the specification, step by step.
fn booking() -> Code {
    code(|step, with, _| match step {
        0 => effect(json!({"type": "ask", "key": "date", "text": ASKED})),
        1 => effect(json!({
            "type": "interrupt.confirm",
            "question": format!("Confirm booking for {}? Reply YES or NO", text_of(with)),
            "timeoutSeconds": 300,
            "positiveKeywords": ["yes", "ok", "confirm"],
            "negativeKeywords": ["no", "cancel"],
        })),
        2 if *with == Resume::Value(Some(json!(true))) => {
            effect(json!({"type": "tool", "name": "create_appointment", "args": {}}))
        }
        2 => effect(json!({"type": "say", "text": "Booking cancelled."})),
        3 if matches!(with, Resume::Value(Some(_))) => {
            effect(json!({"type": "say", "text": "Booked."}))
        }
        3 if matches!(with, Resume::Throw(_)) => ProgramStep::Failed(FlowFailure {
            code: "exception".to_owned(),
            message: text_of(with),
            details: None,
        }),
        3 => effect(json!({"type": "end", "reason": "user_declined"})),
        _ => done(),
    })
}

fn desk() -> TestSession {
    let mut desk = TestSession::new(
        json!({
            "tools": [{"name": "create_appointment", "kind": "record"}],
            "beforeLLM": {"$fn": true},
        }),
        &[("booking", booking())],
    );
    route_on_start(&mut desk);
    desk
}

/// `start <flow>` starts that flow.
pub(super) fn route_on_start(desk: &mut TestSession) {
    let hook = |call: &tandem_record::conversation::CodeCall| {
        let text = call.args[0]["text"].as_str().unwrap_or_default();
        match text.strip_prefix("start ") {
            Some(flow) => super::harness::value(json!({"action": "route_flow", "flowId": flow})),
            None => Default::default(),
        }
    };
    desk.functions
        .insert("beforeLLM".to_owned(), Box::new(hook));
}

/// Z-51 (half: the texts are sent), Z-54 (half: ask), Z-67 (half: a positive answer)
#[test]
fn accepted_booking_asks_confirms_and_books() {
    let mut desk = desk();
    assert_eq!(desk.say("start booking"), [ASKED]);
    assert_eq!(desk.paused_on(), Some("ask"));
    assert_eq!(desk.say("Monday"), [QUESTION]);
    assert_eq!(desk.state().hitl_mode(), Some("pending_confirm"));
    assert_eq!(desk.say("ok"), ["Booked."]);
    assert_eq!(desk.tool_calls.len(), 1);
    assert_eq!(desk.flow_ends(), [None]);
    assert_eq!(desk.state().hitl_mode(), None);
}

/// Z-10 (half: the turn that begins with its message)
#[test]
fn turn_that_begins_with_its_message_is_the_same_turn() {
    let (mut apart, mut at_once) = (desk(), desk());
    at_once.begins_at_once = true;
    let texts = [
        "hello",
        "start booking",
        "Monday",
        "maybe",
        "ok",
        "start booking",
        "/help",
    ];
    for text in texts {
        assert_eq!(at_once.say(text), apart.say(text), "{text}");
    }
    assert_eq!(at_once.events, apart.events);
    assert_eq!(at_once.journal, apart.journal);
}

/// Z-16 (half: message during a turn waits for its end)
#[test]
fn message_during_a_turn_waits_for_its_end() {
    let mut desk = desk();
    desk.begins_at_once = true;
    for text in ["start booking", "Monday"] {
        desk.say(text);
    }
    desk.held.push("session.tool");
    assert!(desk.say("ok").is_empty());
    assert!(
        desk.say("and then?").is_empty(),
        "the tool has not answered"
    );
    desk.held.clear();
    desk.perform_all();
    assert_eq!(desk.sent.last().map(String::as_str), Some("model speaks"));
    assert_eq!(desk.sent[desk.sent.len() - 2], "Booked.");
}

/// Z-59 (half: tool of a flow is called with the id of its effect)
#[test]
fn tool_of_a_flow_is_called_with_the_id_of_its_effect() {
    let mut desk = desk();
    desk.say("start booking");
    let run = desk.state().flow().expect("a flow").run_id().clone();
    desk.say("Monday");
    desk.say("yes");
    assert_eq!(desk.tool_calls[0].0.as_str(), format!("{run}:2"));
}

/// Z-73 (half: refused booking ends with the reason of the author)
#[test]
fn refused_booking_ends_with_the_reason_of_the_author() {
    let mut desk = desk();
    desk.say("start booking");
    desk.say("Monday");
    assert_eq!(desk.say("No, thanks"), ["Booking cancelled."]);
    assert_eq!(desk.flow_ends(), [Some("user_declined".to_owned())]);
    assert!(desk.tool_calls.is_empty());
}

/// Z-68 (half: the deadline of the effect), Z-73 (half: timeout), Z-75 (half: a late reply)
#[test]
fn unanswered_confirmation_counts_as_refusal_and_a_late_yes_is_an_ordinary_message() {
    let mut desk = desk();
    desk.say("start booking");
    desk.say("Monday");
    desk.wait_seconds(299);
    assert_eq!(desk.paused_on(), Some("confirm"));
    desk.wait_seconds(2);
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("Booking cancelled.")
    );
    assert!(
        desk.events
            .iter()
            .any(|e| matches!(e, Body::ConfirmTimedOut { .. }))
    );
    assert_eq!(desk.say("yes"), ["model speaks"]);
}

/// Z-69 (half: through the session), Z-72 (half: reprompts)
#[test]
fn unrecognized_replies_reprompt_twice_and_then_decline() {
    let mut desk = desk();
    desk.say("start booking");
    desk.say("Monday");
    let deadline = desk.state().flow().and_then(|f| f.pause()?.deadline());
    assert_eq!(desk.say("Do you know whether noon is free?"), [QUESTION]);
    assert_eq!(desk.say("yes or no"), [QUESTION]);
    assert_eq!(
        desk.state().flow().and_then(|f| f.pause()?.deadline()),
        deadline
    );
    assert_eq!(desk.say("maybe"), ["Booking cancelled."]);
}

/// Z-35 (half: a confirmation), Z-257 (half: it is asked again)
#[test]
fn message_received_before_the_question_does_not_answer_it() {
    let mut desk = desk();
    desk.say("start booking");
    desk.receive("Monday");
    desk.receive("yes");
    desk.perform_all();
    assert_eq!(desk.sent, [ASKED, QUESTION, QUESTION]);
    assert_eq!(desk.paused_on(), Some("confirm"));
    assert_eq!(desk.say("yes"), ["Booked."]);
}

/// Z-192 (half: deadline that passed comes before a later message)
#[test]
fn deadline_that_passed_comes_before_a_later_message() {
    let mut desk = desk();
    desk.say("start booking");
    desk.say("Monday");
    desk.now = desk.now.plus_ms(301_000);
    assert_eq!(desk.say("hello?"), ["Booking cancelled.", "model speaks"]);
}

/// Z-58 (half: failed tool is thrown into the flow)
#[test]
fn failed_tool_is_thrown_into_the_flow() {
    let mut desk = desk();
    let tool = |_: &_| failed("failed", "no rooms");
    desk.functions
        .insert("tools.create_appointment".to_owned(), Box::new(tool));
    desk.say("start booking");
    desk.say("Monday");
    let fallback = desk.agent.texts.fallback_reply.clone();
    assert_eq!(desk.say("yes"), [fallback]);
    assert!(desk.state().flow().is_none());
    assert_eq!(desk.say("hi"), ["model speaks"]);
}

/// Z-47 (half: an unknown type), Z-49 (half: null)
#[test]
fn yielded_value_that_is_no_effect_is_thrown_back() {
    let odd = code(|step, with, _| match step {
        0 => effect(json!({"type": "sayy", "text": "x"})),
        1 => {
            assert_eq!(text_of(with), "bad_effect");
            effect(Value::Null)
        }
        2 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("odd", odd)]);
    route_on_start(&mut desk);
    assert_eq!(desk.say("start odd"), ["bad_effect"]);
}

/// Z-60 (half: the other flow, with its input), Z-62 (half: end)
#[test]
fn handoff_starts_the_other_flow_in_the_same_turn() {
    let first = code(|step, _, _| match step {
        0 => effect(json!({"type": "handoff", "to": "second", "input": {"from": "Ada"}})),
        _ => effect(json!({"type": "say", "text": "never"})),
    });
    let second = code(|step, _, input| match step {
        0 => effect(json!({"type": "say", "text": format!("second for {}", input["from"])})),
        1 => effect(json!({"type": "end", "reason": "finished"})),
        _ => effect(json!({"type": "say", "text": "never"})),
    });
    let mut desk = TestSession::new(
        json!({"beforeLLM": {"$fn": true}}),
        &[("first", first), ("second", second)],
    );
    route_on_start(&mut desk);
    assert_eq!(desk.say("start first"), ["second for \"Ada\""]);
    let reasons = [Some("handoff".to_owned()), Some("finished".to_owned())];
    assert_eq!(desk.flow_ends(), reasons);
}

/// Z-50 (half: flow that produces effects without end is stopped)
#[test]
fn flow_that_produces_effects_without_end_is_stopped() {
    let endless = code(|_, _, _| effect(json!({"type": "say", "text": " "})));
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("endless", endless)]);
    route_on_start(&mut desk);
    let fallback = desk.agent.texts.fallback_reply.clone();
    assert_eq!(desk.say("start endless"), [fallback]);
    let is_limit = |e: &Body| matches!(e, Body::FlowFailed { error } if error.code == "flow_limit");
    assert!(desk.events.iter().any(is_limit));
}

/// Z-204 (half: every effect has its fingerprint in the journal)
#[test]
fn journal_has_every_effect_and_every_result() {
    let mut desk = desk();
    desk.say("start booking");
    desk.say("Monday");
    desk.say("no");
    let effects = desk
        .journal
        .iter()
        .filter(|(_, r)| matches!(r, FlowRecord::Effect { .. }));
    assert_eq!(effects.count(), 4);
    let results = desk
        .journal
        .iter()
        .filter(|(_, r)| matches!(r, FlowRecord::Result { .. }));
    assert_eq!(
        results.count(),
        3,
        "the last effect ends the run and has no result"
    );
}

/// Z-13 (half: the idle session ends), Z-14 (half: a mere question), Z-251 (half: idleness)
#[test]
fn idle_session_ends_with_a_flow_that_merely_asks() {
    let mut desk = desk();
    desk.say("start booking");
    desk.wait_seconds(15 * 60);
    assert!(desk.state().ended().is_some());
    assert_eq!(desk.flow_ends(), [Some("session_idle".to_owned())]);
}

/// Z-14 (half: session with an open confirmation is not idle)
#[test]
fn session_with_an_open_confirmation_is_not_idle() {
    let mut desk = desk();
    desk.say("start booking");
    desk.say("Monday");
    let timers = desk.state().required_timers();
    assert_eq!(timers.len(), 1, "the deadline only");
}

/// Z-249 (half: the sweeper has one timer for a session at rest, which every turn moves, and none for others)
#[test]
fn session_has_one_timer_for_its_idleness_at_most() {
    let mut desk = desk();
    let idle = |desk: &TestSession| {
        let timers = desk.state().required_timers().into_iter();
        let idle = timers.filter(|(timer, _)| *timer == SessionTimer::Idle);
        idle.map(|(_, due)| due).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        desk.say("hi");
        assert_eq!(idle(&desk), [desk.now.plus_ms(15 * 60_000)]);
        desk.wait_seconds(60);
    }
    desk.held.push("session.code");
    desk.receive("hi");
    desk.perform_all();
    assert_eq!(idle(&desk), [], "a turn is under way");
    desk.held.clear();
    desk.perform_all();
    desk.wait_seconds(15 * 60 - 1);
    assert!(desk.state().ended().is_none());
    desk.wait_seconds(1);
    assert!(desk.state().ended().is_some());
    assert_eq!(desk.state().required_timers().len(), 0);
}
