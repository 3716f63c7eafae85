//! Escalations and the flows around them: order, detachment, unavailable modes, deadlines.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use crate::session::{ProgramStep, SessionRefusal};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, EscalationDecision, SessionEventBody as Body, SessionReply,
};

fn escalate() -> Value {
    json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"})
}

fn desk(config: Value, flow: Code) -> TestSession {
    let mut fields = json!({"beforeLLM": {"$fn": true}});
    let given = config.as_object().expect("an object").clone();
    fields.as_object_mut().expect("an object").extend(given);
    let mut desk = TestSession::new(fields, &[("a", flow)]);
    route_on_start(&mut desk);
    desk
}

fn payload(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Z-30 (half: a question beside an escalation), Z-77 (half: the effect does not pause),
/// Z-78 (half: a decision before the wait)
#[test]
fn flow_asks_between_escalation_and_wait_and_an_early_decision_is_kept() {
    let flow = code(|step, with, _| match step {
        0 => effect(escalate()),
        1 => effect(json!({"type": "ask", "key": "x", "text": "meanwhile?"})),
        2 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        3 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let ack = json!({"hitl": {"escalationDefaults": {"autoAckText": "Asked."}}});
    let mut desk = desk(ack, flow);
    assert_eq!(desk.say("start a"), ["Asked.", "meanwhile?"]);
    assert_eq!(desk.state().hitl_mode(), Some("pending_admin_resolution"));
    desk.resolve(true, "ana").expect("open");
    assert_eq!(
        desk.paused_on(),
        Some("ask"),
        "the decision does not answer the question"
    );
    let said = desk.say("7");
    let told = payload(&said[0]);
    assert_eq!(
        (&told["outcome"], &told["approved"]),
        (&json!("resolved"), &json!(true))
    );
    assert_eq!(told["resolvedBy"], "ana");
}

/// Z-79 (half: the error), Z-85 (half: the error)
#[test]
fn second_escalation_and_waits_for_nothing_are_thrown() {
    let flow = code(|step, with, _| match step {
        0 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        1 => effect(json!({"type": "say", "text": text_of(with)})),
        2 => effect(json!({"type": "interrupt.wait", "waitFor": "live_handback"})),
        3 => effect(json!({"type": "say", "text": text_of(with)})),
        4 | 5 => effect(escalate()),
        6 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = desk(json!({}), flow);
    let nothing = "nothing_to_wait_for";
    assert_eq!(desk.say("start a"), [nothing, nothing, "escalation_open"]);
}

/// Z-64 (half: its escalation is detached), Z-151 (half: several detached ones), Z-152 (half: a detached one)
#[test]
fn escalation_of_an_ended_flow_stays_resolvable_and_resumes_nothing() {
    let flow = code(|step, _, _| match step {
        0 => effect(escalate()),
        _ => done(),
    });
    let mut desk = desk(json!({}), flow);
    desk.say("start a");
    assert_eq!(desk.state().hitl_mode(), None);
    assert_eq!(
        desk.say("hi"),
        ["model speaks"],
        "it does not block the session"
    );
    desk.say("start a");
    match desk.resolve(true, "ana") {
        Err(SessionRefusal::EscalationAmbiguous(ids)) => assert_eq!(ids.len(), 2),
        other => panic!("{other:?}"),
    }
    let id = desk.state().escalations().next().expect("two").id.clone();
    let decision = EscalationDecision {
        approved: true,
        message: Some("fine".to_owned()),
        action_data: None,
        claimed_by: Some("somebody".to_owned()),
    };
    let escalation = Some(id);
    let resolved = desk.act(
        "ana",
        AdminRequest::Resolve {
            escalation,
            decision,
        },
    );
    let Ok(SessionReply::Escalation(record)) = resolved else {
        panic!("{resolved:?}");
    };
    let resolution = record.resolution.expect("resolved");
    assert_eq!(resolution.resolved_by, "ana");
    assert_eq!(resolution.claimed_by.as_deref(), Some("somebody"));
    assert_eq!(
        desk.sent,
        ["model speaks"],
        "the message is data for the flow, which has ended"
    );
    desk.resolve(false, "ana").expect("the only one left");
}

/// Z-81 (half: unavailable takeover follows the fallback)
#[test]
fn unavailable_takeover_follows_the_fallback() {
    let live = || {
        code(|step, with, _| match step {
            0 => effect(
                json!({"type": "interrupt.escalate", "mode": "live_takeover", "reason": "r"}),
            ),
            1 => effect(json!({"type": "say", "text": text_of(with)})),
            _ => done(),
        })
    };
    let fallback = |mode: &str| json!({"hitl": {"escalationDefaults": {"fallbackMode": mode}}});
    let desk = |config: Value| {
        let mut desk = desk(config, live());
        desk.agent.hitl.takeover.adapter = None;
        desk
    };
    let mut classic = desk(fallback("classic"));
    assert_eq!(classic.say("start a"), ["model speaks"]);
    assert_eq!(
        classic.flow_ends(),
        [Some("escalation_unavailable".to_owned())]
    );
    let mut ended = desk(fallback("end_flow"));
    assert!(ended.say("start a").is_empty());
    let mut retried = desk(fallback("retry"));
    let told = payload(&retried.say("start a")[0]);
    assert_eq!(told["mode"], "async_resolution");
}

/// Z-84 (half: deadline of the wait closes the escalation)
#[test]
fn deadline_of_the_wait_closes_the_escalation() {
    let flow = code(|step, with, _| match step {
        0 => effect(escalate()),
        1 => effect(
            json!({"type": "interrupt.wait", "waitFor": "admin_resolution", "timeoutSeconds": 60}),
        ),
        2 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = desk(json!({}), flow);
    desk.say("start a");
    desk.wait_seconds(61);
    let told = payload(&desk.sent[0]);
    let expected = (&json!("timed_out"), &json!(true), &json!(false));
    assert_eq!(
        (&told["outcome"], &told["timedOut"], &told["approved"]),
        expected
    );
    assert_eq!(
        desk.count(|e| matches!(e, Body::EscalationTimedOut { .. })),
        1
    );
    assert_eq!(
        desk.resolve(true, "ana"),
        Err(SessionRefusal::EscalationNotFound)
    );
}

/// Z-83 (half: the durable sleep), Z-84 (half: the durable sleep)
#[test]
fn wait_for_a_timeout_is_a_sleep() {
    let flow = code(|step, with, _| match step {
        0 => {
            effect(json!({"type": "interrupt.wait", "waitFor": "timeout", "timeoutSeconds": 3600}))
        }
        1 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = desk(
        json!({"hitl": {"asyncPendingPolicy": {"behavior": "queue"}}}),
        flow,
    );
    desk.say("start a");
    desk.say("hello?");
    desk.wait_seconds(3_600);
    let told = payload(&desk.sent[0]);
    assert_eq!(told["outcome"], "elapsed");
    assert_eq!(told["queuedInbound"][0]["text"], "hello?");
    assert_eq!(
        desk.sent[1], "model speaks",
        "and is answered when the flow has ended"
    );
}

/// Z-72 (half: wait for the next reply uses the last confirmation),
/// Z-83 (half: wait for the next reply uses the last confirmation)
#[test]
fn wait_for_the_next_reply_uses_the_last_confirmation() {
    let flow = code(|step, with, _| match step {
        0 => effect(
            json!({"type": "interrupt.confirm", "question": "Sure?", "positiveKeywords": ["aye"]}),
        ),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "confirm_response"})),
        2 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = desk(json!({}), flow);
    desk.say("start a");
    desk.say("no");
    assert_eq!(desk.paused_on(), Some("confirm_response"));
    assert_eq!(desk.state().hitl_mode(), Some("pending_confirm"));
    assert_eq!(desk.say("perhaps"), ["Sure?"], "asked again");
    let told = payload(&desk.say("aye")[0]);
    assert_eq!(
        told,
        json!({"outcome": "positive", "value": true, "text": "aye"})
    );
}

/// Z-72 (half: of a wait for the answer), Z-83 (half: unrecognized replies to a wait are counted and then mean no)
#[test]
fn unrecognized_replies_to_a_wait_are_counted_and_then_mean_no() {
    let flow = || {
        code(|step, with, _| match step {
            0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
            1 => effect(json!({"type": "interrupt.wait", "waitFor": "confirm_response"})),
            2 => effect(json!({"type": "say", "text": text_of(with)})),
            _ => done(),
        })
    };
    let given_up = json!({"outcome": "negative", "value": false, "text": "who knows"});
    let mut desk = desk(json!({}), flow());
    desk.say("start a");
    desk.say("no");
    assert_eq!(desk.say("perhaps"), ["Sure?"]);
    assert_eq!(desk.say("maybe"), ["Sure?"]);
    assert_eq!(payload(&desk.say("who knows")[0]), given_up);
    let asked = |e: &Body| matches!(e, Body::ConfirmUnrecognized { .. });
    assert_eq!(desk.count(asked), 2);
    let config = json!({"hitl": {"confirmDefaults": {"unrecognized": "decline"}}});
    let mut desk = self::desk(config, flow());
    desk.say("start a");
    desk.say("no");
    assert_eq!(payload(&desk.say("who knows")[0]), given_up);
}

/// Z-34 (half: flow consumes queued messages)
#[test]
fn flow_consumes_queued_messages() {
    let flow = code(|step, _, _| match step {
        0 => effect(escalate()),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        2 => ProgramStep::HostCall {
            name: "consumeQueued".to_owned(),
            args: vec![json!(["m-2"])],
        },
        _ => done(),
    });
    let mut desk = desk(
        json!({"hitl": {"asyncPendingPolicy": {"behavior": "queue"}}}),
        flow,
    );
    desk.say("start a");
    desk.say("used by the flow");
    desk.say("left over");
    desk.resolve(true, "ana").expect("open");
    assert_eq!(desk.sent, ["model speaks"], "only the other is answered");
}

/// Z-32 (half: hooks apply while a person is awaited)
#[test]
fn hooks_apply_while_a_person_is_awaited() {
    let flow = code(|step, _, _| match step {
        0 => effect(escalate()),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        _ => done(),
    });
    let mut desk = desk(
        json!({"hitl": {"asyncPendingPolicy": {"ackText": "Wait."}}}),
        flow,
    );
    desk.say("start a");
    desk.functions.insert(
        "beforeLLM".to_owned(),
        Box::new(|call| match call.args[0]["text"].as_str() {
            Some("hours?") => {
                super::harness::value(json!({"action": "skip_llm", "draftReply": "At nine."}))
            }
            Some("shh") => super::harness::value(json!({"action": "end"})),
            _ => Default::default(),
        }),
    );
    assert_eq!(desk.say("hours?"), ["At nine."], "instead of the ack");
    assert!(desk.say("shh").is_empty());
    let noop = |e: &Body| matches!(e, Body::PendingMessage { behavior, .. } if behavior == "noop");
    assert_eq!(desk.count(noop), 2);
    assert_eq!(desk.say("?"), ["Wait."]);
}
