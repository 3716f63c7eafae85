//! Memory between a run, its children and its forks, one rule per test. `memory_model.rs` checks
//! the rules at every event of random run trees.

use serde_json::{Value, json};
use tandem_record::{
    Command, Event, ForkMode, MemoryEntry, NodeId, RunId, RunStatus, Seq, TenantId,
};
use tandem_runtime::{AgentPolicy, Permissions};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, children, new_run, tenant};
use tandem_testkit::{WorkflowBuilder, wf};
use tokio::test;

const MEMORY: &str = "vendor.tandem.memory";

fn put(value: &str) -> Value {
    json!({"action": "put", "key": "k", "value": value})
}

fn get() -> Value {
    json!({"action": "get", "key": "k"})
}

/// A run that reads what its child wrote.
fn calling(id: &str, child: &str, config: Value) -> WorkflowBuilder {
    wf(id)
        .call("call", child, config)
        .node("r", MEMORY, get())
        .path("call r")
        .settings(json!({"timeout": 0}))
}

async fn create(host: &TestHost, tenant: &TenantId, workflow: &str, scope: &str) -> RunId {
    let mut new = new_run(workflow, json!({}));
    new.request.owner.tenant = tenant.clone();
    new.request.scope_id = Some(scope.to_owned());
    let run = host.runtime.create_run(new, None).await;
    run.expect("the run may start")
}

/// The value that an ended run read.
async fn read(host: &TestHost, run: &RunId) -> Value {
    assert_eq!(host.ended(run).await, RunStatus::Completed);
    let outputs = host.folded(run).await.outputs().cloned();
    outputs.expect("it completed")["value"].clone()
}

async fn memory_entries(host: &TestHost, run: &RunId) -> Vec<MemoryEntry> {
    let stored = host.runtime.find_run(&tenant(), run).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let memory = host.runtime.run_memory(&stored, None, None).await;
    memory.expect("the store answers").entries
}

async fn fork(host: &TestHost, run: &RunId, mode: ForkMode, from: u64) -> RunId {
    let fork = host.fork(run, mode, Seq(from)).await;
    fork.expect("it can be made")
}

#[test(start_paused = true)]
async fn child_uses_its_parents_tenant_and_memory_scope() {
    // R-0039-14 (half: a child of a sub-workflow)
    let host = TestHost::new().await;
    let rival = TenantId::new("rival");
    for owner in [tenant(), rival.clone()] {
        for flow in [
            wf("writer").node("w", MEMORY, put("theirs")),
            wf("reader").node("r", MEMORY, get()),
            calling("sends-writer", "writer", json!({})),
            wf("sends-reader").call("call", "reader", json!({})),
        ] {
            let registered = host
                .runtime
                .register(
                    Some(&owner.clone().into()),
                    &flow.document(),
                    Permissions::default(),
                )
                .await;
            registered.expect("the workflow is sound");
        }
    }
    create(&host, &rival, "sends-writer", "s").await;
    let elsewhere = create(&host, &tenant(), "sends-writer", "other").await;
    host.elapse(1_000).await;
    assert_eq!(read(&host, &elsewhere).await, "theirs", "the write exists");
    let reader = create(&host, &tenant(), "sends-reader", "s").await;
    host.ended(&reader).await;
    let child = &children(&host.log(&reader).await)[0];
    assert_eq!(read(&host, child).await, Value::Null);
}

#[test(start_paused = true)]
async fn parent_reads_memory_of_an_ended_child_unless_isolated() {
    // R-0039-15 (half: a child of a sub-workflow), R-0039-16 (half: a child of a sub-workflow)
    let host = TestHost::new().await;
    let writer = wf("writer")
        .node("w", MEMORY, put("left"))
        .delay("nap", 5_000)
        .path("w nap");
    host.register(writer).await;
    let isolated = json!({"memoryScopeIsolation": "isolated"});
    for (id, config, left) in [
        ("shared", json!({}), json!("left")),
        ("apart", isolated, Value::Null),
    ] {
        host.register(calling(id, "writer", config)).await;
        let run = create(&host, &tenant(), id, id).await;
        host.elapse(1_000).await;
        let child = children(&host.log(&run).await)[0].clone();
        assert_eq!(
            memory_entries(&host, &child).await.len(),
            1,
            "{id}: the child has written"
        );
        assert!(
            memory_entries(&host, &run).await.is_empty(),
            "{id}: the child is still running"
        );
        assert_eq!(read(&host, &run).await, left, "{id}");
    }
}

#[test(start_paused = true)]
async fn later_supervisor_iterations_read_what_a_worker_wrote() {
    // R-0039-16 (half: every later iteration)
    let host = TestHost::new().await;
    host.register(wf("writer").node("w", MEMORY, put("left")))
        .await;
    host.register(wf("reader").node("r", MEMORY, get())).await;
    let next = |worker: &str| json!({"kind": "next-worker", "nextWorkerIds": [worker]});
    let plan = json!([next("writer"), next("reader"), next("reader")]);
    let supervisor = wf("conformance-supervised")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": plan}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    host.register(supervisor).await;
    let run = host.create("conformance-supervised", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let workers = children(&host.log(&run).await);
    assert_eq!(workers.len(), 3);
    for reader in &workers[1..] {
        assert_eq!(read(&host, reader).await, "left");
    }
}

/// One iteration that starts these workers and then reads.
fn supervised(id: &str, iteration: &[&str], dispatch: Value) -> WorkflowBuilder {
    let mut look = get();
    look["output"] = json!("seen");
    wf(id)
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": [{"kind": "next-worker", "nextWorkerIds": iteration}]}),
        )
        .node("send", "core.dispatch", dispatch)
        .node("look", MEMORY, look)
        .path("lead send look lead")
}

/// What the supervisor read in its one iteration, and what its last worker read.
async fn values_read(host: &TestHost, run: &RunId) -> (Value, Value) {
    assert_eq!(host.ended(run).await, RunStatus::Completed);
    let own = host.folded(run).await.view().variables["seen"].clone();
    let workers = children(&host.log(run).await);
    let last = host.folded(workers.last().expect("a worker")).await;
    (own, last.outputs().expect("it completed")["value"].clone())
}

#[test(start_paused = true)]
async fn before_version_five_a_workers_writes_are_visible_in_the_same_iteration() {
    // R-0039-16 (half: at once, where iterations have no view of their own)
    // R-0039-14 (half: a worker of a dispatch node), R-0039-15 (half: a worker of a dispatch node)
    let isolated = json!({"memoryScopeIsolation": "isolated"});
    let left = || json!("left");
    for (version, dispatch, expected) in [
        (2, json!({}), (left(), left())),
        (4, json!({}), (left(), left())),
        (4, isolated, (Value::Null, Value::Null)),
        (5, json!({}), (Value::Null, Value::Null)),
        (6, json!({}), (Value::Null, Value::Null)),
    ] {
        let agents = AgentPolicy::default().with_model_cap(Some(version));
        let plan = TestHostBuilder {
            agents: agents.expect("a version there is"),
            ..TestHostBuilder::default()
        };
        let host = plan.build().await;
        host.register(wf("writer").node("w", MEMORY, put("left")))
            .await;
        host.register(wf("reader").node("r", MEMORY, get())).await;
        let supervisor = supervised("conformance-supervised", &["writer", "reader"], dispatch);
        host.register(supervisor).await;
        let run = host.create("conformance-supervised", json!({})).await;
        assert_eq!(
            values_read(&host, &run).await,
            expected,
            "version {version}"
        );
        let replay = fork(&host, &run, ForkMode::Replay, 1).await;
        assert_eq!(host.ended(&replay).await, RunStatus::Completed);
        let again = host.folded(&replay).await.view().variables["seen"].clone();
        assert_eq!(
            again, expected.0,
            "a replay reads the same, version {version}"
        );
    }
}

#[test(start_paused = true)]
async fn worker_uses_its_parents_tenant_and_memory_scope() {
    // R-0039-14 (half: what a worker of another tenant or scope left is not seen)
    let host = TestHost::new().await;
    let rival = TenantId::new("rival");
    for owner in [tenant(), rival.clone()] {
        for flow in [
            wf("writer").node("w", MEMORY, put("theirs")),
            wf("reader").node("r", MEMORY, get()),
            supervised("conformance-writes", &["writer"], json!({})),
            supervised("conformance-reads", &["reader"], json!({})),
        ] {
            let permissions = Permissions::default();
            let document = flow.document();
            let partition = owner.clone().into();
            let registered = host
                .runtime
                .register(Some(&partition), &document, permissions);
            registered.await.expect("the workflow is sound");
        }
    }
    create(&host, &rival, "conformance-writes", "s").await;
    let elsewhere = create(&host, &tenant(), "conformance-writes", "other").await;
    host.elapse(1_000).await;
    assert_eq!(host.ended(&elsewhere).await, RunStatus::Completed);
    let reads = create(&host, &tenant(), "conformance-reads", "s").await;
    assert_eq!(values_read(&host, &reads).await, (Value::Null, Value::Null));
}

#[test(start_paused = true)]
async fn guide_documents_which_write_wins() {
    // R-0039-19 (half: it is documented)
    let guide = include_str!("../../../docs/guide/memory.md");
    assert!(guide.contains("last write wins"));
}

#[test(start_paused = true)]
async fn expiry_of_a_childs_entry_counts_from_the_childs_write() {
    // R-0039-17
    let host = TestHost::new().await;
    let mut short = put("left");
    short["ttlSeconds"] = json!(60);
    let child = wf("child")
        .delay("nap", 50_000)
        .node("w", MEMORY, short)
        .path("nap w");
    host.register(child).await;
    let parent = wf("parent")
        .call("call", "child", json!({}))
        .delay("rest", 3_600_000)
        .path("call rest")
        .settings(json!({"timeout": 0}));
    host.register(parent).await;
    let began = host.runtime.clock().now();
    let run = host.create("parent", json!({})).await;
    host.elapse(51_000).await;
    let entry = memory_entries(&host, &run).await.remove(0);
    assert!(entry.written_at >= began.plus_ms(50_000));
    assert_eq!(entry.expires_at, Some(entry.written_at.plus_ms(60_000)));
    host.elapse(50_000).await;
    assert_eq!(
        memory_entries(&host, &run).await.len(),
        1,
        "not from the parent's start"
    );
    host.elapse(10_000).await;
    assert!(memory_entries(&host, &run).await.is_empty());
}

#[test(start_paused = true)]
async fn branch_reads_memory_as_of_its_fork_point() {
    // R-0039-20, R-0039-25 (half: what was looked at before is what the fork reads)
    let host = TestHost::new().await;
    let flow = wf("asks")
        .node("w", MEMORY, put("then"))
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .node("r", MEMORY, get())
        .path("w gate r")
        .settings(json!({"timeout": 0}));
    host.register(flow).await;
    host.register(wf("later").node("w", MEMORY, put("now")))
        .await;
    let run = create(&host, &tenant(), "asks", "s").await;
    let log = host.log(&run).await;
    let wrote = log
        .iter()
        .position(|r| matches!(r.event, Event::MemoryWritten { .. }));
    let wrote = wrote.expect("it has written") as u64;
    create(&host, &tenant(), "later", "s").await;
    let after = fork(&host, &run, ForkMode::Branch, wrote + 2).await;
    let memory = memory_entries(&host, &after).await;
    assert_eq!(memory[0].value, "then", "later writes are not visible");
    let answer = Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value: json!({"action": "accept"}),
        by: None,
        by_link: false,
        decider: Default::default(),
    };
    host.submit(&after, answer).await.expect("it asks again");
    assert_eq!(read(&host, &after).await, "then");
}

#[test(start_paused = true)]
async fn replay_reads_memory_of_its_source_and_writes_none() {
    // R-0039-20, R-0039-30
    let host = TestHost::new().await;
    let flow = wf("two")
        .node("one", MEMORY, put("1"))
        .node("two", MEMORY, put("2"))
        .node("r", MEMORY, get())
        .path("one two r");
    host.register(flow).await;
    host.register(wf("later").node("w", MEMORY, put("3"))).await;
    host.register(wf("reader").node("r", MEMORY, get())).await;
    let source = create(&host, &tenant(), "two", "s").await;
    create(&host, &tenant(), "later", "s").await;
    let ids = |log: &[tandem_record::RecordedEvent]| -> Vec<String> {
        let written = log.iter().filter_map(|r| match &r.event {
            Event::MemoryWritten { entry, .. } => Some(entry.id.clone()),
            _ => None,
        });
        written.collect()
    };
    let log = host.log(&source).await;
    assert_eq!(ids(&log).len(), 2);
    for from in 0..log.len() as u64 {
        let replay = fork(&host, &source, ForkMode::Replay, from).await;
        assert_eq!(ids(&host.log(&replay).await), ids(&log), "from {from}");
        assert_eq!(read(&host, &replay).await, "2", "from {from}");
    }
    let reader = create(&host, &tenant(), "reader", "s").await;
    assert_eq!(read(&host, &reader).await, "3", "the scope is unchanged");
}
