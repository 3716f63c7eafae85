//! Mock providers: what each emits and when, that no real provider is called, what interrupts an
//! answer, and which settings are accepted.

use super::harness::RunHarness;
use super::models::structured;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::{Refusal, Run};
use serde_json::{Value, json};
use tandem_record::{DrainPolicy, EffectKind, Event, Reply, RunStatus, TimerKey};

/// A prompt by its id.
fn prompt(workflow: WorkflowBuilder, id: &str) -> WorkflowBuilder {
    let config = json!({"promptId": "p", "expectsStreaming": true});
    workflow.node(id, "core.ai.callPrompt", config)
}

fn one() -> WorkflowBuilder {
    prompt(workflow("conformance-one"), "ai")
}

fn chat() -> WorkflowBuilder {
    let config = json!({"provider": "acme", "userPrompt": "Well?"});
    workflow("chat").node("ai", "core.llm.chat", config)
}

fn mocked(workflow: WorkflowBuilder, id: &str, config: Value) -> RunHarness {
    let mock = json!({"id": id, "config": config});
    let mut run = RunHarness::new(workflow).configured(json!({"mockProvider": mock}));
    run.create(json!({}));
    run
}

pub(super) fn mock_tokens(workflow: WorkflowBuilder, tokens: &[&str], delay: u64) -> RunHarness {
    let config = json!({"tokens": tokens, "delayMsPerToken": delay});
    mocked(workflow, "stream-text", config)
}

fn wake(attempt: u32) -> TimerKey {
    TimerKey::NodeWake {
        node: "ai".into(),
        attempt,
    }
}

#[test]
fn token_is_emitted_when_due_and_the_last_one_ends_the_call() {
    let mut run = mock_tokens(one(), &["Hello", " ", "world"], 10);
    run.then(
        r#"
            run.started
            node.started ai mock
            output.chunk ai "Hello"
        "#,
    );
    assert_eq!(run.timers(), ["wake ai 0 +10"]);
    assert_eq!(run.outbox().count(), 0, "no provider is called");
    run.elapse(10);
    run.then(r#"output.chunk ai " ""#);
    run.elapse(10);
    run.then(
        r#"
            output.chunk ai "world" stop 1+3
            model.answered ai round=1
            node.completed ai {"content":"Hello world","finishReason":"stop"}
            run.completed {"content":"Hello world","finishReason":"stop"}
        "#,
    );
}

#[test]
fn without_a_delay_one_decision_emits_all_tokens() {
    let mut run = mocked(one(), "stream-text", json!({}));
    run.then(
        r#"
            run.started
            node.started ai mock
            output.chunk ai "mock"
            output.chunk ai " response" stop 1+2
            model.answered ai round=1
            node.completed ai {"content":"mock response","finishReason":"stop"}
            run.completed {"content":"mock response","finishReason":"stop"}
        "#,
    );
    let Event::ModelAnswered(answered) = &run.log()[4].event else {
        panic!("the answer is recorded");
    };
    assert_eq!(
        (answered.provider.as_str(), answered.model.as_str()),
        ("mock", "mock-stream-text-v1")
    );
}

#[test]
fn early_repeated_and_late_timers_emit_at_most_one_token() {
    let mut run = mock_tokens(one(), &["a", "b", "c"], 10).given();
    assert_eq!(run.fire(wake(0)), Reply::Unchanged, "too early");
    assert_eq!(run.fire(wake(1)), Reply::Unchanged, "another attempt's");
    run.now = run.now.plus_ms(5_000);
    run.fire(wake(0));
    run.then(r#"output.chunk ai "b""#);
    assert_eq!(run.fire(wake(0)), Reply::Unchanged, "the same one again");
    assert_eq!(
        run.timers(),
        ["wake ai 0 +10"],
        "late, and at its pace again"
    );
}

#[test]
fn every_way_an_answer_can_end() {
    for (finish, expected) in [
        (
            "length",
            r#"node.completed ai {"content":"mock response","finishReason":"length"}"#,
        ),
        (
            "tool_calls",
            r#"node.completed ai {"content":"mock response","finishReason":"stop"}"#,
        ),
        ("content_filter", "envelope.refusal ai"),
    ] {
        let usage = json!({"promptTokens": 5, "completionTokens": 4, "totalTokens": 11});
        let config = json!({"finishReason": finish, "usage": usage, "model": "m"});
        let mut run = mocked(chat(), "stream-text", config);
        let lines = run.lines();
        assert_eq!(
            lines[3],
            format!("output.chunk ai \" response\" {finish} 5+4")
        );
        assert_eq!(lines[5], expected, "{finish}");
        assert_eq!(run.outbox().count(), 0, "the node's own provider is spared");
        let Event::OutputChunk(last) = &run.log()[3].event else {
            panic!("{lines:?}");
        };
        assert_eq!(last.end.map(|end| end.usage.total_tokens), Some(11));
        assert_eq!(last.model, "m");
        let cost = run.run().view().cost.expect("tokens are counted");
        assert_eq!(cost["openwop.cost.tokens.output"], 4);
        assert_eq!(cost["openwop.cost.provider"], "mock");
    }
    let mut run = mocked(
        chat(),
        "stream-text",
        json!({"finishReason": "content_filter"}),
    );
    run.lines();
    assert_eq!(run.status(), RunStatus::Failed);
}

#[test]
fn json_in_tokens_is_validated_like_any_answer() {
    let wants = || structured(workflow("json"), "ai", json!({}));
    let mut run = mock_tokens(wants(), &["{\"ok\":", "true}"], 0);
    run.then(
        r#"
            run.started
            node.started ai mock
            output.chunk ai "{\"ok\":"
            output.chunk ai "true}" stop 1+2
            model.answered ai round=1
            node.completed ai {"output":{"ok":true}}
            run.completed {"ok":true}
        "#,
    );
    // A retry emits the same tokens again, with the same delays.
    let mut run = mock_tokens(wants(), &["no", "pe"], 10).given();
    run.elapse(10);
    run.then(
        r#"
            output.chunk ai "pe" stop 1+2
            model.answered ai round=1
            envelope.retry.attempted ai attempt=2 parse-error
            output.chunk ai "no"
        "#,
    );
    run.elapse(10);
    run.elapse(10);
    run.then(
        r#"
            output.chunk ai "pe" stop 1+2
            model.answered ai round=2
            envelope.retry.attempted ai attempt=3 parse-error
            output.chunk ai "no"
            output.chunk ai "pe" stop 1+2
            model.answered ai round=3
            envelope.exhausted 3 parse-error ai
            cap.breached schema 3>2 ai
            node.failed ai envelope_invalid
            run.failed envelope_invalid ai
        "#,
    );
}

#[test]
fn tool_calls_and_usage_are_emitted_as_chunks() {
    let call = |id: &str| json!({"id": id, "name": "add", "arguments": "{\"a\":1}"});
    let calls = json!({"toolCalls": [call("c1"), call("c2")], "delayMsPerToken": 5});
    let mut run = mocked(chat(), "tool-calls", calls).given();
    run.elapse(5);
    run.then(
        r#"
            output.chunk ai call=c2 tool_calls 1+2
            model.answered ai round=1
            node.completed ai {"content":"","finishReason":"stop"}
            run.completed {"content":"","finishReason":"stop"}
        "#,
    );
    let usage = json!({"usage": {"promptTokens": 7, "completionTokens": 2}});
    let mut run = mocked(chat(), "usage-only", usage);
    run.then(
        r#"
            run.started
            node.started ai mock
            output.chunk ai "" stop 7+2
            model.answered ai round=1
            node.completed ai {"content":"","finishReason":"stop"}
            run.completed {"content":"","finishReason":"stop"}
        "#,
    );
}

#[test]
fn mock_error_fails_the_node_like_a_provider_error() {
    let retry = json!({"retry": {"maxAttempts": 2, "backoff": "fixed", "backoffMs": 7}});
    let error = json!({"code": "boom", "message": "no", "retryable": true, "failAfterMs": 40});
    let mut run = mocked(chat().with("settings", retry), "error", error);
    run.then(
        "
            run.started
            node.started ai mock
        ",
    );
    assert_eq!(run.timers(), ["wake ai 0 +40"]);
    run.elapse(40);
    run.then("node.retried ai boom attempt=1 delay=7");
    run.elapse(7);
    run.then("node.started ai attempt=1 mock");
    run.elapse(40);
    run.then(
        "
            node.failed ai boom attempts=2
            run.failed boom ai
        ",
    );
    let mut run = mocked(chat(), "error", json!({"code": "boom", "message": "no"}));
    run.then(
        "
            run.started
            node.started ai mock
            node.failed ai boom
            run.failed boom ai
        ",
    );
}

#[test]
fn pause_stops_the_mock_answer_and_resume_repeats_the_call() {
    let mut run = mock_tokens(one(), &["a", "b"], 10).given();
    run.elapse(4);
    run.pause(DrainPolicy::Immediate).expect("it can pause");
    assert!(run.timers().is_empty());
    run.elapse(100);
    run.lines();
    run.resume().expect("it can go on");
    run.elapse(10);
    run.then(
        r#"
            run.resumed
            node.started ai attempt=1 mock
            output.chunk ai "a"
            output.chunk ai "b" stop 1+2
            model.answered ai round=1
            node.completed ai {"content":"ab","finishReason":"stop"}
            run.completed {"content":"ab","finishReason":"stop"}
        "#,
    );
    let mut run = mock_tokens(one(), &["a", "b"], 10).given();
    run.pause(DrainPolicy::DrainCurrentNode).expect("it can");
    run.elapse(10);
    assert_eq!(run.status(), RunStatus::Paused, "it finished its sentence");
}

#[test]
fn cancel_and_timeouts_stop_a_mock_answer() {
    let mut run = mock_tokens(one(), &["a", "b"], 10).given();
    run.cancel();
    assert_eq!(run.status(), RunStatus::Cancelled);
    assert!(run.timers().is_empty());
    assert_eq!(run.fire(wake(0)), Reply::Unchanged);

    let slow = one().with("settings", json!({"timeoutMs": 15}));
    let mut run = mock_tokens(slow, &["a", "b", "c"], 10).given();
    run.elapse(15);
    run.then(
        r#"
            output.chunk ai "b"
            node.failed ai node_timeout
            run.failed node_timeout ai
        "#,
    );
    let mut run = mock_tokens(one().settings(json!({"timeout": 15})), &["a", "b", "c"], 10).given();
    run.elapse(15);
    assert_eq!(run.status(), RunStatus::Failed);
    assert_eq!(
        run.run().error().map(|e| e.code.as_str()),
        Some("run_timeout")
    );
    assert!(run.timers().is_empty());
}

#[test]
fn a_prompt_by_its_id_needs_a_mock_provider_and_a_conformance_workflow() {
    let mut run = RunHarness::started(one());
    run.then(
        "
            run.started
            node.failed ai capability_not_provided
            run.failed capability_not_provided ai
        ",
    );
    let message = &run.run().error().expect("it failed").message;
    assert!(message.contains("configurable.mockProvider"), "{message}");
    let elsewhere = prompt(workflow("mine"), "ai").faults();
    assert_eq!(elsewhere[0].type_id.as_deref(), Some("core.ai.callPrompt"));
    for config in [
        json!({}),
        json!({"promptId": ""}),
        json!({"promptId": "p".repeat(258)}),
        json!({"promptId": "p", "expectsStreaming": 1}),
        json!({"promptId": "p", "provider": "acme"}),
    ] {
        let workflow = workflow("conformance-bad").node("ai", "core.ai.callPrompt", config);
        assert!(workflow.faults()[0].path.starts_with("/nodes/0/config"));
    }
}

#[test]
fn mock_provider_options_are_validated_at_creation() {
    let many: Vec<&str> = vec!["a"; 1_001];
    let large = "x".repeat(64 * 1024 + 1);
    let call = json!({"id": "c", "name": "n"});
    let stream = |config: Value| json!({"id": "stream-text", "config": config});
    for (mock, at) in [
        (json!("stream-text"), ""),
        (json!({"config": {}}), ""),
        (json!({"id": 7}), "/id"),
        (json!({"id": ""}), "/id"),
        (json!({"id": "nobody"}), "/id"),
        (json!({"id": "stream-text", "more": 1}), ""),
        (json!({"id": "stream-text", "config": []}), "/config"),
        (stream(json!({"words": []})), "/config"),
        (stream(json!({"tokens": []})), "/config/tokens"),
        (stream(json!({"tokens": ["a", 1]})), "/config/tokens/1"),
        (stream(json!({"tokens": many})), "/config/tokens"),
        (stream(json!({"tokens": [large]})), "/config/tokens"),
        (
            stream(json!({"delayMsPerToken": 5_001})),
            "/config/delayMsPerToken",
        ),
        (
            stream(json!({"delayMsPerToken": -1})),
            "/config/delayMsPerToken",
        ),
        (stream(json!({"delayMsPerToken": 1.0})), "/config"),
        (
            stream(json!({"finishReason": "end"})),
            "/config/finishReason",
        ),
        (
            stream(json!({"usage": {"promptTokens": -1}})),
            "/config/usage/promptTokens",
        ),
        (stream(json!({"usage": {"tokens": 1}})), "/config/usage"),
        (stream(json!({"model": ""})), "/config/model"),
        (json!({"id": "tool-calls"}), ""),
        (
            json!({"id": "tool-calls", "config": {"toolCalls": [call]}}),
            "/config/toolCalls/0",
        ),
        (
            json!({"id": "error", "config": {"code": "a b", "message": "m"}}),
            "/config/code",
        ),
        (json!({"id": "error", "config": {"code": "a"}}), "/config"),
        (json!({"id": "usage-only", "config": {}}), "/config"),
    ] {
        let shown = mock.to_string();
        let mut run = RunHarness::new(one()).configured(json!({"mockProvider": mock}));
        let Err(Refusal::Invalid(problems)) = run.try_create(json!({})) else {
            panic!("{shown} was taken");
        };
        let path = format!("/configurable/mockProvider{at}");
        assert_eq!(problems[0].path, path, "{shown}");
    }
}

/// The bytes of a call are those of its id, its name and its arguments together.
#[test]
fn long_names_of_mock_tool_calls_are_accepted() {
    let name = "n".repeat(120);
    let calls: Vec<Value> = (0..5)
        .map(|number| {
            let id = format!("{number}{}", "i".repeat(119));
            json!({"id": id, "name": name, "arguments": "{}"})
        })
        .collect();
    let run = mocked(chat(), "tool-calls", json!({"toolCalls": calls}));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn children_inherit_the_mock_provider() {
    let closed = json!({"type": "object", "additionalProperties": false});
    let child = chat().key("configurableSchema", closed);
    let parent = workflow("parent").call("call", "chat", json!({}));
    let mock = json!({"id": "stream-text", "config": {"tokens": ["a"]}});
    let wanted = json!({"mockProvider": mock, "temperature": 1, "ai.provider": "acme"});
    let mut run = RunHarness::new(parent)
        .with_workflow(child)
        .configured(wanted);
    run.create(json!({}));
    let new_child = run.created_children().next().expect("it has a child");
    let given = new_child.request.options.configurable.clone();
    assert_eq!(Value::from(given), json!({"mockProvider": mock}));
    let refused = run
        .outbox()
        .any(|e| matches!(e.kind, EffectKind::NotifyParent { .. }));
    assert!(!refused, "the child may begin");
}

#[test]
fn node_after_a_long_answer_starts_in_another_decision() {
    let tokens: Vec<&str> = vec!["a"; 300];
    let two = prompt(prompt(workflow("conformance-two"), "ai"), "more").path("ai more");
    let run = mock_tokens(two, &tokens, 0);
    assert_eq!(run.status(), RunStatus::Running);
    let later: Vec<&EffectKind> = run.outbox().map(|e| &e.kind).collect();
    assert_eq!(later, [&EffectKind::Continue]);
    let chunks = run.log().iter();
    let chunks = chunks.filter(|r| matches!(r.event, Event::OutputChunk(_)));
    assert_eq!(chunks.count(), 300);
}

#[test]
fn unreadable_mock_provider_never_falls_back_to_a_real_one() {
    let mut run = mocked(chat(), "stream-text", json!({}));
    // As if a secret had been removed from the request.
    run.tamper(|event| {
        if let Event::RunStarted { request, .. } = event {
            let options = request.options.configurable.as_mut().expect("it has some");
            options["mockProvider"]["id"] = json!("[REDACTED]");
        }
    });
    let mut folded = Run::new(run.run().id().clone(), run.run().definition().clone());
    folded.evolve(&run.log()[0]);
    let error = folded.mock().expect_err("it cannot be read");
    assert_eq!(error.code, "validation_error");
}
