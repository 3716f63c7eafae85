//! Messages that become one turn: within a window, or over a model call.

use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ChatAnswer, ChatRole, ChatToolCall, SessionEventBody as Body, SessionTimer, SessionWork,
    TurnOutcome,
};

fn desk(config: Value) -> TestSession {
    TestSession::new(config, &[])
}

fn windowed() -> TestSession {
    desk(json!({"inbound": {"debounceMs": 1000, "maxWaitMs": 2500}}))
}

fn messages(work: &SessionWork) -> Vec<(ChatRole, String)> {
    match work {
        SessionWork::Model { messages, .. } => {
            let shown = messages.iter().map(|m| (m.role, m.content.clone()));
            shown.collect()
        }
        other => panic!("{other:?} is no model call"),
    }
}

/// Z-234 (half: messages within the window become one turn)
#[test]
fn messages_within_the_window_become_one_turn() {
    let mut desk = windowed();
    desk.receive("I want");
    desk.perform_all();
    desk.now = desk.now.plus_ms(900);
    desk.receive("a chair");
    desk.perform_all();
    assert!(desk.sent.is_empty(), "the window is open");
    let first = desk.state().turn_of_message(&"m-1".into());
    assert_eq!(first, desk.state().turn_of_message(&"m-2".into()));
    assert!(!desk.state().is_turn_over(first.expect("a turn")));
    desk.wait_seconds(1);
    assert_eq!(desk.sent, ["model speaks"]);
    assert_eq!(
        messages(&desk.model_calls[0]),
        [(ChatRole::User, "I want\na chair".to_owned())]
    );
    let ids = desk.events.iter().find_map(|event| match event {
        Body::TurnStarted { message_ids, .. } => Some(message_ids.len()),
        _ => None,
    });
    assert_eq!(ids, Some(2));
}

/// The events of all of them name the turn that answers them.
#[test]
fn messages_of_one_window_belong_to_its_turn() {
    let mut desk = windowed();
    desk.receive("I want");
    desk.receive("a chair");
    desk.receive("/usage");
    let received = desk
        .log
        .iter()
        .filter(|event| matches!(event.event.body, Body::MessageReceived { .. }));
    let turns: Vec<_> = received.map(|event| event.event.turn).collect();
    assert_eq!(turns, [Some(1), Some(1), Some(2)]);
}

/// Z-234 (half: each further message restarts the window, up to the maximum)
#[test]
fn window_closes_at_its_maximum() {
    let mut desk = windowed();
    let began = desk.now;
    for _ in 0..3 {
        desk.receive("more");
        desk.now = desk.now.plus_ms(900);
    }
    let timers = desk.state().required_timers();
    assert_eq!(timers[&SessionTimer::Burst], began.plus_ms(2_500));
    desk.receive("late");
    desk.perform_all();
    assert_eq!(
        desk.sent,
        ["model speaks"],
        "the window was over when the last one came"
    );
    desk.wait_seconds(2);
    assert_eq!(desk.sent.len(), 2);
}

/// Z-234 (half: commands are not delayed by the window)
#[test]
fn commands_are_not_delayed_by_the_window() {
    let mut desk = windowed();
    desk.receive("I want");
    assert!(desk.say("/usage")[0].contains("messages"));
    desk.wait_seconds(2);
    assert_eq!(desk.sent.last().map(String::as_str), Some("model speaks"));
}

/// Z-35 (half: messages of a burst), Z-234 (half: a burst answers no later question)
#[test]
fn burst_that_began_before_a_question_does_not_answer_it() {
    let sure = code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        1 => effect(json!({"type": "say", "text": "ok"})),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "inbound": {"debounceMs": 1000}});
    let mut desk = TestSession::new(config, &[("sure", sure)]);
    route_on_start(&mut desk);
    desk.receive("start sure");
    desk.now = desk.now.plus_ms(1_000);
    // The window of the first closes when this arrives; its question comes afterwards.
    desk.receive("yes");
    desk.perform_all();
    desk.wait_seconds(1);
    assert_eq!(desk.sent, ["Sure?", "Sure?"]);
}

/// Z-243 (half: message cancels the model call under way and both are answered at once)
#[test]
fn message_cancels_the_model_call_under_way_and_both_are_answered_at_once() {
    let mut desk = desk(json!({"onNewMessage": "interrupt"}));
    desk.held.push("session.model");
    desk.say("a table");
    desk.receive("no, a chair");
    assert_eq!(desk.dropped.len(), 1, "the call is cancelled");
    desk.held.clear();
    desk.perform_all();
    assert_eq!(desk.sent, ["model speaks"]);
    assert_eq!(desk.model_calls.len(), 1);
    let expected = [(ChatRole::User, "a table\nno, a chair".to_owned())];
    assert_eq!(messages(&desk.model_calls[0]), expected);
    let interrupted = |e: &Body| *e == Body::TurnEnded(TurnOutcome::Interrupted);
    assert_eq!(desk.count(interrupted), 1);
}

/// Z-243 (half: by default, and for commands, the call goes on)
#[test]
fn model_call_is_not_cancelled_by_default_or_by_a_command() {
    for (config, text) in [
        (json!({}), "more"),
        (json!({"onNewMessage": "interrupt"}), "/usage"),
    ] {
        let mut desk = desk(config);
        desk.held.push("session.model");
        desk.say("a table");
        desk.receive(text);
        assert!(desk.dropped.is_empty());
        desk.held.clear();
        desk.perform_all();
        assert_eq!(desk.sent.len(), 2);
    }
}

/// Z-243 (half: calls that were not made are closed, what was done is not done again)
#[test]
fn interrupted_tool_loop_closes_its_calls_and_keeps_their_results() {
    let config = json!({"onNewMessage": "interrupt", "tools": [
        {"name": "price", "kind": "record"}, {"name": "stock", "kind": "record"}]});
    let mut desk = desk(config);
    let call = |id: &str, name: &str| ChatToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        args: json!({}),
    };
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![call("c1", "price"), call("c2", "stock")],
        ..ChatAnswer::default()
    }));
    desk.held.push("session.tool");
    desk.say("a table");
    desk.receive("in red");
    desk.held.clear();
    desk.perform_all();
    assert_eq!(desk.sent, ["model speaks"]);
    assert_eq!(desk.tool_calls.len(), 1);
    let last = messages(&desk.model_calls[1]);
    assert_eq!(last[0], (ChatRole::User, "a table\nin red".to_owned()));
    assert_eq!(last.last(), Some(&(ChatRole::Tool, "cancelled".to_owned())));
}
