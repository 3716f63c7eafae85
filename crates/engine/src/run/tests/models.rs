//! Nodes that call a model: the request, what follows from each kind of answer, and the retries.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{DrainPolicy, EffectKind, ErrorInfo, Event, ModelRequest, RunStatus, Work};

pub(super) fn schema() -> Value {
    json!({"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}})
}

/// A node that requires `{ok}`.
pub(super) fn structured(workflow: WorkflowBuilder, id: &str, config: Value) -> WorkflowBuilder {
    let mut whole = json!({"provider": "acme", "model": "small", "outputSchema": schema()});
    let given = config.as_object().expect("a configuration");
    whole
        .as_object_mut()
        .expect("it is one")
        .extend(given.clone());
    let messages = json!([{"role": "user", "content": "Is it fine?"}]);
    workflow
        .node(id, "core.ai.structuredOutput", whole)
        .port("messages", json!({"type": "static", "value": messages}))
}

pub(super) fn model_text(text: &str) -> Value {
    json!({"text": text, "stop": "end", "usage": {"input_tokens": 3, "output_tokens": 2}})
}

pub(super) fn cut_off(text: &str) -> Value {
    json!({"text": text, "stop": "max_tokens", "usage": {"input_tokens": 3, "output_tokens": 9}})
}

pub(super) fn refused(words: &str) -> Value {
    json!({"stop": "end", "refusal": {"text": words, "category": "policy"}})
}

fn model_request(run: &RunHarness) -> ModelRequest {
    let calls = run.outbox().filter_map(|effect| match &effect.kind {
        EffectKind::Model { request, .. } => Some((**request).clone()),
        _ => None,
    });
    let calls: Vec<ModelRequest> = calls.collect();
    assert_eq!(calls.len(), 1, "one call at a time");
    calls.into_iter().next().expect("counted")
}

fn one(config: Value) -> RunHarness {
    RunHarness::started(structured(workflow("one"), "m", config))
}

#[test]
fn a_call_is_recorded_whole_before_it_is_made() {
    let mut run = one(json!({"temperature": 0.5, "maxTokens": 50}));
    run.then(
        "
            run.started
            node.started m model
            > model m acme/small messages=1 budget=Some(50) attempt=0
        ",
    );
    let Event::NodeStarted {
        work: Some(Work::Model { key, request, .. }),
        ..
    } = &run.log()[1].event
    else {
        panic!("the start records the call");
    };
    assert_eq!(**request, model_request(&run));
    assert_eq!(*key, crate::model::content_key(request));
    assert_eq!(request.schema, Some(schema()));
}

#[test]
fn each_kind_of_model_answer_has_its_outcome() {
    let again = |text: Value, reason: &str, last: &str| {
        format!(
            "
            model.answered m round=1
            envelope.retry.attempted m attempt=2 {reason}
            {last}
            --- {text}
            "
        )
    };
    for (answer, expected) in [
        (
            model_text("{\"ok\":true}"),
            "
            model.answered m round=1
            node.completed m {\"output\":{\"ok\":true}}
            run.completed {\"ok\":true}
            "
            .to_owned(),
        ),
        (
            model_text("Sure:\n```json\n{\"ok\":false}\n```"),
            "
            model.answered m round=1
            envelope.recovered markdown-fence m
            node.completed m {\"output\":{\"ok\":false}}
            run.completed {\"ok\":false}
            "
            .to_owned(),
        ),
        (
            refused("no"),
            "
            model.answered m round=1
            envelope.refusal m
            node.failed m envelope_refusal
            run.failed envelope_refusal m
            "
            .to_owned(),
        ),
        (
            model_text("fine, I think"),
            again(
                Value::Null,
                "parse-error",
                "> model m acme/small messages=2 budget=None attempt=0",
            ),
        ),
        (
            model_text("{\"ok\":1}"),
            again(
                Value::Null,
                "schema-violation",
                "> model m acme/small messages=2 budget=None attempt=0",
            ),
        ),
        (
            cut_off("{\"ok\":tr"),
            "
            model.answered m round=1
            envelope.truncated m
            envelope.retry.attempted m attempt=2 truncation
            > model m acme/small messages=1 budget=Some(18) attempt=0
            "
            .to_owned(),
        ),
    ] {
        let mut run = one(json!({})).given();
        run.done("m", answer);
        let expected = expected
            .split("---")
            .next()
            .expect("a first part")
            .to_owned();
        run.then(&expected);
    }
}

#[test]
fn model_retry_contains_only_the_last_error() {
    let mut run = one(json!({}));
    let first = run.effect_of("m");
    run.done("m", model_text("prose"));
    assert_ne!(
        run.effect_of("m"),
        first,
        "another call has another identity"
    );
    let second = model_request(&run);
    assert!(
        second.messages[1]
            .content
            .contains("the answer is not JSON")
    );
    run.done("m", model_text("{}"));
    let third = model_request(&run);
    assert_eq!(third.messages.len(), 2);
    assert!(third.messages[1].content.contains("\"ok\" is missing"));
    let mut run = run.given();
    run.done("m", model_text("{\"ok\":true}"));
    run.then(
        r#"
            model.answered m round=3
            node.completed m {"output":{"ok":true}}
            run.completed {"ok":true}
        "#,
    );
}

#[test]
fn model_call_fails_after_three_attempts() {
    let mut run = one(json!({"maxTokens": 50, "retryOnInvalidJson": 0}));
    for _ in 0..2 {
        run.done("m", cut_off("{"));
    }
    assert_eq!(model_request(&run).max_output_tokens, Some(200));
    let mut run = run.given();
    run.done("m", cut_off("{"));
    run.then(
        "
            model.answered m round=3
            envelope.truncated m
            envelope.exhausted 3 truncation m
            cap.breached schema 3>2 m
            node.failed m envelope_truncation_unrecoverable
            run.failed envelope_truncation_unrecoverable m
        ",
    );
    let mut run = one(json!({}));
    for _ in 0..3 {
        run.done("m", model_text("never"));
    }
    let error = run.run().error().expect("it failed").clone();
    assert_eq!(error.code, "envelope_invalid");
    let breach = "cap.breached schema 3>2 m".to_owned();
    assert!(run.lines().contains(&breach), "two rounds after the first");
    assert_eq!(
        error.details,
        Some(json!({"reason": "parse-error", "attempts": 3}))
    );
    let mut widest = one(json!({"maxTokens": 131_072}));
    widest.done("m", cut_off("{"));
    assert_eq!(
        widest.status(),
        RunStatus::Failed,
        "there is no larger budget"
    );
    let breach = "cap.breached schema 1>0 m".to_owned();
    assert!(
        widest.lines().contains(&breach),
        "and no round to use it in"
    );
}

#[test]
fn refusal_and_errors_do_not_quote_the_prompt() {
    let mut run = one(json!({}));
    run.done("m", refused("I will not say whether: Is it fine? Ever."));
    let error = run.run().error().expect("it failed");
    assert!(!error.message.contains("not say"), "{error:?}");
    let log = serde_json::to_string(&run.log()[2..]).expect("events are plain data");
    assert!(!log.contains("Is it fine"), "{log}");
    assert!(
        log.contains("I will not say whether: [REDACTED:prompt]"),
        "{log}"
    );
}

#[test]
fn failed_model_call_is_retried_with_the_same_request() {
    let workflow = structured(workflow("tried"), "m", json!({})).with(
        "settings",
        json!({"retry": {"maxAttempts": 2, "backoff": "none"}}),
    );
    let mut run = RunHarness::started(workflow);
    run.done("m", model_text("prose"));
    let second = run.effect_of("m");
    let later = ErrorInfo::new("provider_quota_exhausted", "later")
        .with_details(json!({"retryAfterMs": 7_000}))
        .retryable();
    let mut run = run.given();
    run.failed("m", later);
    run.elapse(6_999);
    assert_eq!(run.outbox().count(), 0, "the provider requested a delay");
    run.elapse(1);
    assert_eq!(run.effect_of("m"), second);
    run.done("m", model_text("{\"ok\":true}"));
    run.then(
        r#"
            node.retried m provider_quota_exhausted attempt=1 delay=7000
            node.started m attempt=1 model
            > model m acme/small messages=2 budget=None attempt=1
            model.answered m round=2
            node.completed m {"output":{"ok":true}}
            run.completed {"ok":true}
        "#,
    );
    let mut once = one(json!({}));
    once.failed("m", ErrorInfo::new("provider_unavailable", "").retryable());
    assert_eq!(once.status(), RunStatus::Failed, "no policy, no second try");
}

#[test]
fn pause_preserves_the_model_retry_round() {
    let mut run = one(json!({}));
    run.done("m", model_text("prose"));
    let second = run.effect_of("m");
    run.pause(DrainPolicy::Immediate).expect("running");
    assert_eq!(run.outbox().count(), 0);
    run.resume().expect("paused");
    assert_eq!(run.effect_of("m"), second);
}

#[test]
fn chat_adds_its_prompts_to_the_input_messages() {
    let arrives = json!([{"role": "assistant", "content": "Hello."}]);
    let config = json!({"provider": "acme", "systemPrompt": "Be terse.", "userPrompt": "Why?"});
    let chat = workflow("chat")
        .node("m", "core.llm.chat", config)
        .port("messages", json!({"type": "static", "value": arrives}));
    let mut run = RunHarness::started(chat);
    let request = model_request(&run);
    let roles: Vec<&str> = request.messages.iter().map(|m| m.role.as_str()).collect();
    assert_eq!(roles, ["system", "assistant", "user"]);
    assert_eq!((request.model.as_str(), request.schema), ("large", None));
    run.done("m", model_text("Because."));
    let outputs = run.node("m").outputs.clone().expect("it completed");
    assert_eq!(
        Value::Object((*outputs).clone()),
        json!({"content": "Because.", "finishReason": "stop"})
    );
    let cost = run.run().view().cost.expect("tokens are counted");
    assert_eq!(cost["openwop.cost.tokens.total"], 5);
}

#[test]
fn run_options_override_node_configuration() {
    let options = json!({"ai.model": "tiny", "model": "other", "temperature": 2, "maxTokens": 9});
    let mut run = RunHarness::new(structured(workflow("one"), "m", json!({}))).configured(options);
    run.create(json!({}));
    let request = model_request(&run);
    assert_eq!(request.model, "tiny");
    assert_eq!(
        (request.temperature, request.max_output_tokens),
        (Some(2.0), Some(9))
    );
    for unknown in ["nobody", "mock"] {
        let options = json!({"ai.provider": unknown});
        let mut run =
            RunHarness::new(structured(workflow("one"), "m", json!({}))).configured(options);
        let refused = run.try_create(json!({})).expect_err("nobody is called so");
        let Refusal::Invalid(problems) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(problems[0].path, "/configurable/ai.provider");
    }
    // The beginning `ai.` is the protocol's, so this is a misspelled key.
    let misspelled = structured(workflow("one"), "m", json!({}));
    let mut run = RunHarness::new(misspelled).configured(json!({"ai.modle": "tiny"}));
    let Err(Refusal::Invalid(problems)) = run.try_create(json!({})) else {
        panic!("the model of the node would be asked instead");
    };
    assert_eq!(problems[0].path, "/configurable/ai.modle");
    assert!(problems[0].message.contains("`ai.model`"), "{problems:?}");
    // A provider that was configured when the run began may be gone when the node starts.
    let gone = structured(workflow("one"), "m", json!({"provider": "gone"}));
    let error = RunHarness::started(gone).run().error().cloned();
    assert_eq!(error.expect("it failed").code, "provider_not_supported");
}

#[test]
fn invalid_messages_fail_the_node() {
    for (messages, code) in [
        (json!("hello"), "validation_error"),
        (json!([]), "validation_error"),
        (
            json!([{"role": "tool", "content": "x"}]),
            "validation_error",
        ),
        (
            json!([{"role": "user", "content": ["x"]}]),
            "validation_error",
        ),
        (
            json!([{"role": "user", "content": "x", "name": "y"}]),
            "validation_error",
        ),
        (
            json!([{"role": "user", "content": "x".repeat(1_100_000)}]),
            "content_too_long",
        ),
    ] {
        let workflow = structured(workflow("bad"), "m", json!({}))
            .port("messages", json!({"type": "static", "value": messages}));
        let run = RunHarness::started(workflow);
        assert_eq!(run.run().error().expect("it failed").code, code);
    }
}

#[test]
fn model_node_config_rejects_invalid_values() {
    let faults = |config: Value| {
        let faults = structured(workflow("bad"), "m", config).faults();
        faults.into_iter().map(|f| f.path).collect::<Vec<_>>()
    };
    for (config, path) in [
        (json!({"tools": []}), "/nodes/0/config/tools"),
        (json!({"provider": ""}), "/nodes/0/config/provider"),
        (json!({"provider": "mock"}), "/nodes/0/config/provider"),
        (
            json!({"outputSchema": {"type": 7}}),
            "/nodes/0/config/outputSchema/type",
        ),
        (
            json!({"outputSchema": null}),
            "/nodes/0/config/outputSchema",
        ),
        (json!({"maxTokens": 0}), "/nodes/0/config/maxTokens"),
        (json!({"maxTokens": 1_000_000}), "/nodes/0/config/maxTokens"),
        (json!({"temperature": 3}), "/nodes/0/config/temperature"),
        (
            json!({"retryOnInvalidJson": "no"}),
            "/nodes/0/config/retryOnInvalidJson",
        ),
    ] {
        assert_eq!(faults(config), [path]);
    }
    let chat = workflow("bad").node(
        "m",
        "core.llm.chat",
        json!({"provider": "acme", "stream": true}),
    );
    assert_eq!(chat.faults()[0].path, "/nodes/0/config/stream");
}

#[test]
fn unconfigured_provider_is_refused_at_registration() {
    let harness = RunHarness::new(workflow("any").noops("n"));
    let faults = |config: Value| {
        let def = structured(workflow("doc").noops("a"), "m", config).compile();
        let faults = harness.providers.check(&def).into_iter();
        faults.map(|f| (f.path, f.message)).collect::<Vec<_>>()
    };
    assert_eq!(faults(json!({})), []);
    assert_eq!(faults(json!({"model": null})), []);
    let problems = faults(json!({"provider": "other"}));
    assert_eq!(problems[0].0, "/nodes/1/config/provider");
    assert!(problems[0].1.ends_with("it has acme"), "{problems:?}");
    let mock = workflow("conformance-x").node(
        "m",
        "core.ai.structuredOutput",
        json!({"provider": "mock", "outputSchema": {}}),
    );
    let problems = harness.providers.check(&mock.compile());
    assert_eq!(problems[0].path, "/nodes/0/config/model");
}
