//! Hooks before the model and before a response, and the report after it.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, failed, text_of, value};
use serde_json::json;
use tandem_record::conversation::{CodeCall, CodeOutcome};

fn asking() -> Code {
    code(|step, with, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        1 => effect(json!({"type": "say", "text": format!("x={}", text_of(with))})),
        _ => done(),
    })
}

fn three() -> Code {
    code(|step, _, _| match step {
        0..=2 => {
            let text = ["a", "b", "c"][step];
            effect(json!({"type": "say", "text": text}))
        }
        _ => done(),
    })
}

fn desk(config: serde_json::Value) -> TestSession {
    let mut desk = TestSession::new(config, &[("asking", asking()), ("three", three())]);
    route_on_start(&mut desk);
    desk
}

fn hook(desk: &mut TestSession, path: &str, answer: impl Fn(&CodeCall) -> CodeOutcome + 'static) {
    desk.functions.insert(path.to_owned(), Box::new(answer));
}

/// Z-118 (half: skip llm sends its draft and leaves a waiting flow alone)
#[test]
fn skip_llm_sends_its_draft_and_leaves_a_waiting_flow_alone() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    desk.say("start asking");
    hook(&mut desk, "beforeLLM", |call| {
        match call.args[0]["text"].as_str() {
            Some("hours?") => value(json!({"action": "skip_llm", "draftReply": "At nine."})),
            Some("shh") => value(json!({"action": "skip_llm"})),
            _ => CodeOutcome::default(),
        }
    });
    assert_eq!(desk.say("hours?"), ["At nine."]);
    assert!(desk.say("shh").is_empty());
    assert_eq!(desk.paused_on(), Some("ask"));
    assert_eq!(desk.say("7"), ["x=7"]);
    assert!(desk.model_calls.is_empty());
}

/// Z-119 (half: route flow preempts a flow that asks and ignores unknown flows)
#[test]
fn route_flow_preempts_a_flow_that_asks_and_ignores_unknown_flows() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    desk.say("start asking");
    assert_eq!(desk.say("start three"), ["a", "b", "c"]);
    assert_eq!(desk.flow_ends(), [Some("preempted".to_owned()), None]);
    assert_eq!(desk.say("start nowhere"), ["model speaks"]);
    assert_eq!(desk.failures("beforeLLM"), ["unknown_flow"]);
}

/// Z-120 (half: end stores the message and does nothing else)
#[test]
fn end_stores_the_message_and_does_nothing_else() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    hook(&mut desk, "beforeLLM", |_| value(json!({"action": "end"})));
    assert!(desk.say("hi").is_empty());
    assert!(desk.model_calls.is_empty());
    assert_eq!(desk.state().message_count(), 1);
}

/// Z-126 (half: hook that fails or answers nonsense means continue)
#[test]
fn hook_that_fails_or_answers_nonsense_means_continue() {
    for answer in [
        failed("failed", "down"),
        value(json!({"action": "explode"})),
        value(json!(7)),
    ] {
        let mut desk = desk(json!({"beforeLLM": {"$fn": true}, "beforeResponse": {"$fn": true}}));
        for path in ["beforeLLM", "beforeResponse"] {
            let answer = answer.clone();
            hook(&mut desk, path, move |_| answer.clone());
        }
        assert_eq!(desk.say("hi"), ["model speaks"]);
        assert_eq!(desk.failures("beforeLLM").len(), 1);
        assert_eq!(desk.failures("beforeResponse").len(), 1);
    }
}

/// Z-122 (half: the model and flows), Z-123 (half: the index), Z-124 (half: not sent, not remembered)
/// Z-125 (half: remembered as replaced)
#[test]
fn before_response_sees_each_candidate_and_may_replace_or_cancel_it() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}, "beforeResponse": {"$fn": true}}));
    hook(&mut desk, "beforeResponse", |call| {
        let candidate = &call.args[0]["candidate"];
        match candidate["text"].as_str().unwrap_or_default() {
            "x?" => value(json!({"action": "cancel"})),
            "b" => value(json!({"action": "cancel", "reason": "no b"})),
            text => {
                let reply = format!("<{}:{text}>", candidate["index"]);
                value(json!({"action": "replace", "reply": reply}))
            }
        }
    });
    assert_eq!(desk.say("hi"), ["<0:model speaks>"]);
    assert_eq!(desk.say("start three"), ["<0:a>", "<2:c>"]);
    assert!(desk.say("start asking").is_empty());
    assert_eq!(
        desk.paused_on(),
        Some("ask"),
        "a cancelled question still waits"
    );
    assert_eq!(desk.say("7"), ["<0:x=7>"]);
    let remembered: Vec<_> = desk.state().memory().map(|m| m.text.clone()).collect();
    assert!(remembered.contains(&"<0:a>".to_owned()));
    assert!(!remembered.contains(&"x?".to_owned()));
}

/// Z-130 (half: all texts of a flow turn), Z-133 (half: source and flow beside it)
#[test]
fn on_response_is_called_once_with_all_texts_after_delivery() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}, "onResponse": {"$fn": true}}));
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let calls = seen.clone();
    hook(&mut desk, "onResponse", move |call| {
        calls.borrow_mut().push(call.args.clone());
        CodeOutcome::default()
    });
    desk.held.push("session.send");
    desk.say("start three");
    assert!(seen.borrow().is_empty(), "the texts are not final yet");
    desk.held.clear();
    desk.perform_all();
    let calls = seen.borrow();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        calls[0][0],
        json!({"reply": "a\nb\nc", "replies": ["a", "b", "c"]})
    );
    assert_eq!(calls[0][1]["source"], "flow");
    assert_eq!(calls[0][1]["flowId"], "three");
}

/// Z-134 (half: exception in on response undoes nothing)
#[test]
fn exception_in_on_response_undoes_nothing() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}, "onResponse": {"$fn": true}}));
    hook(&mut desk, "onResponse", |_| failed("failed", "late"));
    assert_eq!(desk.say("start three"), ["a", "b", "c"]);
    assert_eq!(desk.failures("onResponse"), ["late"]);
    assert_eq!(desk.say("start three"), ["a", "b", "c"]);
}

/// a start that is refused for its input ends nothing.
/// Z-44 (half: a refused start ends nothing), Z-119 (half: a refused start ends nothing)
#[test]
fn route_to_a_flow_with_wrong_input_leaves_the_flow_that_asks() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    desk.say("start asking");
    let schema = json!({"type": "object", "required": ["item"]});
    let source = crate::flow::SchemaSource::Json(schema);
    let compiled = crate::flow::AuthorSchema::compile(&source).expect("a schema");
    let flow = desk.agent.flows.get_mut("three").expect("a flow");
    flow.input_schema = Some(compiled);
    assert_eq!(desk.say("start three"), ["x=start three"]);
    assert_eq!(desk.flow_ends(), [None]);
}

/// Z-32 (half: a draft of the hook stands for the ack while a person is awaited)
#[test]
fn draft_while_a_person_is_awaited_is_sent_instead_of_the_ack() {
    let hitl = json!({"asyncPendingPolicy": {"behavior": "ack", "ackText": "Soon."}});
    let mut desk = super::escalations::waiting_desk_with(json!({ "hitl": hitl }));
    hook(&mut desk, "beforeLLM", |_| {
        value(json!({"action": "skip_llm", "draftReply": "At nine."}))
    });
    assert_eq!(desk.say("when?"), ["At nine."]);
    let held = desk.events.iter().filter_map(|event| match event {
        tandem_record::conversation::SessionEventBody::PendingMessage { behavior, .. } => {
            Some(behavior.as_str())
        }
        _ => None,
    });
    assert_eq!(held.collect::<Vec<_>>(), ["noop"]);
}
