//! Calls of the model that somebody must allow first.

use super::harness::{TestSession, failed, value};
use crate::session::SessionRefusal;
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, ChatAnswer, ChatRole, ChatToolCall, EscalationDecision, SessionEventBody as Body,
    SessionWork,
};

fn desk(approval: Value) -> TestSession {
    let parameters = json!({"type": "object", "properties": {"eur": {"type": "number"}},
        "required": ["eur"]});
    let config = json!({"tools": [
        {"name": "pay", "kind": "record", "approval": approval, "parameters": parameters},
        {"name": "note", "kind": "record"},
    ]});
    let mut desk = TestSession::new(config, &[]);
    let call = |id: &str, name: &str, args: Value| ChatToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        args,
    };
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![
            call("c1", "pay", json!({"eur": 5})),
            call("c2", "note", json!({})),
        ],
        ..ChatAnswer::default()
    }));
    desk
}

/// The tools called so far, with their arguments.
fn called(desk: &TestSession) -> Vec<(&str, &Value)> {
    let calls = desk.tool_calls.iter();
    calls.map(|(_, name, args)| (name.as_str(), args)).collect()
}

fn last_results(desk: &TestSession) -> Vec<String> {
    let Some(SessionWork::Model { messages, .. }) = desk.model_calls.last() else {
        panic!("the model was called");
    };
    let results = messages.iter().filter(|m| m.role == ChatRole::Tool);
    results.map(|m| m.content.clone()).collect()
}

/// Z-230 (half: user allows a call and the exchange goes on)
#[test]
fn user_allows_a_call_and_the_exchange_goes_on() {
    let mut desk = desk(json!("user"));
    let asked = desk.say("pay it");
    assert!(
        asked[0].contains("pay") && asked[0].contains("\"eur\":5"),
        "{asked:?}"
    );
    assert!(desk.tool_calls.is_empty());
    assert_eq!(desk.state().hitl_mode(), Some("pending_confirm"));
    assert_eq!(desk.say("hm"), asked, "asked again");
    assert_eq!(desk.say("yes"), ["model speaks"]);
    assert_eq!(
        called(&desk),
        [("pay", &json!({"eur": 5})), ("note", &json!({}))]
    );
    assert_eq!(last_results(&desk), [r#"{"ok":true}"#, r#"{"ok":true}"#]);
    assert_eq!(desk.state().hitl_mode(), None);
    let resumed = desk.count(|e| matches!(e, Body::InterruptResumed { .. }));
    assert_eq!(resumed, 1);
}

/// Z-230 (half: refusal is the result the model gets)
#[test]
fn refusal_is_the_result_the_model_gets() {
    let mut desk = desk(json!("user"));
    desk.say("pay it");
    assert_eq!(desk.say("no"), ["model speaks"]);
    assert_eq!(called(&desk), [("note", &json!({}))]);
    assert!(
        last_results(&desk)[0].contains("did not allow"),
        "{:?}",
        last_results(&desk)
    );
}

/// Z-230 (half: nobody answers in time)
#[test]
fn nobody_answers_in_time() {
    let mut desk = desk(json!("user"));
    desk.say("pay it");
    desk.wait_seconds(301);
    assert_eq!(called(&desk), [("note", &json!({}))]);
    assert_eq!(desk.sent.last().map(String::as_str), Some("model speaks"));
    assert_eq!(
        desk.say("yes"),
        ["model speaks"],
        "a late yes is an ordinary message"
    );
    assert_eq!(desk.tool_calls.len(), 1);
}

fn decide(
    desk: &mut TestSession,
    approved: bool,
    action_data: Option<Value>,
) -> Result<(), SessionRefusal> {
    let decision = EscalationDecision {
        approved,
        message: (!approved).then(|| "too much".to_owned()),
        action_data,
        claimed_by: None,
    };
    let escalation = None;
    let request = AdminRequest::Resolve {
        escalation,
        decision,
    };
    desk.act("ana", request).map(drop)
}

/// Z-230 (half: admin allows a call with other arguments)
#[test]
fn admin_allows_a_call_with_other_arguments() {
    let mut desk = desk(json!("admin"));
    assert!(desk.say("pay it").is_empty());
    let escalation = desk.state().escalations().next().expect("one");
    let expected = json!({"tool": "pay", "args": {"eur": 5}});
    assert_eq!(escalation.metadata.as_ref(), Some(&expected));
    assert!(
        desk.say("and?").is_empty(),
        "the message waits like any other"
    );
    let bad = Some(json!({"args": {"eur": "much"}}));
    assert!(matches!(
        decide(&mut desk, true, bad),
        Err(SessionRefusal::InvalidInput(_))
    ));
    decide(&mut desk, true, Some(json!({"args": {"eur": 3}}))).expect("open");
    assert_eq!(called(&desk)[0], ("pay", &json!({"eur": 3})));
    assert_eq!(desk.sent, ["model speaks"]);
}

/// Z-230 (half: admin refuses a call)
#[test]
fn admin_refuses_a_call() {
    let mut desk = desk(json!("admin"));
    desk.say("pay it");
    decide(&mut desk, false, None).expect("open");
    assert_eq!(called(&desk), [("note", &json!({}))]);
    assert!(last_results(&desk)[0].contains("too much"));
}

/// Z-230 (half: a rule of the author decides who is asked; one that fails asks)
#[test]
fn rule_decides_whether_a_call_needs_consent() {
    let cases = [
        (value(json!(false)), true, None),
        (value(json!("user")), false, Some("pending_confirm")),
        (
            value(json!("admin")),
            false,
            Some("pending_admin_resolution"),
        ),
        (
            failed("failed", "down"),
            false,
            Some("pending_admin_resolution"),
        ),
    ];
    for (answer, is_called, mode) in cases {
        let mut desk = desk(json!({"$fn": true}));
        let rule = move |call: &tandem_record::conversation::CodeCall| {
            assert_eq!(call.args, [json!({"eur": 5})]);
            answer.clone()
        };
        desk.functions
            .insert("tools.pay.approval".to_owned(), Box::new(rule));
        desk.say("pay it");
        assert_eq!(desk.state().hitl_mode(), mode);
        assert_eq!(called(&desk).first().map(|c| c.0) == Some("pay"), is_called);
    }
}

/// Z-35 (half: consent to a call), Z-230 (half: an answer from before the question)
#[test]
fn message_received_before_the_question_allows_nothing() {
    let mut desk = desk(json!("user"));
    desk.receive("pay it");
    desk.receive("yes");
    desk.perform_all();
    assert!(desk.tool_calls.is_empty());
    assert_eq!(desk.state().hitl_mode(), Some("pending_confirm"));
}
