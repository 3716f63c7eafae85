//! Every input, queue and loop has an end.

use super::flows::route_on_start;
use super::harness::{TestSession, code, effect, value};
use crate::session::{ProgramStep, SessionRefusal};
use serde_json::{Value, json};
use tandem_record::ModelUsage;
use tandem_record::conversation::{
    ChatAnswer, ChatToolCall, CodeError, SessionCommand, SessionEventBody as Body, TurnOutcome,
};

/// Z-50 (half: a flow that only calls its context is stopped too)
#[test]
fn flow_that_calls_its_context_without_end_is_stopped() {
    let endless = code(|_, _, _| ProgramStep::HostCall {
        name: "session.kv.all".to_owned(),
        args: Vec::new(),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "flowLimits": {"maxJournalRecords": 50}});
    let mut desk = TestSession::new(config, &[("endless", endless)]);
    route_on_start(&mut desk);
    desk.say("start endless");
    let is_limit = |e: &Body| matches!(e, Body::FlowFailed { error } if error.code == "flow_limit");
    assert_eq!(desk.count(is_limit), 1);
}

/// Z-50 (half: the journal is bounded over many turns)
#[test]
fn journal_of_a_run_is_bounded_over_its_turns() {
    let asking = code(|_, _, _| effect(json!({"type": "ask", "key": "x", "text": "x?"})));
    let config = json!({"beforeLLM": {"$fn": true}, "flowLimits": {"maxJournalRecords": 20}});
    let mut desk = TestSession::new(config, &[("asking", asking)]);
    route_on_start(&mut desk);
    desk.say("start asking");
    let turns = (0..30).take_while(|_| {
        desk.say("more");
        desk.state().flow().is_some()
    });
    assert!((5..12).contains(&turns.count()));
}

/// Z-16 (half: a queue of turns has an end; what is beyond it may be delivered again)
#[test]
fn messages_beyond_the_queue_are_refused() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.held.push("session.model");
    desk.say("first");
    let refused = (0..1_100).find_map(|_| {
        let message = Box::new(desk.message("u1", "more"));
        desk.command(SessionCommand::Receive { message }).err()
    });
    assert_eq!(refused, Some(SessionRefusal::Overloaded));
}

fn calls(count: usize) -> ChatAnswer {
    let calls = (0..count).map(|i| ChatToolCall {
        id: format!("c{i}"),
        name: "note".to_owned(),
        args: json!({}),
    });
    ChatAnswer {
        tool_calls: calls.collect(),
        ..ChatAnswer::default()
    }
}

/// §2.1 `maxRecursionSteps`
#[test]
fn steps_of_a_turn_are_bounded() {
    let config = json!({"tools": [{"name": "note", "kind": "record"}],
        "maxToolIterations": 50, "maxRecursionSteps": 10});
    let mut desk = TestSession::new(config, &[]);
    desk.answers.extend((0..40).map(|_| Ok(calls(1))));
    let fallback = desk.agent.texts.fallback_reply.clone();
    assert_eq!(desk.say("loop"), [fallback]);
    assert!(desk.model_calls.len() <= 10);
    let failed = |e: &Body| matches!(e, Body::TurnEnded(TurnOutcome::Failed { .. }));
    assert_eq!(desk.count(failed), 1);
}

/// One answer cannot ask for any number of calls.
#[test]
fn calls_of_one_answer_are_bounded() {
    let config = json!({"tools": [{"name": "note", "kind": "record"}]});
    let mut desk = TestSession::new(config, &[]);
    desk.answers.push_back(Ok(calls(500)));
    desk.say("many");
    assert!(desk.tool_calls.len() <= 50, "{}", desk.tool_calls.len());
}

/// Budgets per session: what the provider counted is used up.
#[test]
fn session_without_tokens_left_calls_no_model() {
    let mut desk = TestSession::new(json!({"maxSessionTokens": 100}), &[]);
    let usage = ModelUsage {
        input_tokens: 90,
        output_tokens: 20,
        cache_read_tokens: None,
        cache_write_tokens: None,
    };
    desk.answers.push_back(Ok(ChatAnswer {
        text: Some("long".to_owned()),
        usage: Some(usage),
        ..ChatAnswer::default()
    }));
    assert_eq!(desk.say("hi"), ["long"]);
    assert_eq!(desk.state().tokens(), 110);
    let fallback = desk.agent.texts.fallback_reply.clone();
    assert_eq!(desk.say("hi"), [fallback]);
    assert_eq!(desk.model_calls.len(), 1);
    assert_eq!(desk.failures("budget").len(), 1);
    assert!(desk.say("/usage")[0].contains("110 tokens"));
}

/// Z-39 (half: the outcome of a failed turn says so, also when a hook looked at the fallback reply)
#[test]
fn failed_turn_is_reported_as_failed_behind_a_hook() {
    let mut desk = TestSession::new(json!({"beforeResponse": {"$fn": true}}), &[]);
    desk.functions.insert(
        "beforeResponse".to_owned(),
        Box::new(|_| value(Value::Null)),
    );
    desk.answers.push_back(Err(CodeError {
        code: "failed".to_owned(),
        message: "overloaded".to_owned(),
    }));
    desk.say("hi");
    let failed = |e: &Body| matches!(e, Body::TurnEnded(TurnOutcome::Failed { .. }));
    assert_eq!(desk.count(failed), 1);
}

/// Input that only code can refuse never loops.
/// Z-44 (half: input that only code can refuse), Z-113 (half: it never loops)
#[test]
fn flow_whose_code_refuses_its_input_goes_back_to_the_model() {
    let picky = code(|_, _, _| {
        ProgramStep::Failed(tandem_record::conversation::FlowFailure {
            code: "invalid_input".to_owned(),
            message: "no".to_owned(),
            details: None,
        })
    });
    let mut desk = TestSession::with_tool_flow("picky", picky);
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: "picky".to_owned(),
            args: json!({}),
        }],
        ..ChatAnswer::default()
    }));
    assert_eq!(desk.say("go"), ["model speaks"]);
    assert_eq!(desk.count(|e| matches!(e, Body::FlowStarted { .. })), 0);
    assert_eq!(desk.count(|e| matches!(e, Body::FlowFailed { .. })), 1);
}

/// §2.1 `singleUser`
#[test]
fn only_the_user_it_is_for_is_served() {
    let mut desk = TestSession::new(json!({"singleUser": "somebody else"}), &[]);
    assert_eq!(desk.say("hi"), ["This assistant serves one person only."]);
    assert!(desk.model_calls.is_empty());
    let mut desk = TestSession::new(json!({"singleUser": "u1"}), &[]);
    assert_eq!(desk.say("hi"), ["model speaks"]);
}

/// Z-128 (half: hook that fails closed ends the turn)
#[test]
fn hook_that_fails_closed_ends_the_turn() {
    let config = json!({"beforeLLM": {"$fn": true}, "hooks": {"onError": {"beforeLLM": "cancel"}}});
    let mut desk = TestSession::new(config, &[]);
    desk.functions.insert(
        "beforeLLM".to_owned(),
        Box::new(|_| super::harness::failed("failed", "down")),
    );
    assert!(desk.say("hi").is_empty());
    assert!(desk.model_calls.is_empty());
}

/// Z-195 (half: the bound of all keys together)
#[test]
fn keys_of_a_session_are_bounded_together() {
    let config = json!({"commands": {"fill": {"description": "", "handler": {"$fn": true}}}});
    let mut desk = TestSession::new(config, &[]);
    let large = json!("x".repeat(200 * 1024));
    let writes: Vec<_> = (0..12)
        .map(|n| (format!("key{n}"), Some(large.clone())))
        .collect();
    desk.functions.insert(
        "commands.fill.handler".to_owned(),
        Box::new(move |_| tandem_record::conversation::CodeOutcome {
            kv: writes.clone(),
            ..Default::default()
        }),
    );
    desk.say("/fill");
    assert_eq!(desk.failures("kv").len(), 2);
    desk.say("/fill");
    assert_eq!(desk.failures("kv").len(), 4, "a value may be replaced");
    assert!(desk.state().key("key9").is_some());
    assert!(desk.state().key("key10").is_none());
}
