//! How takeovers end by themselves, and what is asked again afterwards.

use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect};
use super::takeover::desk;
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, DeskAction, EscalationStatus, SessionEventBody as Body, TakeoverEndReason,
};

fn reasons(desk: &TestSession) -> Vec<TakeoverEndReason> {
    let ended = desk.events.iter().filter_map(|event| match event {
        Body::LiveTakeoverEnded(ended) => Some(ended.reason),
        _ => None,
    });
    ended.collect()
}

/// Z-236 (half: idleness ends it; texts and claims are signs)
#[test]
fn person_who_gives_no_sign_loses_the_floor() {
    let mut desk = desk(json!({"hitl": {"takeover": {"idleHandbackSeconds": 60}}}));
    desk.say("hi");
    desk.take_over("ana").expect("free");
    desk.wait_seconds(50);
    desk.write_in_takeover("ana", "Ana here.")
        .expect("her floor");
    desk.wait_seconds(50);
    desk.say("still there?");
    let escalation = desk.state().takeover_escalation().expect("open").id.clone();
    for action in [DeskAction::Release, DeskAction::Claim] {
        let escalation = escalation.clone();
        desk.act("ben", AdminRequest::Desk { escalation, action })
            .expect("open");
    }
    desk.wait_seconds(50);
    assert!(
        desk.state().is_taken_over(),
        "the claim was a sign, the user's words were none"
    );
    desk.wait_seconds(11);
    assert_eq!(reasons(&desk), [TakeoverEndReason::Idle]);
    let record = desk.state().escalation(&escalation).expect("known");
    assert_eq!(record.status, EscalationStatus::Resolved);
    assert_eq!(desk.say("hello?"), ["model speaks"]);
}

/// Z-236 (half: the longest time), Z-254 (half: the deadline of an implicit escalation)
#[test]
fn takeover_that_nobody_ends_ends_after_its_longest_time() {
    let mut desk = desk(json!({"hitl": {"takeover": {"maxSeconds": 600},
        "escalationDefaults": {"claimStopsTimeout": true}}}));
    desk.say("hi");
    desk.take_over("ana").expect("free");
    let escalation = desk.state().takeover_escalation().expect("open").clone();
    assert_eq!(escalation.deadline, Some(desk.now.plus_ms(600_000)));
    desk.wait_seconds(590);
    desk.write_in_takeover("ana", "Ana here.")
        .expect("her floor");
    desk.wait_seconds(11);
    assert_eq!(reasons(&desk), [TakeoverEndReason::Timeout]);
    let record = desk.state().escalation(&escalation.id).expect("known");
    assert_eq!(record.status, EscalationStatus::TimedOut);
    assert!(
        desk.state().required_timers().len() <= 1,
        "only idleness is left"
    );
}

/// Z-14 (half: a session in a takeover is not idle), Z-15 (half: its end ends the takeover), Z-93 (half: the reason)
#[test]
fn end_of_the_session_ends_the_takeover() {
    let mut desk = desk(json!({}));
    desk.say("hi");
    desk.take_over("ana").expect("free");
    let escalation = desk.state().takeover_escalation().expect("open").id.clone();
    desk.wait_seconds(3_600);
    assert!(desk.state().ended().is_none(), "a person has it");
    desk.act("ana", AdminRequest::EndSession).expect("allowed");
    assert_eq!(reasons(&desk), [TakeoverEndReason::SessionEnded]);
    let record = desk.state().escalation(&escalation).expect("known");
    assert_eq!(record.status, EscalationStatus::Canceled);
    assert!(desk.state().required_timers().is_empty());
}

fn asking(effect_of: fn() -> Value, takeover: Value) -> TestSession {
    let flow = code(move |step, _, _| match step {
        0 => effect(effect_of()),
        1 => effect(json!({"type": "say", "text": "thanks"})),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "hitl": {"takeover": takeover},
        "model": {"provider": "scripted", "script": {"answers": []}}});
    let mut desk = TestSession::new(config, &[("asks", flow)]);
    route_on_start(&mut desk);
    desk.say("start asks");
    desk
}

/// Z-93 (half: a flow stays at its question, which is asked again where the agent wants that)
#[test]
fn flow_stays_at_its_question_and_may_ask_it_again() {
    let ask: fn() -> Value = || json!({"type": "ask", "key": "x", "text": "When?"});
    let confirm: fn() -> Value = || json!({"type": "interrupt.confirm", "question": "Sure?"});
    for (effect_of, question, answer) in [(ask, "When?", "Monday"), (confirm, "Sure?", "yes")] {
        for reprompts in [true, false] {
            let mut desk = asking(effect_of, json!({"repromptOnHandback": reprompts}));
            desk.take_over("ana").expect("free");
            assert!(desk.say(answer).is_empty(), "it goes to the person");
            desk.hand_back("ana", None).expect("a flow goes on");
            let asked = desk.sent.iter().filter(|text| *text == question).count();
            assert_eq!(asked, 1 + usize::from(reprompts), "{question}");
            assert_eq!(desk.say(answer), ["thanks"]);
        }
    }
}

/// Z-229 (half: the user gives up waiting for a person who has not come)
#[test]
fn user_gives_up_waiting_until_a_person_comes() {
    let config = json!({"hitl": {"humanKeyword": "human", "userCancelKeywords": ["forget it"]}});
    let mut desk = desk(config.clone());
    desk.say("human");
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    desk.say("forget it");
    assert_eq!(reasons(&desk), [TakeoverEndReason::Canceled]);
    assert_eq!(desk.say("hi"), ["model speaks"]);
    let mut desk = super::takeover::desk(config);
    desk.say("human");
    desk.take_over("ana").expect("nobody holds it");
    desk.say("forget it");
    assert!(reasons(&desk).is_empty(), "she is here");
}

/// Z-245 (half: the mode is a takeover unless another is named), Z-77 (half: the greeting of a takeover)
#[test]
fn user_who_wants_a_person_is_told_and_then_the_agent_is_silent() {
    let mut desk = desk(json!({"hitl": {"humanKeyword": "human",
        "escalationDefaults": {"autoAckText": "A colleague comes."}}}));
    assert_eq!(desk.say("human"), ["A colleague comes."]);
    assert_eq!(desk.state().hitl_mode(), Some("live_takeover"));
    assert_eq!(
        desk.state().takeover_escalation().expect("open").reason,
        "user_request"
    );
    assert!(desk.say("hello?").is_empty());
    assert!(desk.model_calls.is_empty());
}

/// Z-93 (half: a question whose time is over is neither asked again nor remembered)
#[test]
fn question_whose_time_is_over_is_not_asked_again() {
    let confirm: fn() -> Value = || {
        json!({"type": "interrupt.confirm", "question": "Sure?", "timeoutSeconds": 60,
            "reminders": [{"afterSeconds": 30, "text": "Well?"}]})
    };
    let mut desk = asking(confirm, json!({"repromptOnHandback": true}));
    desk.take_over("ana").expect("free");
    desk.wait_seconds(61);
    desk.hand_back("ana", None).expect("a flow goes on");
    assert_eq!(desk.sent, ["Sure?", "thanks"]);
}

/// Z-80 (half: not for a flow that somebody interrupts), Z-93 (half: it stays at its question)
#[test]
fn flow_that_is_taken_over_in_the_middle_of_a_turn_goes_on_afterwards() {
    let ask: fn() -> Value = || json!({"type": "ask", "key": "x", "text": "When?"});
    let confirm: fn() -> Value = || json!({"type": "interrupt.confirm", "question": "Sure?"});
    for (effect_of, question) in [(ask, "When?"), (confirm, "Sure?")] {
        let flow = code(move |step, _, _| match step {
            0 => effect(json!({"type": "tool", "name": "note", "args": {}})),
            1 => effect(effect_of()),
            2 => effect(json!({"type": "say", "text": "thanks"})),
            _ => done(),
        });
        let config = json!({"beforeLLM": {"$fn": true},
            "model": {"provider": "scripted", "script": {"answers": []}},
            "tools": [{"name": "note", "kind": "record"}]});
        let mut desk = TestSession::new(config, &[("asks", flow)]);
        route_on_start(&mut desk);
        desk.held = vec!["session.tool"];
        desk.say("start asks");
        desk.take_over("ana").expect("free");
        desk.held.clear();
        desk.perform_all();
        assert!(desk.flow_ends().is_empty(), "{question}");
        assert!(desk.sent.is_empty(), "{question}");
        desk.hand_back("ana", None).expect("a flow goes on");
        assert_eq!(desk.sent, [question]);
        assert_eq!(desk.say("yes"), ["thanks"]);
    }
}
