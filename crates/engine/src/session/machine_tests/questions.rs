//! Questions of flows: reminders, schemas in code, what the code is told, answers for the user, consent.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use crate::session::{ProgramStep, Resume, SessionRefusal};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, FlowFailure, FlowRecord, SessionEventBody as Body, SessionTimer,
};

fn one(first: Value) -> Code {
    code(move |step, with, _| match step {
        0 => effect(first.clone()),
        1 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    })
}

fn desk(config: Value, flow: Code) -> TestSession {
    let mut fields = json!({"beforeLLM": {"$fn": true}});
    let given = config.as_object().expect("an object").clone();
    fields.as_object_mut().expect("an object").extend(given);
    let mut desk = TestSession::new(fields, &[("one", flow)]);
    route_on_start(&mut desk);
    desk
}

/// Z-242 (half: unanswered question is followed by its reminders)
#[test]
fn unanswered_question_is_followed_by_its_reminders() {
    let ask = json!({"type": "ask", "key": "x", "text": "x?", "reminders": [
        {"afterSeconds": 60, "text": "Still there?"}, {"afterSeconds": 120, "text": "Last call."}]});
    let mut desk = desk(json!({}), one(ask));
    desk.say("start one");
    desk.wait_seconds(60);
    assert_eq!(desk.sent, ["x?", "Still there?"]);
    desk.wait_seconds(60);
    assert_eq!(desk.sent.last().map(String::as_str), Some("Last call."));
    desk.wait_seconds(60);
    assert_eq!(desk.sent.len(), 3);
    assert_eq!(desk.say("7"), ["7"]);
}

/// Z-192 (half: deadlines of one session that passed together take effect in their order)
#[test]
fn overdue_deadlines_take_effect_in_their_order() {
    let waits = code(|step, _, _| match step {
        0 => effect(
            json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r",
            "timeoutSeconds": 20}),
        ),
        1 => effect(
            json!({"type": "ask", "key": "x", "text": "x?", "reminders": [
            {"afterSeconds": 10, "text": "r1"}, {"afterSeconds": 30, "text": "r2"}]}),
        ),
        _ => done(),
    });
    let mut desk = desk(json!({}), waits);
    desk.say("start one");
    let before = desk.events.len();
    desk.wait_seconds(100);
    let order: Vec<&str> = desk.events[before..]
        .iter()
        .filter_map(|event| match event {
            Body::ResponsePrepared { candidate, .. } => Some(candidate.text.as_str()),
            Body::EscalationTimedOut { .. } => Some("timed out"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["r1", "timed out", "r2"]);
}

/// §12.1: the question is prepared before the flow waits.
#[test]
fn question_is_prepared_before_the_flow_waits() {
    let ask = json!({"type": "ask", "key": "x", "text": "x?"});
    let mut desk = desk(json!({}), one(ask));
    desk.say("start one");
    let order: Vec<&str> = desk
        .events
        .iter()
        .filter_map(|event| match event {
            Body::FlowStarted { .. } => Some("flow.started"),
            Body::ResponsePrepared { .. } => Some("response:prepared"),
            Body::FlowPaused { .. } => Some("flow.paused"),
            Body::ResponseSent { .. } => Some("response:sent"),
            _ => None,
        })
        .collect();
    let expected = [
        "flow.started",
        "response:prepared",
        "flow.paused",
        "response:sent",
    ];
    assert_eq!(order, expected);
}

/// Z-242 (half: answer cancels the reminders)
#[test]
fn answer_cancels_the_reminders() {
    let confirm = json!({"type": "interrupt.confirm", "question": "Sure?", "timeoutSeconds": 600,
        "reminders": [{"afterSeconds": 60, "text": "Well?"}]});
    let mut desk = desk(json!({}), one(confirm));
    desk.say("start one");
    assert_eq!(desk.say("yes"), ["true"]);
    let timers = desk.state().required_timers();
    assert!(
        timers.keys().all(|timer| *timer == SessionTimer::Idle),
        "{timers:?}"
    );
    desk.say("start one");
    desk.now = desk.now.plus_ms(60_000);
    assert_eq!(
        desk.say("no"),
        ["Well?", "false"],
        "the reminder was due before the answer"
    );
}

/// Z-192 (half: the order of the deadlines of one session, whichever timer is fired first)
#[test]
fn reminder_that_was_due_comes_before_the_timeout() {
    for seconds in [60, 600] {
        let confirm = json!({"type": "interrupt.confirm", "question": "Sure?", "timeoutSeconds": 600,
            "reminders": [{"afterSeconds": seconds, "text": "Well?"}]});
        let mut desk = desk(json!({}), one(confirm));
        desk.say("start one");
        desk.now = desk.now.plus_ms(1_000_000);
        let due: Vec<SessionTimer> = desk.state().required_timers().into_keys().collect();
        let is_timeout = |timer: &&SessionTimer| matches!(timer, SessionTimer::Interrupt { .. });
        let timeout = due.iter().find(is_timeout).cloned();
        desk.fire(timeout.expect("the question has a deadline"));
        due.into_iter().for_each(|timer| desk.fire(timer));
        desk.perform_all();
        assert_eq!(desk.sent[..2], ["Sure?", "Well?"], "after {seconds} s");
        assert_eq!(desk.sent.len(), 3, "the flow goes on: {:?}", desk.sent);
    }
}

/// §10.6, Z-71 (half: a schema that is code is asked in the program; its parsed value is the result)
#[test]
fn schema_in_code_reads_the_reply() {
    let confirm = json!({"type": "interrupt.confirm", "question": "How many?",
        "responseSchema": {"$standard": true}});
    let mut desk = desk(json!({}), one(confirm));
    desk.say("start one");
    assert_eq!(desk.say("many"), ["How many?"]);
    assert_eq!(desk.say("3"), [r#"{"parsed":3}"#]);
}

/// Z-54 (half: ctx.answers), Z-73 (half: ctx.lastInterrupt)
#[test]
fn code_is_told_answers_and_how_the_last_interrupt_ended() {
    let flow = code(|step, _, _| match step {
        0 => effect(json!({"type": "ask", "key": "date", "text": "When?"})),
        1 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        2 => effect(json!({"type": "tool", "name": "note", "args": {}})),
        _ => done(),
    });
    let config = json!({"tools": [{"name": "note", "kind": "record"}]});
    let mut desk = desk(config, flow);
    desk.say("start one");
    desk.say("Monday");
    let told = desk.last_context();
    assert_eq!(told["answers"], json!({"date": "Monday"}));
    assert_eq!(told["inbound"]["body"], "Monday");
    desk.say("sure, ok");
    let told = desk.last_context();
    let last = &told["lastInterrupt"];
    let got = (&last["kind"], &last["outcome"], &last["text"]);
    assert_eq!(
        got,
        (&json!("confirm"), &json!("positive"), &json!("sure, ok"))
    );
    let mut segments = desk
        .journal
        .iter()
        .rev()
        .filter_map(|(_, record)| match record {
            FlowRecord::Segment { context, .. } => Some(json!(context)),
            _ => None,
        });
    let recorded = segments.next().expect("the turn went on with the run");
    for (member, value) in told.as_object().expect("members of ctx") {
        assert_eq!(
            recorded[member], *value,
            "the journal has what the code was told"
        );
    }
}

/// A turn without a message has no `ctx.inbound`.
/// Z-20 (half: a turn without a message has no ctx.inbound), Z-73 (half: ctx.lastInterrupt of a timeout)
#[test]
fn timeout_is_told_to_the_code() {
    let mut desk = desk(
        json!({}),
        one(json!({"type": "interrupt.confirm", "question": "Sure?"})),
    );
    desk.say("start one");
    desk.wait_seconds(301);
    assert_eq!(desk.sent.last().map(String::as_str), Some("false"));
    let told = desk.last_context();
    assert_eq!(told["lastInterrupt"]["outcome"], "timed_out");
    assert_eq!(told["inbound"], Value::Null);
    assert_eq!(told["trigger"], "timer");
}

/// Z-74 (half: timeout may end the flow or throw)
#[test]
fn timeout_may_end_the_flow_or_throw() {
    let confirm = json!({"type": "interrupt.confirm", "question": "Sure?"});
    let behavior = |name: &str| json!({"hitl": {"confirmDefaults": {"timeoutBehavior": name}}});
    let mut ended = desk(behavior("end_flow"), one(confirm.clone()));
    ended.say("start one");
    ended.wait_seconds(301);
    assert_eq!(ended.flow_ends(), [Some("confirm_timed_out".to_owned())]);
    let throwing = code(move |step, with, _| match (step, with) {
        (0, _) => effect(confirm.clone()),
        (_, Resume::Throw(error)) => ProgramStep::Failed(FlowFailure {
            code: "exception".to_owned(),
            message: error.code.clone(),
            details: None,
        }),
        _ => done(),
    });
    let mut thrown = desk(behavior("throw"), throwing);
    thrown.say("start one");
    thrown.wait_seconds(301);
    let is_it = |e: &Body| matches!(e, Body::FlowFailed { error } if error.message == "timed_out");
    assert_eq!(thrown.count(is_it), 1);
}

/// Z-48 (half: the same id twice in one run is refused, for interrupts only)
#[test]
fn author_ids_are_unique_among_interrupts() {
    let flow = code(|step, with, _| match step {
        0 => effect(json!({"type": "say", "text": "a", "id": "same"})),
        1 => effect(json!({"type": "interrupt.confirm", "question": "A?", "id": "same"})),
        2 => effect(json!({"type": "interrupt.confirm", "question": "B?", "id": "same"})),
        3 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = desk(json!({}), flow);
    assert_eq!(desk.say("start one"), ["a", "A?"]);
    assert_eq!(desk.say("yes"), ["bad_effect"]);
}

/// Z-203 (half: somebody with the right answers for the user)
#[test]
fn somebody_with_the_right_answers_for_the_user() {
    let mut desk = desk(
        json!({}),
        one(json!({"type": "ask", "key": "x", "text": "x?"})),
    );
    desk.say("start one");
    let pause = desk
        .state()
        .flow()
        .and_then(|f| f.pause())
        .expect("a question");
    let interrupt = pause.interrupt_id().clone();
    let value = json!("seven");
    let request = AdminRequest::AnswerForUser { interrupt, value };
    desk.act("ana", request.clone()).expect("open");
    assert_eq!(desk.sent, ["x?", "seven"]);
    assert_eq!(
        desk.act("ana", request),
        Err(SessionRefusal::QuestionClosed)
    );
}

/// Z-242 (half: consent is taken back and given and confirmed once)
#[test]
fn consent_is_taken_back_and_given_and_confirmed_once() {
    let config = json!({"consent": {"stopKeywords": ["stop"], "startKeywords": ["start"]}});
    let mut desk = desk(
        config,
        one(json!({"type": "ask", "key": "x", "text": "x?"})),
    );
    let consent = |desk: &TestSession| {
        let consent = desk.state().start().user.consent;
        consent.map(|consent| consent.proactive)
    };
    desk.say("hi");
    assert_eq!(consent(&desk), None);
    assert_eq!(desk.say("STOP").len(), 1);
    assert_eq!(consent(&desk), Some(false));
    assert!(desk.say("stop").is_empty(), "confirmed once");
    assert_eq!(desk.say("start").len(), 1);
    assert_eq!(consent(&desk), Some(true));
    assert_eq!(desk.model_calls.len(), 1, "the agent is not asked about it");
    desk.say("start one");
    let answered = desk.say("stop");
    assert_eq!(
        answered.last().map(String::as_str),
        Some("stop"),
        "it answers the question too"
    );
}

fn waits_for_a_yes() -> Code {
    code(|step, with, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "confirm_response"})),
        2 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    })
}

/// Z-72 (half: a wait for a confirmation reads replies as the confirmation itself does),
/// Z-83 (half: a wait for a confirmation reads replies as the confirmation itself does)
#[test]
fn wait_for_a_confirmation_asks_again_and_gives_up() {
    let mut desk = desk(json!({}), waits_for_a_yes());
    desk.say("start one");
    desk.say("yes");
    assert_eq!(desk.say("purple"), ["Sure?"]);
    assert_eq!(desk.say("green"), ["Sure?"]);
    let refused = json!({"outcome": "negative", "text": "blue", "value": false}).to_string();
    assert_eq!(desk.say("blue"), [refused]);
    let unrecognized = |e: &Body| matches!(e, Body::ConfirmUnrecognized { counted: true, .. });
    assert_eq!(desk.count(unrecognized), 2);
    assert_eq!(desk.count(|e| matches!(e, Body::PendingMessage { .. })), 0);
}

/// Z-72 (half: wait for a confirmation may take anything for a refusal),
/// Z-83 (half: wait for a confirmation may take anything for a refusal)
#[test]
fn wait_for_a_confirmation_may_take_anything_for_a_refusal() {
    let config = json!({"hitl": {"confirmDefaults": {"unrecognized": "decline"}}});
    let mut desk = desk(config, waits_for_a_yes());
    desk.say("start one");
    desk.say("yes");
    let refused = json!({"outcome": "negative", "text": "purple", "value": false}).to_string();
    assert_eq!(desk.say("purple"), [refused]);
}

/// Z-203 (half: the wait is a question to the user, so somebody with the right may answer it for them)
#[test]
fn wait_for_a_confirmation_is_answered_for_the_user() {
    let mut desk = desk(json!({}), waits_for_a_yes());
    desk.say("start one");
    desk.say("yes");
    let flow = desk.state().flow().expect("a flow");
    let interrupt = flow.pause().expect("it waits").interrupt_id().clone();
    let value = json!(true);
    desk.act("ana", AdminRequest::AnswerForUser { interrupt, value })
        .expect("open");
    let agreed = json!({"outcome": "positive", "text": "true", "value": true}).to_string();
    assert_eq!(desk.sent.last(), Some(&agreed));
}

/// The hook looks at an answer of the user. Meanwhile something else ends the question, and comes too late.
fn answered_slowly(meanwhile: impl FnOnce(&mut TestSession)) -> TestSession {
    let confirm = json!({"type": "interrupt.confirm", "question": "Sure?", "timeoutSeconds": 60});
    let mut desk = desk(json!({}), one(confirm));
    desk.say("start one");
    desk.held.push("session.code");
    desk.receive("yes");
    desk.perform_all();
    meanwhile(&mut desk);
    assert_eq!(desk.sent, ["Sure?"], "the answer is not used yet");
    desk.held.clear();
    desk.perform_all();
    desk
}

/// Z-191 (half: a timer and a decision whose interrupt was closed before their turn came are late, and dropped)
#[test]
fn what_comes_for_a_closed_question_is_late() {
    let interrupt = |desk: &TestSession| {
        let pause = desk.state().flow().and_then(|flow| flow.pause());
        pause.expect("it waits").interrupt_id().clone()
    };
    let by_timer = answered_slowly(|desk| desk.wait_seconds(61));
    let by_decision = answered_slowly(|desk| {
        let interrupt = interrupt(desk);
        let value = json!(false);
        desk.act("ana", AdminRequest::AnswerForUser { interrupt, value })
            .expect("it is open");
        desk.perform_all();
    });
    for desk in [by_timer, by_decision] {
        assert_eq!(desk.sent, ["Sure?", "true"], "the answer came first");
        let asked = desk.events.iter().find_map(|event| match event {
            Body::InterruptPaused { interrupt_id, .. } => Some(interrupt_id),
            _ => None,
        });
        let late = desk.events.iter().filter_map(|event| match event {
            Body::InterruptLate { interrupt_id } => Some(interrupt_id),
            _ => None,
        });
        assert_eq!(late.collect::<Vec<_>>(), [asked.expect("it was asked")]);
        assert_eq!(
            desk.count(|e| matches!(e, Body::InterruptResumed { .. })),
            1
        );
        assert_eq!(desk.flow_ends(), [None]);
    }
}
