//! The run cache and snapshots are caches: used, but the log is the truth.

use serde_json::{Value, json};
use tandem_record::{RunId, RunStatus, StreamId};
use tandem_store::{Append, Commit, Log, ReadLog, SnapshotRecord};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, names, tenant};
use tandem_testkit::wf;
use tokio::test;

/// A run with enough events for a snapshot, waiting for a timer at its end.
async fn long_run(host: &TestHost) -> RunId {
    let flow = wf("long")
        .variable("v", json!("true"))
        .node("loop", "core.loop", json!({"times": 50}))
        .noop("step")
        .delay("nap", 60_000)
        .path("loop step loop nap");
    host.register(flow).await;
    let run = host.create("long", json!({})).await;
    host.elapse(10).await;
    run
}

async fn snapshot(host: &TestHost, run: &RunId) -> SnapshotRecord {
    let stored = host.store.snapshot(&StreamId::of_run(run)).await;
    stored
        .expect("the store answers")
        .expect("a long run has one")
}

async fn replace_snapshot(host: &TestHost, run: &RunId, snapshot: SnapshotRecord) {
    let stream = StreamId::of_run(run);
    let head = host.log(run).await.last().map(|recorded| recorded.seq);
    let commit = Commit {
        appends: vec![Append {
            stream,
            after: head,
            events: Vec::new(),
            run: None,
            snapshot: Some(snapshot),
        }],
        ..Commit::default()
    };
    host.store.commit(commit).await.expect("the store takes it");
}

/// The run's variable as read by a new process.
async fn shown_after_restart(host: &TestHost, run: &RunId) -> Value {
    let next = TestHostBuilder {
        store: host.store.clone(),
        ..TestHostBuilder::default()
    };
    let next = next.build().await;
    let observed = next.runtime.observe(&tenant(), run).await;
    let observed = observed
        .expect("the store answers")
        .expect("the run exists");
    observed.view.variables["v"].clone()
}

#[test(start_paused = true)]
async fn long_log_is_folded_from_its_snapshot() {
    let host = TestHost::new().await;
    let run = long_run(&host).await;
    let mut stored = snapshot(&host, &run).await;
    assert!(stored.seq.0 >= 128);
    // A value that exists only in the snapshot shows whether the snapshot was read.
    stored.body = stored.body.replace("\"v\":\"true\"", "\"v\":\"marked\"");
    replace_snapshot(&host, &run, stored.clone()).await;
    assert_eq!(shown_after_restart(&host, &run).await, "marked");
    stored.format += 1;
    replace_snapshot(&host, &run, stored).await;
    assert_eq!(
        shown_after_restart(&host, &run).await,
        "true",
        "of an unknown format"
    );
}

#[test(start_paused = true)]
async fn run_continues_from_its_snapshot() {
    let host = TestHost::new().await;
    let run = long_run(&host).await;
    host.runtime.shutdown(std::time::Duration::ZERO).await;
    let next = TestHostBuilder {
        store: host.store.reopen(),
        ..TestHostBuilder::default()
    };
    let next = next.build().await;
    assert_eq!(next.ended(&run).await, RunStatus::Completed);
    let shown = next.runtime.observe(&tenant(), &run).await;
    let shown = shown.expect("the store answers").expect("the run exists");
    assert_eq!(shown.view, next.folded(&run).await.view());
}

/// Events of sixty interleaved runs, with a cache for this many.
async fn event_names_of_runs(cached_runs: usize) -> Vec<Vec<String>> {
    let plan = TestHostBuilder {
        cached_runs,
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    let flow = wf("turns")
        .delay("a", 50)
        .http("b", 1)
        .delay("c", 50)
        .path("a b c");
    host.register(flow).await;
    let mut runs = Vec::new();
    for _ in 0..60 {
        runs.push(host.create("turns", json!({})).await);
    }
    let mut event_names_of_runs = Vec::new();
    for run in &runs {
        assert_eq!(host.ended(run).await, RunStatus::Completed);
        event_names_of_runs.push(names(&host.log(run).await));
    }
    event_names_of_runs
}

#[test(start_paused = true)]
async fn evicting_runs_from_the_cache_does_not_change_them() {
    assert_eq!(
        event_names_of_runs(16).await,
        event_names_of_runs(2_048).await
    );
}
