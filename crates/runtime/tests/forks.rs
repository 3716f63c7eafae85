//! Forks and memory through the runtime: whole or not there, clean, kept as long as promised.

use serde_json::json;
use std::time::Duration;
use tandem_record::{ForkMode, RunId, RunStatus, Seq};
use tandem_runtime::{Redactor, SubmitError, Unforkable};
use tandem_store::{Page, ReadRuns, RunFilter};
use tandem_testkit::house::{House, Plan, children, new_run, tenant};
use tandem_testkit::{Mishap, wf};
use tokio::test;

const SECRET: &str = "correct-horse-battery";

fn remember(action: &str, key: &str) -> serde_json::Value {
    json!({"action": action, "key": key})
}

async fn create(house: &House, workflow: &str, scope: &str) -> RunId {
    let mut new = new_run(workflow, json!({}));
    new.request.scope_id = Some(scope.to_owned());
    let run = house.runtime.create_run(new, None).await;
    run.expect("the run may start")
}

async fn fork(house: &House, run: &RunId, mode: ForkMode, from: u64) -> Result<RunId, SubmitError> {
    house.fork(run, mode, Seq(from)).await
}

async fn runs(house: &House) -> usize {
    let page = Page {
        before: None,
        limit: 100,
    };
    let filter = RunFilter::default();
    let listing = house.store.list_runs(&tenant(), &filter, &page).await;
    listing.expect("the store answers").runs.len()
}

/// What a fresh run reads.
async fn read(house: &House, scope: &str) -> serde_json::Value {
    let run = create(house, "reader", scope).await;
    let outputs = house.folded(&run).await.outputs().cloned();
    outputs.expect("it completed")["value"].clone()
}

async fn house() -> House {
    let plan = Plan {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        ..Plan::default()
    };
    let house = plan.build().await;
    let get = remember("get", "k");
    house
        .register(wf("reader").node("r", "vendor.tandem.memory", get))
        .await;
    house
}

#[test(start_paused = true)]
async fn a_fork_is_there_whole_or_not_at_all() {
    let house = house().await;
    house
        .register(wf("plain").noop("a").noop("b").path("a b"))
        .await;
    let run = house.create("plain", json!({})).await;
    let log = house.log(&run).await;
    for (mode, from) in [(ForkMode::Replay, 2), (ForkMode::Branch, 3)] {
        let before = runs(&house).await;
        house.faults.next([Mishap::FailsBefore]);
        let refused = fork(&house, &run, mode, from).await;
        assert!(matches!(refused, Err(SubmitError::Fault(_))), "{refused:?}");
        assert_eq!(runs(&house).await, before, "no half-made run");
        let made = fork(&house, &run, mode, from)
            .await
            .expect("it can be made");
        assert_eq!(house.status(&made).await, RunStatus::Completed);
        assert_eq!(house.log(&made).await.len(), log.len());
    }
    assert_eq!(house.log(&run).await, log, "the source is only read");
    let beyond = fork(&house, &run, ForkMode::Replay, 99).await;
    assert!(matches!(
        beyond,
        Err(SubmitError::Unforkable(Unforkable::BeyondEnd { .. }))
    ));
}

#[test(start_paused = true)]
async fn siblings_side_by_side_leave_what_the_newest_of_them_wrote() {
    // R-0039-18 (half: one order for all readers), R-0039-19 (half: in it the last write wins)
    let house = house().await;
    let mut parent = wf("parent").settings(json!({"timeout": 0}));
    for child in 0..4 {
        let put = json!({"action": "put", "key": "k", "value": format!("child {child}")});
        let id = format!("child-{child}");
        let flow = wf(&id)
            .delay("nap", 1 + child % 2)
            .node("w", "vendor.tandem.memory", put)
            .path("nap w");
        house.register(flow).await;
        parent = parent.call(&format!("c{child}"), &id, json!({}));
    }
    parent = parent.node("r", "vendor.tandem.memory", remember("get", "k"));
    for child in 0..4 {
        parent = parent.edge(&format!("c{child}"), "r");
    }
    house.register(parent).await;
    // Many families at once, each in a scope of its own.
    let mut families = Vec::new();
    for family in 0..25 {
        let scope = format!("family-{family}");
        families.push((create(&house, "parent", &scope).await, scope));
    }
    for (run, scope) in families {
        assert_eq!(house.ended(&run).await, RunStatus::Completed);
        assert_eq!(children(&house.log(&run).await).len(), 4);
        let seen = house.folded(&run).await.outputs().cloned();
        let seen = seen.expect("it completed")["value"].clone();
        assert_eq!(
            seen,
            read(&house, &scope).await,
            "{scope}: one order for all"
        );
    }
}

#[test(start_paused = true)]
async fn a_secret_in_memory_is_taken_out_before_it_is_kept() {
    let house = house().await;
    let put = json!({
        "action": "put", "key": "k", "tags": [format!("of {SECRET}")],
        "value": {"deep": [{"note": format!("it is {SECRET}!")}]},
    });
    let flow = wf("leaky")
        .node("w", "vendor.tandem.memory", put)
        .node("r", "vendor.tandem.memory", remember("get", "k"))
        .path("w r");
    house.register(flow).await;
    let run = create(&house, "leaky", "s").await;
    let stored = house.runtime.find_run(&tenant(), &run).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let kept = house.runtime.remembered(&stored, None, None).await;
    let kept = kept.expect("the store answers").entries;
    assert_eq!(
        kept[0].value,
        json!({"deep": [{"note": "it is [REDACTED:db]!"}]})
    );
    assert_eq!(kept[0].tags, ["of [REDACTED:db]"]);
    let expected = kept[0].value.clone();
    assert_eq!(
        read(&house, "s").await,
        expected,
        "another run reads it clean"
    );
    let replay = fork(&house, &run, ForkMode::Replay, 0).await;
    let replay = house.log(&replay.expect("it can be made")).await;
    let log = house.log(&run).await;
    assert_eq!(replay.len(), log.len(), "cleaning is no divergence");
    assert!(!format!("{log:?} {replay:?}").contains(SECRET));
}

#[test(start_paused = true)]
async fn an_old_run_leaves_its_row_and_what_it_wrote() {
    // R-0039-22, R-0039-25 (half: it is refused before anything is made)
    let house = house().await;
    let put = json!({"action": "put", "key": "k", "value": "kept"});
    let flow = wf("writer")
        .node("w", "vendor.tandem.memory", put)
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .path("w gate")
        .settings(json!({"timeout": 0}));
    house.register(flow).await;
    let run = create(&house, "writer", "s").await;
    let branch = fork(&house, &run, ForkMode::Branch, 4).await;
    let branch = branch.expect("it can be made");
    house.cancel(&run).await.expect("it waits");
    let month = 31 * 24 * 3600 * 1000;
    house.runtime.advance_clock(month).await.expect("it moves");
    let before = runs(&house).await;
    let refused = fork(&house, &run, ForkMode::Replay, 1).await;
    assert_eq!(
        runs(&house).await,
        before,
        "refused before anything was made"
    );
    let expected = Unforkable::NotKept {
        source_run: run.clone(),
        from_seq: Seq(1),
        reason: "retention_expired",
    };
    match refused {
        Err(SubmitError::Unforkable(why)) => assert_eq!(why, expected),
        other => panic!("{other:?}"),
    }
    house.elapse(1_000).await;
    let stored = house.runtime.find_run(&tenant(), &run).await;
    let stored = stored.expect("the store answers").expect("its row stays");
    assert!(stored.tombstone.is_some(), "its log was removed");
    assert!(house.log(&run).await.is_empty());
    let shown = house.runtime.observe(&tenant(), &run).await;
    assert!(shown.expect("the store answers").is_none());
    assert!(
        house.cancel(&run).await.is_err(),
        "nothing can be done to it"
    );
    assert_eq!(read(&house, "s").await, json!("kept"));
    // Its fork lives on, and still knows what its source knew.
    let stored = house.runtime.find_run(&tenant(), &branch).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let seen = house.runtime.remembered(&stored, Some(Seq(4)), None).await;
    assert_eq!(
        seen.expect("the store answers").entries[0].value,
        json!("kept")
    );
    house.runtime.shutdown(Duration::ZERO).await;
}
