//! Who writes to the user: the agent, the agent with consent, nobody.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use crate::session::SessionRefusal;
use serde_json::json;
use tandem_record::InterruptId;
use tandem_record::conversation::{
    AdminRequest, AgentMode, DraftDecision, SessionEventBody as Body,
};

fn asking() -> Code {
    code(|step, with, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        1 => effect(json!({"type": "say", "text": format!("x={}", text_of(with))})),
        _ => done(),
    })
}

fn desk(mode: &str) -> TestSession {
    let config = json!({"agentMode": mode, "beforeLLM": {"$fn": true}});
    let mut desk = TestSession::new(config, &[("asking", asking())]);
    route_on_start(&mut desk);
    desk
}

fn drafts(desk: &TestSession) -> Vec<(InterruptId, String)> {
    let drafts = desk.state().drafts();
    drafts
        .map(|(id, draft)| (id.clone(), draft.candidate.text.clone()))
        .collect()
}

fn decide(desk: &mut TestSession, draft: &InterruptId, decision: DraftDecision) {
    let draft = draft.clone();
    desk.act("ana", AdminRequest::DecideDraft { draft, decision })
        .expect("held");
}

/// Z-241 (half: drafts wait for consent and are sent edited or dropped)
#[test]
fn drafts_wait_for_consent_and_are_sent_edited_or_dropped() {
    let mut desk = desk("draft_only");
    assert!(desk.say("hi").is_empty());
    let held = drafts(&desk);
    assert_eq!(held[0].1, "model speaks");
    decide(&mut desk, &held[0].0, DraftDecision::Accept);
    assert_eq!(desk.sent, ["model speaks"]);
    assert!(desk.say("start asking").is_empty());
    let held = drafts(&desk);
    assert_eq!(desk.paused_on(), Some("ask"), "the flow waits as usual");
    decide(
        &mut desk,
        &held[0].0,
        DraftDecision::Edit("Which x?".to_owned()),
    );
    assert_eq!(desk.sent.last().map(String::as_str), Some("Which x?"));
    let last = desk.state().memory().last().expect("remembered");
    let author = last
        .author
        .as_ref()
        .map(|a| (a.kind.as_str(), a.actor_id.as_str()));
    assert_eq!(author, Some(("human", "ana")));
    desk.say("7");
    let held = drafts(&desk);
    assert_eq!(held[0].1, "x=7");
    decide(&mut desk, &held[0].0, DraftDecision::Reject);
    assert_eq!(desk.sent.len(), 2);
    let again = AdminRequest::DecideDraft {
        draft: held[0].0.clone(),
        decision: DraftDecision::Accept,
    };
    assert_eq!(desk.act("ana", again), Err(SessionRefusal::DraftNotFound));
}

/// Z-241 (half: commands are no texts of the agent)
#[test]
fn commands_answer_in_every_mode() {
    for mode in ["draft_only", "off"] {
        let mut desk = desk(mode);
        assert_eq!(desk.say("/nope"), ["Unknown command. Try /help"]);
    }
}

/// Z-241 (half: agent that is off stays silent and keeps messages)
#[test]
fn agent_that_is_off_stays_silent_and_keeps_messages() {
    let mut desk = desk("off");
    assert!(desk.say("hi").is_empty());
    assert!(desk.model_calls.is_empty());
    assert_eq!(desk.state().memory().count(), 1, "the message is visible");
}

/// Z-241 (half: mode of a session comes before the agents)
#[test]
fn mode_of_a_session_comes_before_the_agents() {
    let mut desk = desk("auto");
    assert_eq!(desk.say("hi"), ["model speaks"]);
    let mode = AgentMode::Off;
    desk.act("ana", AdminRequest::SetMode { mode })
        .expect("open");
    assert!(desk.say("hi").is_empty());
    let mode = AgentMode::Auto;
    desk.act("ana", AdminRequest::SetMode { mode })
        .expect("open");
    assert_eq!(desk.say("hi"), ["model speaks"]);
    desk.say("/reset");
    let late = desk.act("ana", AdminRequest::SetMode { mode });
    assert_eq!(late, Err(SessionRefusal::Ended));
}

/// Z-241 (half: a flow that goes on by itself is silent too)
#[test]
fn texts_of_a_flow_are_suppressed_while_the_agent_is_off() {
    let sure = code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        1 => effect(json!({"type": "say", "text": "never mind"})),
        _ => done(),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("sure", sure)]);
    route_on_start(&mut desk);
    desk.say("start sure");
    let mode = AgentMode::Off;
    desk.act("ana", AdminRequest::SetMode { mode })
        .expect("open");
    desk.wait_seconds(301);
    assert_eq!(desk.sent, ["Sure?"]);
    let is_it =
        |e: &Body| matches!(e, Body::ResponseSuppressed { reason, .. } if reason == "agent_off");
    assert_eq!(desk.count(is_it), 1);
}
