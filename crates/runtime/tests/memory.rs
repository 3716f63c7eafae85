//! What is kept in memory and in snapshots is a cache: used, and never believed over the log.

use serde_json::{Value, json};
use tandem_record::{RunId, RunStatus, StreamId};
use tandem_store::{Append, Commit, Log, ReadLog, SnapshotRecord};
use tandem_testkit::house::{House, Plan, names, tenant};
use tandem_testkit::wf;
use tokio::test;

/// A run with more events than a snapshot is worth, asleep at its end.
async fn long_run(house: &House) -> RunId {
    let flow = wf("long")
        .variable("v", json!("true"))
        .node("loop", "core.loop", json!({"times": 50}))
        .noop("step")
        .delay("nap", 60_000)
        .path("loop step loop nap");
    house.register(flow).await;
    let run = house.create("long", json!({})).await;
    house.elapse(10).await;
    run
}

async fn snapshot(house: &House, run: &RunId) -> SnapshotRecord {
    let kept = house.store.snapshot(&StreamId::of_run(run)).await;
    kept.expect("the store answers")
        .expect("a long run has one")
}

async fn replace_snapshot(house: &House, run: &RunId, snapshot: SnapshotRecord) {
    let stream = StreamId::of_run(run);
    let head = house.log(run).await.last().map(|recorded| recorded.seq);
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
    house
        .store
        .commit(commit)
        .await
        .expect("the store takes it");
}

/// The run's variable as a new process shows it.
async fn shown_after_restart(house: &House, run: &RunId) -> Value {
    let next = Plan {
        store: house.store.clone(),
        ..Plan::default()
    };
    let next = next.build().await;
    let observed = next.runtime.observe(&tenant(), run).await;
    let observed = observed
        .expect("the store answers")
        .expect("the run exists");
    observed.view.variables["v"].clone()
}

#[test(start_paused = true)]
async fn a_long_log_is_folded_from_its_snapshot() {
    let house = House::new().await;
    let run = long_run(&house).await;
    let mut kept = snapshot(&house, &run).await;
    assert!(kept.seq.0 >= 128);
    // A mark only the snapshot bears shows whether it was read.
    kept.body = kept.body.replace("\"v\":\"true\"", "\"v\":\"marked\"");
    replace_snapshot(&house, &run, kept.clone()).await;
    assert_eq!(shown_after_restart(&house, &run).await, "marked");
    kept.format += 1;
    replace_snapshot(&house, &run, kept).await;
    assert_eq!(
        shown_after_restart(&house, &run).await,
        "true",
        "of a format nobody knows"
    );
}

#[test(start_paused = true)]
async fn a_run_goes_on_from_its_snapshot() {
    let house = House::new().await;
    let run = long_run(&house).await;
    house.runtime.shutdown(std::time::Duration::ZERO).await;
    let next = Plan {
        store: house.store.reopen(),
        ..Plan::default()
    };
    let next = next.build().await;
    assert_eq!(next.ended(&run).await, RunStatus::Completed);
    let shown = next.runtime.observe(&tenant(), &run).await;
    let shown = shown.expect("the store answers").expect("the run exists");
    assert_eq!(shown.view, next.folded(&run).await.view());
}

/// The course of sixty runs that take turns, with room in memory for this many.
async fn courses(cached_runs: usize) -> Vec<Vec<String>> {
    let plan = Plan {
        cached_runs,
        ..Plan::default()
    };
    let house = plan.build().await;
    let flow = wf("turns")
        .delay("a", 50)
        .http("b", 1)
        .delay("c", 50)
        .path("a b c");
    house.register(flow).await;
    let mut runs = Vec::new();
    for _ in 0..60 {
        runs.push(house.create("turns", json!({})).await);
    }
    let mut courses = Vec::new();
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Completed);
        courses.push(names(&house.log(run).await));
    }
    courses
}

#[test(start_paused = true)]
async fn forgetting_runs_does_not_change_them() {
    assert_eq!(courses(16).await, courses(2_048).await);
}
