//! Node types of the protocol's own test workflows.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{ForkMode, RunStatus};

fn only(type_id: &str, config: Value) -> WorkflowBuilder {
    workflow("conformance-x").node("n", type_id, config)
}

#[test]
fn missing_host_capability_fails_the_node() {
    RunHarness::started(only("conformance.requiresMissing", json!({}))).then(
        "
            run.started
            node.failed n capability_not_provided
            run.failed capability_not_provided n
        ",
    );
}

#[test]
fn missing_model_capability_fails_the_node() {
    RunHarness::started(only("conformance.modelCapability.insufficient", json!({}))).then(
        "
            run.started
            model.capability.insufficient n
            node.failed n capability_not_provided
            run.failed capability_not_provided n
        ",
    );
}

#[test]
fn secret_echo_is_an_effect() {
    let mut run = RunHarness::started(only("conformance.secret.echo", json!({"secretId": "key"})));
    run.then(
        "
            run.started
            node.started n secret
            > secret n key
        ",
    );
    run.done("n", json!({"length": 12}));
    run.then(
        r#"
            variable.changed n: unset -> {"length":12}
            node.completed n {"length":12}
            run.completed {"length":12}
        "#,
    );
}

#[test]
fn memory_hook_shows_the_entries_it_wrote() {
    let hook = |config: Value| {
        let run = RunHarness::started(only("core.identity", config));
        assert_eq!(run.status(), RunStatus::Completed);
        run.run().view().variables
    };
    let shown = hook(json!({"memoryAction": "write-then-read"}));
    assert_eq!(
        shown["memoryReadback"]["content"],
        "a note of the round trip"
    );
    let shown =
        hook(json!({"memoryAction": "cross-tenant-probe", "probeMemoryRef": "host:theirs"}));
    assert_eq!(shown["ownerProbe"][0]["id"], shown["ownerEntryId"]);
    assert_eq!(shown["crossTenantProbe"], json!([]));
    let shown = hook(json!({"memoryAction": "ttl-probe"}));
    let listed = shown["memoryList"].as_array().expect("a list");
    assert_eq!(listed.len(), 1, "the other entry is past its end");
    assert_eq!(listed[0]["id"], shown["freshId"]);
}

#[test]
fn costs_are_summed_and_only_known_attributes_kept() {
    let cost = |usd: f64| {
        json!({"attrs": {
            "openwop.cost.usd": usd, "openwop.cost.model": "m", "openwop.cost.secret": "x", "other": 1,
        }})
    };
    let workflow = only("conformance.cost.emit", cost(0.25))
        .node("m", "conformance.cost.emit", cost(0.5))
        .path("n m");
    let mut run = RunHarness::started(workflow);
    run.then(
        r#"
            run.started
            node.started n
            node.completed n cost={"openwop.cost.model":"m","openwop.cost.usd":0.25}
            node.started m
            node.completed m cost={"openwop.cost.model":"m","openwop.cost.usd":0.5}
            run.completed
        "#,
    );
    let total = run.run().view().cost.map(Value::Object);
    assert_eq!(
        total,
        Some(json!({"openwop.cost.usd": 0.75, "openwop.cost.model": "m"}))
    );
}

#[test]
fn an_artifact_can_be_fetched_by_its_id() {
    let config = json!({"artifactId": "report", "artifactType": "text", "content": {"t": 1}});
    let mut run = RunHarness::started(only("conformance.artifact.emit", config));
    run.then(
        r#"
            run.started
            node.started n
            artifact.created report text
            node.completed n {"artifactId":"report"}
            run.completed {"artifactId":"report"}
        "#,
    );
    assert_eq!(
        run.run().artifact("report").map(|a| a.content),
        Some(json!({"t": 1}))
    );
    assert!(run.run().artifact("other").is_none());
    let run = RunHarness::started(only("conformance.artifact.emit", json!({})));
    assert!(run.run().artifact("run-1:n").is_some());
}

#[test]
fn repeated_message_id_is_folded_once() {
    let hook = json!({"emitDuplicateMessageId": true});
    let workflow = only("core.identity", hook.clone()).channel("m", json!({"reducer": "message"}));
    let run = RunHarness::started(workflow);
    let channels = run.run().view().channels.expect("declared");
    assert_eq!(channels["m"].as_array().map(Vec::len), Some(2));
    let elsewhere = flow_outside(hook);
    assert_eq!(
        RunHarness::started(elsewhere).log().len(),
        4,
        "the hook means nothing elsewhere"
    );
}

fn flow_outside(hook: Value) -> WorkflowBuilder {
    workflow("ordinary")
        .node("n", "core.identity", hook)
        .channel("m", json!({"reducer": "message"}))
}

#[test]
fn hold_completes_after_its_delay_with_its_inputs_as_outputs() {
    let held = only("core.conformance.hold", json!({}))
        .port("delayMs", json!({"type": "static", "value": 250}))
        .port("greeting", json!({"type": "static", "value": "hi"}));
    let mut run = RunHarness::started(held);
    run.then(
        "
            run.started
            node.started n sleep=250
        ",
    );
    run.elapse(250);
    run.then(
        r#"
            node.completed n {"delayMs":250,"greeting":"hi"}
            run.completed {"delayMs":250,"greeting":"hi"}
        "#,
    );
    assert_eq!(run.outbox().count(), 0);
    super::forks::assert_same_course(&run, &run.fork(ForkMode::Replay, 0));
}
