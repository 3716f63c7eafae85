//! Turns of a supervisor's loop: each sees memory as it was when it began, keeps its number through
//! waits and restarts, and is repeated by a replay as it was.

use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::{Command, Event, ForkMode, NodeId, Principal, Recorded, RunId, RunStatus, Seq};
use tandem_testkit::house::{House, Plan, children};
use tandem_testkit::{Flow, wf};
use tokio::test;

const MEMORY: &str = "vendor.tandem.memory";

fn put(value: &str) -> Value {
    json!({"action": "put", "key": "k", "value": value})
}

fn get() -> Value {
    json!({"action": "get", "key": "k"})
}

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

/// A loop along `path`, which begins and ends at `lead`.
fn looped(plan: Value, path: &str) -> Flow {
    wf("conformance-loop")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": plan}),
        )
        .node("send", "core.dispatch", json!({}))
        .node("w", MEMORY, put("written"))
        .node("r", MEMORY, get())
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .path(path)
        .settings(json!({"timeout": 0}))
}

async fn known(house: &House) {
    house.register(wf("rest").noop("n")).await;
    house
        .register(wf("writer").node("w", MEMORY, put("a worker's")))
        .await;
    house.register(wf("reader").node("r", MEMORY, get())).await;
}

/// What a node read, each time it did.
fn read_at(log: &[Recorded], wanted: &str) -> Vec<Value> {
    let read = log.iter().filter_map(|recorded| match &recorded.event {
        Event::NodeCompleted { node, outputs, .. } if node.as_str() == wanted => {
            Some(outputs.get("value").cloned().unwrap_or_default())
        }
        _ => None,
    });
    read.collect()
}

fn iterations(log: &[Recorded]) -> Vec<u32> {
    let decided = log.iter().filter_map(|recorded| match &recorded.event {
        Event::OrchestratorDecided { iteration, .. } => Some(*iteration),
        _ => None,
    });
    decided.collect()
}

async fn replayed(house: &House, run: &RunId, from: u64) -> Vec<Recorded> {
    let fork = house.fork(run, ForkMode::Replay, Seq(from)).await;
    house.log(&fork.expect("it can be made")).await
}

#[test(start_paused = true)]
async fn what_a_turn_writes_is_seen_from_the_next_turn_on() {
    for path in ["lead w r send lead", "lead send w r lead"] {
        let house = House::new().await;
        known(&house).await;
        let plan = json!([next(&["rest"]), next(&["rest"]), next(&["rest"])]);
        house.register(looped(plan, path)).await;
        let run = house.create("conformance-loop", json!({})).await;
        assert_eq!(house.ended(&run).await, RunStatus::Completed, "{path}");
        let log = house.log(&run).await;
        let seen = read_at(&log, "r");
        let expected = json!([null, "written", "written"]);
        assert_eq!(json!(seen[..3]), expected, "{path}");
        assert_eq!(iterations(&log)[..3], [1, 2, 3]);
    }
}

#[test(start_paused = true)]
async fn a_worker_knows_what_its_turn_knows() {
    let house = House::new().await;
    known(&house).await;
    let plan = json!([next(&["writer", "reader"]), next(&["reader"])]);
    house.register(looped(plan, "lead send lead")).await;
    let run = house.create("conformance-loop", json!({})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let workers = children(&house.log(&run).await);
    let mut seen = Vec::new();
    for reader in [&workers[1], &workers[2]] {
        seen.extend(read_at(&house.log(reader).await, "r"));
    }
    assert_eq!(json!(seen), json!([null, "a worker's"]));
}

#[test(start_paused = true)]
async fn outside_of_a_loop_a_run_sees_its_writes_at_once() {
    let house = House::new().await;
    known(&house).await;
    let flow = looped(json!([next(&["rest"])]), "lead send lead").path("w r");
    house.register(flow).await;
    let run = house.create("conformance-loop", json!({})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let seen = read_at(&house.log(&run).await, "r");
    assert_eq!(json!(seen), json!(["written"]));
}

#[test(start_paused = true)]
async fn a_loop_that_waited_goes_on_in_the_same_turn_with_the_same_knowledge() {
    let plan = Plan::default();
    let (store, clock) = (plan.store.reopen(), plan.clock.clone());
    let house = plan.build().await;
    known(&house).await;
    let turns = json!([next(&["rest"]), next(&["rest"])]);
    house
        .register(looped(turns, "lead send w gate r lead"))
        .await;
    let run = house.create("conformance-loop", json!({})).await;
    house.elapse(1_000).await;
    assert_eq!(house.status(&run).await, RunStatus::WaitingApproval);
    // The process ends while the loop waits in its first turn; another goes on.
    house.runtime.shutdown(Duration::ZERO).await;
    let again = Plan {
        store,
        clock,
        ..Plan::default()
    };
    let house = again.build().await;
    let accept = || Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value: json!({"action": "accept"}),
        by: Some(Principal::new("ana")),
        by_link: false,
        standing: Default::default(),
    };
    for turn in 1..=2 {
        house.submit(&run, accept()).await.expect("it is asked");
        house.elapse(1_000).await;
        let log = house.log(&run).await;
        let expected: Vec<u32> = (1..=turn + 1).collect();
        assert_eq!(
            iterations(&log),
            expected,
            "no turn is lost or counted twice"
        );
    }
    let log = house.log(&run).await;
    assert_eq!(json!(read_at(&log, "r")), json!([null, "written"]));
}

#[test(start_paused = true)]
async fn a_replay_repeats_turns_and_what_they_saw() {
    let house = House::new().await;
    known(&house).await;
    let plan = json!([next(&["writer"]), next(&["rest"]), next(&["rest"])]);
    house.register(looped(plan, "lead send r w lead")).await;
    let run = house.create("conformance-loop", json!({})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let log = house.log(&run).await;
    let seen = read_at(&log, "r");
    assert_eq!(json!(seen[..2]), json!([null, "written"]));
    for from in 0..log.len() as u64 {
        let repeated = replayed(&house, &run, from).await;
        assert_eq!(read_at(&repeated, "r"), seen, "from {from}");
        assert_eq!(iterations(&repeated), iterations(&log), "from {from}");
        let differs = |r: &Recorded| matches!(r.event, Event::ReplayDiverged { .. });
        assert!(!repeated.iter().any(differs), "from {from}");
    }
}
