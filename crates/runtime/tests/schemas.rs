//! Schemas in the runtime: documents of earlier releases stay readable, and offloaded work leads to
//! the same events.

use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::definition_hash;
use tandem_record::{RunStatus, Timestamp, WorkflowId};
use tandem_runtime::{Permissions, RegisterError};
use tandem_store::{Commit, DefinitionRecord, Log, RegistryChange};
use tandem_testkit::test_host::{TestHost, tenant};
use tandem_testkit::{WorkflowBuilder, wf};

/// Writes its input `value` to a channel with this schema, after a delay.
fn writes(schema: Value, default: Value) -> WorkflowBuilder {
    wf("writes")
        .variable("value", default)
        .channel("c", json!({"reducer": "replace", "schema": schema}))
        .delay("wait", 5)
        .node("write", "core.channelWrite", json!({"channelName": "c"}))
        .port(
            "value",
            json!({"type": "variable", "variableName": "value"}),
        )
        .path("wait write")
}

/// Stores a document as a release without limits would have stored it.
async fn stored_before(host: &TestHost, document: &Value) {
    let change = RegistryChange::Register {
        owner: Some(tenant().into()),
        definition: DefinitionRecord {
            hash: definition_hash(document),
            workflow: WorkflowId::new("writes"),
            document: Arc::from(document.to_string()),
        },
        at: Timestamp(0),
    };
    let commit = Commit {
        registry: vec![change],
        ..Commit::default()
    };
    host.store.commit(commit).await.expect("stored");
}

#[tokio::test(start_paused = true)]
async fn document_of_earlier_release_runs_and_fails_closed_on_invalid_schema() {
    let host = TestHost::new().await;
    let document = writes(json!({"pattern": "(?=x|(a|a)*b)^(a|aa)+$"}), json!("")).document();
    let (tenant, permissions) = (tenant().into(), Permissions::default());
    let today = host.runtime.register(Some(&tenant), &document, permissions);
    let Err(RegisterError::Invalid(problems)) = today.await else {
        panic!("today it is refused");
    };
    assert_eq!(problems[0].path, "/channels/c/schema/pattern");
    stored_before(&host, &document).await;
    let run = host
        .create("writes", json!({"value": "a".repeat(400_000)}))
        .await;
    assert_eq!(host.ended(&run).await, RunStatus::Failed);
    let folded = host.folded(&run).await;
    assert_eq!(folded.error().expect("it failed").code, "schema_refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offloaded_decisions_produce_the_same_events() {
    let host = TestHost::new().await;
    host.register(writes(json!({"items": {"type": "integer"}}), json!([])))
        .await;
    // Large enough for a decision that is offloaded.
    for (value, status) in [
        (json!(vec![1; 50_000]), RunStatus::Completed),
        (json!(vec!["x"; 50_000]), RunStatus::Failed),
        (json!([1]), RunStatus::Completed),
    ] {
        let run = host.create("writes", json!({"value": value})).await;
        assert_eq!(host.ended(&run).await, status);
    }
}
