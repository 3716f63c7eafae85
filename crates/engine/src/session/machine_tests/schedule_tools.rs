//! Tools for schedules of the current user: offered when the agent says so, and for nobody else's schedules.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect};
use crate::session::Resume;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use tandem_record::conversation::{
    ChatAnswer, ChatToolCall, CodeError, ScheduleToolOperation, SessionEventBody as Body,
    SessionWork,
};

type Results = Rc<RefCell<Vec<Resume>>>;

/// A flow that calls one tool and keeps what it gets.
fn calling(tool: &'static str, args: Value, on_error: &'static str) -> (Code, Results) {
    let results: Results = Rc::default();
    let kept = Rc::clone(&results);
    let code = code(move |step, with, _| match step {
        0 => effect(json!({"type": "tool", "name": tool, "args": args, "onError": on_error})),
        _ => {
            kept.borrow_mut().push(with.clone());
            done()
        }
    });
    (code, results)
}

fn run(tool: &'static str, args: Value, on_error: &'static str) -> (TestSession, Results) {
    let (code, results) = calling(tool, args, on_error);
    let config = json!({"scheduler": {"tools": true}, "beforeLLM": {"$fn": true}});
    let mut desk = TestSession::new(config, &[("call", code)]);
    route_on_start(&mut desk);
    desk.say("start call");
    (desk, results)
}

fn denials(desk: &TestSession) -> Vec<(ScheduleToolOperation, Vec<String>)> {
    let denied = desk.events.iter().filter_map(|event| match event {
        Body::ScheduleScopeDenied {
            operation,
            offending_fields,
            ..
        } => Some((*operation, offending_fields.clone())),
        _ => None,
    });
    denied.collect()
}

fn good() -> Value {
    json!({"flowId": "call", "trigger": {"type": "cron", "expr": "0 9 * * *"}})
}

/// Z-178 (half: a flow calls the operations with their arguments), Z-180
#[test]
fn flow_calls_the_tools_of_its_user() {
    let (desk, results) = run("createCurrentUserSchedule", good(), "throw");
    assert_eq!(desk.schedule_calls.len(), 1);
    let call = &desk.schedule_calls[0];
    assert_eq!(call.operation, ScheduleToolOperation::Create);
    assert_eq!(Value::Object(call.args.clone()), good());
    assert!(matches!(&results.borrow()[0], Resume::Value(Some(value)) if value["id"] == "s-1"));
    assert!(denials(&desk).is_empty());
}

/// Z-179 (half: arguments that name a target are refused, with an event, and answered neutrally)
#[test]
fn arguments_that_name_a_target_are_refused() {
    let targets = [
        ("segment", json!({"type": "all"})),
        ("campaignId", json!("c")),
        ("userExternalId", json!("u1")),
        ("target", json!({"kind": "user", "userExternalId": "u2"})),
        ("sessionId", json!("s")),
        ("agentId", json!("other")),
    ];
    for (field, value) in targets {
        for tool in ["createCurrentUserSchedule", "listCurrentUserSchedules"] {
            let mut args = match tool {
                "createCurrentUserSchedule" => good(),
                _ => json!({}),
            };
            args[field] = value.clone();
            let (desk, results) = run(tool, args, "throw");
            assert!(desk.schedule_calls.is_empty(), "{tool} {field}");
            let denied = denials(&desk);
            assert_eq!(denied.len(), 1, "{tool} {field}");
            assert_eq!(denied[0].1, [field]);
            assert!(matches!(&results.borrow()[0], Resume::Throw(error) if error.code == "failed"));
        }
    }
}

/// Z-179 (half: a schedule of somebody else is refused, with an event, like one that does not exist)
#[test]
fn foreign_and_unknown_schedules_are_answered_alike() {
    let answer = |code: &str| {
        let args = json!({"scheduleId": "sch-9"});
        let (code_of_flow, results) = calling("cancelCurrentUserSchedule", args, "return");
        let config = json!({"scheduler": {"tools": true}, "beforeLLM": {"$fn": true}});
        let mut desk = TestSession::new(config, &[("call", code_of_flow)]);
        route_on_start(&mut desk);
        desk.schedule_answers.push_back(Err(CodeError {
            code: code.to_owned(),
            message: format!("internal {code}"),
        }));
        desk.say("start call");
        let result = match &results.borrow()[0] {
            Resume::Value(Some(value)) => value.clone(),
            other => panic!("the error is returned, not {other:?}"),
        };
        (result, denials(&desk).len())
    };
    let (foreign, denied) = answer("scope_denied");
    let (unknown, not_denied) = answer("not_found");
    assert_eq!((denied, not_denied), (1, 0));
    assert_eq!(foreign, unknown);
    assert_eq!(foreign["ok"], false);
}

#[test]
fn unknown_fields_are_refused_as_such() {
    let mut args = good();
    args["spare"] = json!(1);
    let (desk, results) = run("createCurrentUserSchedule", args, "throw");
    assert!(desk.schedule_calls.is_empty() && denials(&desk).is_empty());
    assert!(matches!(&results.borrow()[0], Resume::Throw(error) if error.code == "invalid_args"));
}

fn model_calls(tool: &str, args: Value) -> ChatAnswer {
    ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: tool.to_owned(),
            args,
        }],
        ..ChatAnswer::default()
    }
}

fn answers(desk: &TestSession) -> Vec<(String, bool)> {
    let answers = desk.events.iter().filter_map(|event| match event {
        Body::ToolAnswered {
            content, failed, ..
        } => Some((content.clone(), *failed)),
        _ => None,
    });
    answers.collect()
}

/// Z-178 (half: the model calls the operations)
#[test]
fn model_is_offered_the_tools_where_the_agent_says_so() {
    let mut desk = TestSession::new(json!({"scheduler": {"tools": true}}), &[]);
    let list = model_calls("listCurrentUserSchedules", json!({}));
    desk.answers.push_back(Ok(list));
    desk.say("what is planned?");
    let SessionWork::Model { tools, .. } = &desk.model_calls[0] else {
        panic!("the model was called");
    };
    for operation in ScheduleToolOperation::ALL {
        assert!(tools.iter().any(|tool| tool == operation.tool()));
    }
    assert_eq!(answers(&desk), [(r#"{"id":"s-1"}"#.to_owned(), false)]);
    let denied = model_calls("listCurrentUserSchedules", json!({"userExternalId": "u2"}));
    desk.answers.push_back(Ok(denied));
    desk.say("and for u2?");
    assert_eq!(denials(&desk).len(), 1);
    assert!(answers(&desk)[1].1);
}

#[test]
fn tools_that_are_not_offered_do_not_exist() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.answers
        .push_back(Ok(model_calls("listCurrentUserSchedules", json!({}))));
    desk.say("what is planned?");
    assert!(desk.schedule_calls.is_empty());
    let (content, failed) = &answers(&desk)[0];
    assert!(*failed && content.contains("there is no tool"), "{content}");
}
