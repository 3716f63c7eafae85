//! Flows that ask for a person, and wait until the person gives the floor back.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, EscalationStatus, SessionEventBody as Body, TakeoverEndReason, TakeoverOrigin,
};

fn escalate() -> Value {
    json!({"type": "interrupt.escalate", "mode": "live_takeover", "reason": "angry"})
}

fn desk(config: Value, flow: Code) -> TestSession {
    let mut fields = json!({"beforeLLM": {"$fn": true},
        "model": {"provider": "scripted", "script": {"answers": []}}});
    let given = config.as_object().expect("an object").clone();
    fields.as_object_mut().expect("an object").extend(given);
    let mut desk = TestSession::new(fields, &[("live", flow)]);
    route_on_start(&mut desk);
    desk
}

fn payload(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Escalates, waits with this timeout, says what it got.
fn waiting(timeout_seconds: Option<u64>) -> Code {
    code(move |step, with, _| match step {
        0 => effect(escalate()),
        1 => {
            let mut wait = json!({"type": "interrupt.wait", "waitFor": "live_handback"});
            if let Some(seconds) = timeout_seconds {
                wait["timeoutSeconds"] = json!(seconds);
            }
            effect(wait)
        }
        2 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    })
}

/// Z-76 (half: the other mode), Z-77 (half: the result of a takeover), Z-83 (half: the payload of a handback),
/// Z-88 (half: by a flow), Z-255 (half: nobody holds it at first)
#[test]
fn flow_waits_for_the_handback_and_gets_the_transcript() {
    let mut desk = desk(
        json!({"hitl": {"escalationDefaults": {"autoAckText": "One moment."}}}),
        waiting(None),
    );
    assert_eq!(desk.say("start live"), ["One moment."]);
    assert_eq!(desk.paused_on(), Some("live_handback"));
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    let by = |body: &Body| {
        matches!(
            body,
            Body::LiveTakeoverStarted {
                by: TakeoverOrigin::Effect,
                ..
            }
        )
    };
    assert_eq!(desk.count(by), 1);
    let open = desk.state().takeover_escalation().expect("open").clone();
    assert_eq!(
        (open.assignee.clone(), open.deadline),
        (None, Some(desk.now.plus_ms(86_400_000)))
    );
    desk.say("I want a person");
    desk.take_over("ana").expect("nobody holds it");
    let held = desk.state().takeover_escalation().expect("open");
    assert_eq!(
        (held.id.clone(), held.assignee.as_deref()),
        (open.id.clone(), Some("ana"))
    );
    desk.write_in_takeover("ana", "Here I am.")
        .expect("her floor");
    desk.hand_back("ana", Some("calm")).expect("a flow goes on");
    assert_eq!(desk.sent.len(), 3, "{:?}", desk.sent);
    let told = payload(&desk.sent[2]);
    assert_eq!(told["outcome"], "handed_back");
    assert_eq!(
        (&told["by"], &told["note"]),
        (&json!("ana"), &json!("calm"))
    );
    assert_eq!(told["escalationId"], json!(open.id));
    let lines: Vec<_> = told["transcript"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| {
            (
                line["from"].as_str().unwrap(),
                line["text"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        lines,
        [("user", "I want a person"), ("human", "Here I am.")]
    );
    assert_eq!(
        desk.state().escalation(&open.id).expect("known").status,
        EscalationStatus::Resolved
    );
}

/// Z-80
#[test]
fn flow_does_not_speak_and_may_not_ask_while_a_person_has_the_floor() {
    let flow = code(|step, with, _| match step {
        0 => effect(escalate()),
        1 => effect(json!({"type": "say", "text": "I am still here"})),
        2 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        3 => {
            assert_eq!(text_of(with), "hitl_active");
            effect(json!({"type": "interrupt.confirm", "question": "Sure?"}))
        }
        4 => {
            assert_eq!(text_of(with), "hitl_active");
            effect(json!({"type": "interrupt.wait", "waitFor": "live_handback"}))
        }
        _ => done(),
    });
    let mut desk = desk(json!({}), flow);
    assert!(desk.say("start live").is_empty());
    assert_eq!(desk.suppressed(), ["live_takeover"]);
    assert_eq!(desk.paused_on(), Some("live_handback"));
}

/// Z-78 (half: a handback before the wait), Z-85 (half: a takeover of this run is enough)
#[test]
fn handback_before_the_wait_is_kept() {
    let flow = code(|step, with, _| match step {
        0 => effect(escalate()),
        1 => effect(json!({"type": "tool", "name": "note", "args": {}})),
        2 => effect(json!({"type": "interrupt.wait", "waitFor": "timeout", "timeoutSeconds": 60})),
        3 => effect(json!({"type": "interrupt.wait", "waitFor": "live_handback"})),
        4 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = desk(json!({"tools": [{"name": "note", "kind": "record"}]}), flow);
    desk.say("start live");
    assert_eq!(desk.paused_on(), Some("timeout"));
    desk.wait_seconds(61);
    assert_eq!(
        desk.paused_on(),
        Some("timeout"),
        "the sleep waits for the handback"
    );
    desk.hand_back("ana", None).expect("a flow goes on");
    let told = payload(&desk.sent[0]);
    assert_eq!(
        (&told["outcome"], &told["by"]),
        (&json!("handed_back"), &json!("ana"))
    );
}

/// Z-82 (half: a takeover), Z-253
#[test]
fn deadline_of_the_wait_ends_the_takeover() {
    let mut desk = desk(json!({}), waiting(Some(60)));
    desk.say("start live");
    let id = desk.state().takeover_escalation().expect("open").id.clone();
    desk.take_over("ana").expect("nobody holds it");
    desk.wait_seconds(61);
    let told = payload(&desk.sent[0]);
    assert_eq!(told["outcome"], "timed_out");
    assert_eq!(
        (&told["timedOut"], &told["approved"]),
        (&json!(true), &json!(false))
    );
    assert!(!desk.state().is_taken_over());
    assert_eq!(
        desk.state().escalation(&id).expect("known").status,
        EscalationStatus::TimedOut
    );
    let timed_out = |body: &Body| matches!(body, Body::LiveTakeoverEnded(ended) if ended.reason == TakeoverEndReason::Timeout);
    assert_eq!(desk.count(timed_out), 1);
}

/// A takeover belongs to the session: it goes on when the flow that asked for it has ended.
#[test]
fn takeover_outlives_its_flow() {
    let flow = code(|step, _, _| match step {
        0 => effect(escalate()),
        _ => done(),
    });
    let mut desk = desk(
        json!({"model": {"provider": "scripted", "script": {"answers": []}}}),
        flow,
    );
    desk.say("start live");
    assert!(desk.state().flow().is_none());
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    assert!(desk.say("hello?").is_empty());
    desk.hand_back("ana", None).expect("open");
    assert_eq!(desk.say("hello?"), ["model speaks"]);
}

/// A takeover is handed back, not decided: waiting for a decision about it is waiting for nothing.
#[test]
fn decision_about_a_takeover_is_nothing_to_wait_for() {
    let flow = code(|step, with, _| match step {
        0 => effect(escalate()),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        2 => {
            assert_eq!(text_of(with), "nothing_to_wait_for");
            effect(escalate())
        }
        _ => done(),
    });
    let mut desk = desk(json!({}), flow);
    desk.say("start live");
    assert!(desk.state().is_taken_over());
}

/// Z-88 (half: an admin may take over while a flow waits for a decision, which is pending again afterwards)
#[test]
fn pending_decision_is_pending_again_after_the_handback() {
    let mut desk = super::escalations::waiting_desk_with(json!({
        "model": {"provider": "scripted", "script": {"answers": []}}}));
    let pending = desk.state().attached_escalation().expect("open").id.clone();
    desk.take_over("ana").expect("free");
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    assert!(
        desk.act(
            "ana",
            AdminRequest::StartFlow {
                flow_id: "refund".into(),
                input: None
            }
        )
        .is_err()
    );
    desk.hand_back("ana", None).expect("a flow waits");
    assert_eq!(desk.state().hitl_mode(), Some("pending_admin_resolution"));
    assert_eq!(
        desk.state().shown_escalation().map(|e| &e.id),
        Some(&pending)
    );
    desk.resolve(true, "ana").expect("open");
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("approved, 0 queued")
    );
}
