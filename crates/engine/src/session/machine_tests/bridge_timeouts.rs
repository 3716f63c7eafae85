//! What follows when nobody writes for a bridge in time.

use super::bridges::{desk_with, flow, settings, start, wait};
use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect, text_of};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, ProxyTimeoutScope, SessionEventBody as Body, SessionReply,
};

fn timed_out(behavior: &str) -> TestSession {
    let mut desk = desk_with(vec![
        start(json!({})),
        wait(json!({"timeoutSeconds": 60, "timeoutBehavior": behavior,
            "timeoutMessageToUser": "Nobody answers."})),
        json!({"type": "ask", "key": "k", "text": "And now?"}),
    ]);
    desk.wait_seconds(61);
    desk
}

fn timeouts(desk: &TestSession) -> Vec<ProxyTimeoutScope> {
    let scopes = desk.events.iter().filter_map(|event| match event {
        Body::ProxyTimedOut { scope, .. } => Some(*scope),
        _ => None,
    });
    scopes.collect()
}

/// What the last wait gave, as the code was told.
fn handed(desk: &TestSession) -> Value {
    let results = desk.journal.iter().filter_map(|(_, record)| match record {
        tandem_record::conversation::FlowRecord::Result { value, .. } => value.clone(),
        _ => None,
    });
    let mut results: Vec<Value> = results.collect();
    results.pop().expect("a result")
}

/// Z-106 (half: each behaviour, its message and its order)
#[test]
fn wait_times_out_as_its_author_chose() {
    for (behavior, is_up, escalates) in [
        ("continue", true, false),
        ("end_proxy", false, false),
        ("fallback_escalation", false, true),
    ] {
        let desk = timed_out(behavior);
        assert_eq!(
            desk.texts_to("u1"),
            ["Nobody answers.", "And now?"],
            "{behavior}"
        );
        assert_eq!(desk.state().bridge().is_some(), is_up, "{behavior}");
        assert_eq!(timeouts(&desk), [ProxyTimeoutScope::Wait]);
        let result = handed(&desk);
        assert_eq!(result["outcome"], "timed_out");
        assert_eq!(result["timedOut"], json!(true));
        assert_eq!(result["behavior"], behavior);
        let escalation = desk.state().escalations().next();
        assert_eq!(escalation.is_some(), escalates, "{behavior}");
        if let Some(escalation) = escalation {
            assert_eq!(escalation.reason, "proxy_timeout");
            let metadata = escalation.metadata.as_ref().expect("metadata");
            assert_eq!(metadata["target"], "finance");
            assert_eq!(result["escalationId"], json!(escalation.id));
        }
    }
    let desk = timed_out("fallback_escalation");
    let order: Vec<&str> = desk
        .events
        .iter()
        .filter_map(|event| match event {
            Body::ProxyTimedOut { .. } => Some("timed out"),
            Body::ResponseQueued { .. } => Some("told"),
            Body::ProxyStopped { .. } => Some("stopped"),
            Body::EscalationCreated(_) => Some("escalated"),
            Body::InterruptResumed { .. } => Some("resumed"),
            _ => None,
        })
        .collect();
    let wanted = [
        "timed out",
        "told",
        "stopped",
        "escalated",
        "resumed",
        "told",
    ];
    assert_eq!(order, wanted);
}

/// Z-98 (half: the time of the bridge ends it, and a wait with it)
#[test]
fn time_of_the_bridge_ends_it_and_the_wait() {
    let mut desk = desk_with(vec![
        start(json!({"timeoutSeconds": 60})),
        wait(json!({"timeoutBehavior": "fallback_escalation"})),
        json!({"type": "ask", "key": "k", "text": "And now?"}),
    ]);
    desk.wait_seconds(61);
    assert_eq!(timeouts(&desk), [ProxyTimeoutScope::Bridge]);
    assert_eq!(desk.stops(), ["timeout"]);
    assert_eq!(handed(&desk)["outcome"], "timed_out");
    assert_eq!(
        desk.state().escalations().count(),
        1,
        "the fallback applies"
    );
    let mut desk = desk_with(vec![
        start(json!({"timeoutSeconds": 60})),
        json!({"type": "ask", "key": "k", "text": "And?"}),
    ]);
    desk.wait_seconds(61);
    assert_eq!(desk.stops(), ["timeout"]);
    assert_eq!(
        desk.paused_on(),
        Some("ask"),
        "who does not wait is not told"
    );
}

/// Both times end at one moment: the flow goes on once.
#[test]
fn bridge_and_wait_that_end_together_resume_the_flow_once() {
    let mut desk = desk_with(vec![
        start(json!({"timeoutSeconds": 60})),
        wait(json!({"timeoutSeconds": 60, "timeoutBehavior": "end_proxy"})),
    ]);
    desk.wait_seconds(60);
    let resumed = |event: &Body| matches!(event, Body::InterruptResumed { .. });
    assert_eq!(desk.count(resumed), 1);
    assert_eq!(
        desk.count(|event| matches!(event, Body::InterruptLate { .. })),
        0
    );
    assert_eq!(desk.stops(), ["timeout"]);
    assert_eq!(desk.texts_to("u1").len(), 1);
}

/// A hook that looks at the message of a timeout holds nothing up.
#[test]
fn message_of_a_timeout_passes_the_hook() {
    let flow = code(|step, with, _| match step {
        0 => effect(start(json!({}))),
        1 => effect(wait(
            json!({"timeoutSeconds": 60, "timeoutBehavior": "end_proxy",
            "timeoutMessageToUser": "Nobody answers."}),
        )),
        2 => {
            effect(json!({"type": "say", "text": text_of(with).contains("timed_out").to_string()}))
        }
        _ => done(),
    });
    let mut config = settings();
    config["beforeResponse"] = json!({"$fn": true});
    let mut desk = TestSession::new(config, &[("review", flow)]);
    route_on_start(&mut desk);
    let replace = |call: &tandem_record::conversation::CodeCall| {
        let text = call.args[0]["candidate"]["text"]
            .as_str()
            .unwrap_or_default();
        super::harness::value(json!({"action": "replace", "reply": format!("<{text}>")}))
    };
    desk.functions
        .insert("beforeResponse".to_owned(), Box::new(replace));
    desk.say("start review");
    desk.wait_seconds(61);
    assert_eq!(desk.texts_to("u1"), ["<Nobody answers.>", "<true>"]);
    assert_eq!(desk.stops(), ["timeout"]);
}

/// Input after the time is over comes too late, also before the timer fired. Z-190 (half: input and timeout)
#[test]
fn input_after_the_time_is_refused() {
    let mut desk = desk_with(vec![start(json!({"timeoutSeconds": 60})), wait(json!({}))]);
    desk.now = desk.now.plus_ms(60_001);
    let late = desk.admin_writes("i-1", "too late");
    assert_eq!(late, Err(crate::session::SessionRefusal::ProxyStopped));
    desk.wait_seconds(0);
    assert_eq!(
        desk.texts_to("u1").len(),
        1,
        "what the flow says of the timeout"
    );
}

/// A bridge with a time of its own, which a takeover holds back.
fn taken_over(then: Value) -> TestSession {
    let mut config = settings();
    config["model"] = json!({"provider": "scripted", "script": {"answers": []}});
    let effects = vec![start(json!({"timeoutSeconds": 50})), wait(json!({})), then];
    let mut desk = TestSession::new(config, &[("review", flow(effects))]);
    route_on_start(&mut desk);
    desk.say("start review");
    desk.take_over("ana").expect("free");
    desk
}

/// The same, with an input that was accepted during the takeover.
fn holding(then: Value) -> TestSession {
    let mut desk = taken_over(then);
    desk.admin_writes("i-1", "APPROVED").expect("accepted");
    desk
}

fn stop(desk: &mut TestSession) -> SessionReply {
    let proxy = desk.bridge_id();
    let reason = None;
    let stopped = desk.act("ana", AdminRequest::StopProxy { proxy, reason });
    stopped.expect("allowed")
}

/// Z-89 (half: the time of a bridge is held, after input that came before it), Z-98 (half: during a takeover)
#[test]
fn input_that_a_takeover_holds_comes_before_the_end_of_its_bridge() {
    let ask = json!({"type": "ask", "key": "k", "text": "And?"});
    for is_stopped in [false, true] {
        let mut desk = holding(ask.clone());
        match is_stopped {
            false => desk.wait_seconds(60),
            true => {
                let held = matches!(
                    stop(&mut desk),
                    SessionReply::ProxyStopped {
                        was_active: true,
                        turn: Some(_)
                    }
                );
                assert!(held);
                let again = stop(&mut desk);
                assert!(matches!(
                    again,
                    SessionReply::ProxyStopped {
                        was_active: false,
                        ..
                    }
                ));
            }
        }
        assert_eq!(desk.stops(), Vec::<&str>::new(), "held");
        let late = desk.admin_writes("i-2", "too late");
        assert_eq!(late, Err(crate::session::SessionRefusal::ProxyStopped));
        desk.hand_back("ana", None).expect("open");
        assert_eq!(desk.texts_to("u1"), ["[Finance] APPROVED", "And?"]);
        let reason = match is_stopped {
            false => "timeout",
            true => "stopped_by_admin",
        };
        assert_eq!(desk.stops(), [reason]);
        assert_eq!(desk.paused_on(), Some("ask"), "it does not wait at it");
        assert_eq!(handed(&desk)["outcome"], "admin_input");
    }
}

/// Z-89 (half: the time of a bridge is held also without input)
#[test]
fn time_of_the_bridge_ends_it_after_the_takeover() {
    let mut desk = taken_over(json!({"type": "ask", "key": "k", "text": "And?"}));
    desk.wait_seconds(60);
    assert!(timeouts(&desk).is_empty(), "held");
    desk.hand_back("ana", None).expect("a flow waits");
    assert_eq!(timeouts(&desk), [ProxyTimeoutScope::Bridge]);
    assert_eq!(handed(&desk)["outcome"], "timed_out");
    assert_eq!(desk.texts_to("u1"), ["And?"]);
}

/// Input that finds no bridge is in the log: nothing that was accepted vanishes.
#[test]
fn input_after_the_end_of_its_bridge_is_reported() {
    let mut desk = holding(json!({"type": "interrupt.proxy.stop"}));
    desk.admin_writes("i-2", "and this").expect("accepted");
    desk.hand_back("ana", None).expect("open");
    let failures = desk.failures("proxy");
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("i-2"), "{failures:?}");
}
