//! Forks and memory through the runtime: forks are atomic, memory is redacted and outlives the log.

use serde_json::json;
use std::time::Duration;
use tandem_record::{ForkMode, RunId, RunStatus, Seq};
use tandem_runtime::{Redactor, SubmitError, Unforkable};
use tandem_store::{Page, ReadRuns, RunFilter};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, children, new_run, tenant};
use tandem_testkit::{InjectedFault, wf};
use tokio::test;

const SECRET: &str = "correct-horse-battery";

fn memory_config(action: &str, key: &str) -> serde_json::Value {
    json!({"action": action, "key": key})
}

async fn create(host: &TestHost, workflow: &str, scope: &str) -> RunId {
    let mut new = new_run(workflow, json!({}));
    new.request.scope_id = Some(scope.to_owned());
    let run = host.runtime.create_run(new, None).await;
    run.expect("the run may start")
}

async fn fork(
    host: &TestHost,
    run: &RunId,
    mode: ForkMode,
    from: u64,
) -> Result<RunId, SubmitError> {
    host.fork(run, mode, Seq(from)).await
}

async fn runs(host: &TestHost) -> usize {
    let page = Page {
        before: None,
        limit: 100,
    };
    let filter = RunFilter::default();
    let listing = host.store.list_runs(&tenant(), &filter, &page).await;
    listing.expect("the store answers").runs.len()
}

/// What a new run reads.
async fn read(host: &TestHost, scope: &str) -> serde_json::Value {
    let run = create(host, "reader", scope).await;
    let outputs = host.folded(&run).await.outputs().cloned();
    outputs.expect("it completed")["value"].clone()
}

async fn host() -> TestHost {
    let plan = TestHostBuilder {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    let get = memory_config("get", "k");
    host.register(wf("reader").node("r", "vendor.tandem.memory", get))
        .await;
    host
}

#[test(start_paused = true)]
async fn fork_is_committed_atomically() {
    let host = host().await;
    host.register(wf("plain").noop("a").noop("b").path("a b"))
        .await;
    let run = host.create("plain", json!({})).await;
    let log = host.log(&run).await;
    for (mode, from) in [(ForkMode::Replay, 2), (ForkMode::Branch, 3)] {
        let before = runs(&host).await;
        host.faults.next([InjectedFault::FailsBefore]);
        let refused = fork(&host, &run, mode, from).await;
        assert!(matches!(refused, Err(SubmitError::Fault(_))), "{refused:?}");
        assert_eq!(runs(&host).await, before, "no partial run");
        let made = fork(&host, &run, mode, from).await.expect("it can be made");
        assert_eq!(host.status(&made).await, RunStatus::Completed);
        assert_eq!(host.log(&made).await.len(), log.len());
    }
    assert_eq!(host.log(&run).await, log, "the source is unchanged");
    let beyond = fork(&host, &run, ForkMode::Replay, 99).await;
    assert!(matches!(
        beyond,
        Err(SubmitError::Unforkable(Unforkable::BeyondEnd { .. }))
    ));
}

#[test(start_paused = true)]
async fn last_write_of_concurrent_children_wins() {
    // R-0039-18 (half: one order for all readers), R-0039-19 (half: in it the last write wins)
    let host = host().await;
    let mut parent = wf("parent").settings(json!({"timeout": 0}));
    for child in 0..4 {
        let put = json!({"action": "put", "key": "k", "value": format!("child {child}")});
        let id = format!("child-{child}");
        let flow = wf(&id)
            .delay("nap", 1 + child % 2)
            .node("w", "vendor.tandem.memory", put)
            .path("nap w");
        host.register(flow).await;
        parent = parent.call(&format!("c{child}"), &id, json!({}));
    }
    parent = parent.node("r", "vendor.tandem.memory", memory_config("get", "k"));
    for child in 0..4 {
        parent = parent.edge(&format!("c{child}"), "r");
    }
    host.register(parent).await;
    // Many parents at once, each in its own scope.
    let mut parents = Vec::new();
    for tree in 0..25 {
        let scope = format!("tree-{tree}");
        parents.push((create(&host, "parent", &scope).await, scope));
    }
    for (run, scope) in parents {
        assert_eq!(host.ended(&run).await, RunStatus::Completed);
        assert_eq!(children(&host.log(&run).await).len(), 4);
        let memory = host.folded(&run).await.outputs().cloned();
        let memory = memory.expect("it completed")["value"].clone();
        assert_eq!(
            memory,
            read(&host, &scope).await,
            "{scope}: one order for all readers"
        );
        let last = ["child 1", "child 3"];
        let wins = memory.as_str().is_some_and(|value| last.contains(&value));
        assert!(wins, "{scope}: they wrote after the others, not {memory}");
    }
}

#[test(start_paused = true)]
async fn secret_in_memory_is_redacted_before_it_is_stored() {
    let host = host().await;
    let put = json!({
        "action": "put", "key": "k", "tags": [format!("of {SECRET}")],
        "value": {"deep": [{"note": format!("it is {SECRET}!")}]},
    });
    let flow = wf("leaky")
        .node("w", "vendor.tandem.memory", put)
        .node("r", "vendor.tandem.memory", memory_config("get", "k"))
        .path("w r");
    host.register_before_secrets(flow).await;
    let run = create(&host, "leaky", "s").await;
    let stored = host.runtime.find_run(&tenant(), &run).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let memory = host.runtime.run_memory(&stored, None, None).await;
    let memory = memory.expect("the store answers").entries;
    assert_eq!(
        memory[0].value,
        json!({"deep": [{"note": "it is [REDACTED:db]!"}]})
    );
    assert_eq!(memory[0].tags, ["of [REDACTED:db]"]);
    let expected = memory[0].value.clone();
    assert_eq!(
        read(&host, "s").await,
        expected,
        "another run reads it redacted"
    );
    let replay = fork(&host, &run, ForkMode::Replay, 0).await;
    let replay = host.log(&replay.expect("it can be made")).await;
    let log = host.log(&run).await;
    assert_eq!(replay.len(), log.len(), "redaction is not a divergence");
    assert!(!format!("{log:?} {replay:?}").contains(SECRET));
}

#[test(start_paused = true)]
async fn purged_run_keeps_its_row_and_its_memory() {
    // R-0039-22, R-0039-25 (half: it is refused before anything is written)
    let host = host().await;
    let put = json!({"action": "put", "key": "k", "value": "kept"});
    let flow = wf("writer")
        .node("w", "vendor.tandem.memory", put)
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .path("w gate")
        .settings(json!({"timeout": 0}));
    host.register(flow).await;
    let run = create(&host, "writer", "s").await;
    let branch = fork(&host, &run, ForkMode::Branch, 4).await;
    let branch = branch.expect("it can be made");
    host.cancel(&run).await.expect("it waits");
    let month = 31 * 24 * 3600 * 1000;
    host.runtime.advance_clock(month).await.expect("it moves");
    let before = runs(&host).await;
    let refused = fork(&host, &run, ForkMode::Replay, 1).await;
    assert_eq!(
        runs(&host).await,
        before,
        "refused before anything was written"
    );
    let expected = Unforkable::NotRetained {
        source_run: run.clone(),
        from_seq: Seq(1),
        reason: "retention_expired",
    };
    match refused {
        Err(SubmitError::Unforkable(why)) => assert_eq!(why, expected),
        other => panic!("{other:?}"),
    }
    host.elapse(1_000).await;
    let stored = host.runtime.find_run(&tenant(), &run).await;
    let stored = stored.expect("the store answers").expect("its row stays");
    assert!(stored.tombstone.is_some(), "its log was removed");
    assert!(host.log(&run).await.is_empty());
    let shown = host.runtime.observe(&tenant(), &run).await;
    assert!(shown.expect("the store answers").is_none());
    assert!(
        host.cancel(&run).await.is_err(),
        "nothing can be done to it"
    );
    assert_eq!(read(&host, "s").await, json!("kept"));
    // Its fork still exists and reads what its source had read.
    let stored = host.runtime.find_run(&tenant(), &branch).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let memory = host.runtime.run_memory(&stored, Some(Seq(4)), None).await;
    assert_eq!(
        memory.expect("the store answers").entries[0].value,
        json!("kept")
    );
    host.runtime.shutdown(Duration::ZERO).await;
}
