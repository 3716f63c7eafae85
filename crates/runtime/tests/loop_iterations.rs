//! Iterations of a supervisor's loop: each reads memory as of its start, keeps its number through
//! waits and restarts, and a replay repeats it.

use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::{
    Command, Event, ForkMode, NodeId, Principal, RecordedEvent, RunId, RunStatus, Seq,
};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, children};
use tandem_testkit::{WorkflowBuilder, wf};
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

/// A loop along `path`, which starts and ends at `lead`.
fn looped(plan: Value, path: &str) -> WorkflowBuilder {
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

async fn register_workers(host: &TestHost) {
    host.register(wf("rest").noop("n")).await;
    host.register(wf("writer").node("w", MEMORY, put("a worker's")))
        .await;
    host.register(wf("reader").node("r", MEMORY, get())).await;
}

/// Every value that a node read.
fn read_at(log: &[RecordedEvent], reader: &str) -> Vec<Value> {
    let read = log.iter().filter_map(|recorded| match &recorded.event {
        Event::NodeCompleted { node, outputs, .. } if node.as_str() == reader => {
            Some(outputs.get("value").cloned().unwrap_or_default())
        }
        _ => None,
    });
    read.collect()
}

fn iterations(log: &[RecordedEvent]) -> Vec<u32> {
    let decided = log.iter().filter_map(|recorded| match &recorded.event {
        Event::OrchestratorDecided { iteration, .. } => Some(*iteration),
        _ => None,
    });
    decided.collect()
}

async fn replayed(host: &TestHost, run: &RunId, from: u64) -> Vec<RecordedEvent> {
    let fork = host.fork(run, ForkMode::Replay, Seq(from)).await;
    host.log(&fork.expect("it can be made")).await
}

#[test(start_paused = true)]
async fn memory_written_in_an_iteration_is_visible_from_the_next_iteration() {
    for path in ["lead w r send lead", "lead send w r lead"] {
        let host = TestHost::new().await;
        register_workers(&host).await;
        let plan = json!([next(&["rest"]), next(&["rest"]), next(&["rest"])]);
        host.register(looped(plan, path)).await;
        let run = host.create("conformance-loop", json!({})).await;
        assert_eq!(host.ended(&run).await, RunStatus::Completed, "{path}");
        let log = host.log(&run).await;
        let values_read = read_at(&log, "r");
        let expected = json!([null, "written", "written"]);
        assert_eq!(json!(values_read[..3]), expected, "{path}");
        assert_eq!(iterations(&log)[..3], [1, 2, 3]);
    }
}

#[test(start_paused = true)]
async fn worker_reads_the_memory_of_its_iteration() {
    let host = TestHost::new().await;
    register_workers(&host).await;
    let plan = json!([next(&["writer", "reader"]), next(&["reader"])]);
    host.register(looped(plan, "lead send lead")).await;
    let run = host.create("conformance-loop", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let workers = children(&host.log(&run).await);
    let mut values_read = Vec::new();
    for reader in [&workers[1], &workers[2]] {
        values_read.extend(read_at(&host.log(reader).await, "r"));
    }
    assert_eq!(json!(values_read), json!([null, "a worker's"]));
}

#[test(start_paused = true)]
async fn outside_a_loop_a_run_reads_its_own_writes_at_once() {
    let host = TestHost::new().await;
    register_workers(&host).await;
    let flow = looped(json!([next(&["rest"])]), "lead send lead").path("w r");
    host.register(flow).await;
    let run = host.create("conformance-loop", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let values_read = read_at(&host.log(&run).await, "r");
    assert_eq!(json!(values_read), json!(["written"]));
}

#[test(start_paused = true)]
async fn loop_resumes_in_the_same_iteration_with_the_same_memory() {
    let plan = TestHostBuilder::default();
    let (store, clock) = (plan.store.reopen(), plan.clock.clone());
    let host = plan.build().await;
    register_workers(&host).await;
    let iterations_plan = json!([next(&["rest"]), next(&["rest"])]);
    host.register(looped(iterations_plan, "lead send w gate r lead"))
        .await;
    let run = host.create("conformance-loop", json!({})).await;
    host.elapse(1_000).await;
    assert_eq!(host.status(&run).await, RunStatus::WaitingApproval);
    // The process ends while the loop waits in its first iteration; another process continues.
    host.runtime.shutdown(Duration::ZERO).await;
    let again = TestHostBuilder {
        store,
        clock,
        ..TestHostBuilder::default()
    };
    let host = again.build().await;
    let accept = || Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value: json!({"action": "accept"}),
        by: Some(Principal::new("ana")),
        by_link: false,
        decider: Default::default(),
    };
    for iteration in 1..=2 {
        host.submit(&run, accept()).await.expect("it is asked");
        host.elapse(1_000).await;
        let log = host.log(&run).await;
        let expected: Vec<u32> = (1..=iteration + 1).collect();
        assert_eq!(
            iterations(&log),
            expected,
            "no iteration is lost or counted twice"
        );
    }
    let log = host.log(&run).await;
    assert_eq!(json!(read_at(&log, "r")), json!([null, "written"]));
}

#[test(start_paused = true)]
async fn replay_repeats_iterations_and_the_memory_they_read() {
    let host = TestHost::new().await;
    register_workers(&host).await;
    let plan = json!([next(&["writer"]), next(&["rest"]), next(&["rest"])]);
    host.register(looped(plan, "lead send r w lead")).await;
    let run = host.create("conformance-loop", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let log = host.log(&run).await;
    let values_read = read_at(&log, "r");
    assert_eq!(json!(values_read[..2]), json!([null, "written"]));
    for from in 0..log.len() as u64 {
        let repeated = replayed(&host, &run, from).await;
        assert_eq!(read_at(&repeated, "r"), values_read, "from {from}");
        assert_eq!(iterations(&repeated), iterations(&log), "from {from}");
        let differs = |r: &RecordedEvent| matches!(r.event, Event::ReplayDiverged { .. });
        assert!(!repeated.iter().any(differs), "from {from}");
    }
}
