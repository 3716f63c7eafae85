//! Memory between a run, its children and its forks, one promise at a time. What holds at every
//! index of random families is in `remembering.rs`.

use serde_json::{Value, json};
use tandem_record::{
    Command, Event, ForkMode, MemoryEntry, NodeId, RunId, RunStatus, Seq, TenantId,
};
use tandem_runtime::{AgentPolicy, Permissions};
use tandem_testkit::house::{House, Plan, children, new_run, tenant};
use tandem_testkit::{Flow, wf};
use tokio::test;

const MEMORY: &str = "vendor.tandem.memory";

fn put(value: &str) -> Value {
    json!({"action": "put", "key": "k", "value": value})
}

fn get() -> Value {
    json!({"action": "get", "key": "k"})
}

/// Reads what its child leaves.
fn calling(id: &str, child: &str, config: Value) -> Flow {
    wf(id)
        .call("call", child, config)
        .node("r", MEMORY, get())
        .path("call r")
        .settings(json!({"timeout": 0}))
}

async fn create(house: &House, tenant: &TenantId, workflow: &str, scope: &str) -> RunId {
    let mut new = new_run(workflow, json!({}));
    new.request.owner.tenant = tenant.clone();
    new.request.scope_id = Some(scope.to_owned());
    let run = house.runtime.create_run(new, None).await;
    run.expect("the run may start")
}

/// What a run that has ended read.
async fn read(house: &House, run: &RunId) -> Value {
    assert_eq!(house.ended(run).await, RunStatus::Completed);
    let outputs = house.folded(run).await.outputs().cloned();
    outputs.expect("it completed")["value"].clone()
}

async fn known(house: &House, run: &RunId) -> Vec<MemoryEntry> {
    let stored = house.runtime.find_run(&tenant(), run).await;
    let stored = stored.expect("the store answers").expect("the run exists");
    let seen = house.runtime.remembered(&stored, None, None).await;
    seen.expect("the store answers").entries
}

async fn fork(house: &House, run: &RunId, mode: ForkMode, from: u64) -> RunId {
    let fork = house.fork(run, mode, Seq(from)).await;
    fork.expect("it can be made")
}

#[test(start_paused = true)]
async fn a_child_stays_in_its_parents_tenant_and_scope() {
    // R-0039-14 (half: a child of a sub-workflow)
    let house = House::new().await;
    let rival = TenantId::new("rival");
    for owner in [tenant(), rival.clone()] {
        for flow in [
            wf("writer").node("w", MEMORY, put("theirs")),
            wf("reader").node("r", MEMORY, get()),
            calling("sends-writer", "writer", json!({})),
            wf("sends-reader").call("call", "reader", json!({})),
        ] {
            let registered = house
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
    create(&house, &rival, "sends-writer", "s").await;
    let elsewhere = create(&house, &tenant(), "sends-writer", "other").await;
    house.elapse(1_000).await;
    assert_eq!(read(&house, &elsewhere).await, "theirs", "it was written");
    let reader = create(&house, &tenant(), "sends-reader", "s").await;
    house.ended(&reader).await;
    let child = &children(&house.log(&reader).await)[0];
    assert_eq!(read(&house, child).await, Value::Null);
}

#[test(start_paused = true)]
async fn a_parent_reads_what_its_child_left_once_it_has_ended_unless_it_was_apart() {
    // R-0039-15 (half: a child of a sub-workflow), R-0039-16 (half: a child of a sub-workflow)
    let house = House::new().await;
    let writer = wf("writer")
        .node("w", MEMORY, put("left"))
        .delay("nap", 5_000)
        .path("w nap");
    house.register(writer).await;
    let isolated = json!({"memoryScopeIsolation": "isolated"});
    for (id, config, left) in [
        ("shared", json!({}), json!("left")),
        ("apart", isolated, Value::Null),
    ] {
        house.register(calling(id, "writer", config)).await;
        let run = create(&house, &tenant(), id, id).await;
        house.elapse(1_000).await;
        let child = children(&house.log(&run).await)[0].clone();
        assert_eq!(known(&house, &child).await.len(), 1, "{id}: it has written");
        assert!(known(&house, &run).await.is_empty(), "{id}: it still works");
        assert_eq!(read(&house, &run).await, left, "{id}");
    }
}

#[test(start_paused = true)]
async fn every_later_turn_of_a_supervisor_sees_what_a_worker_left() {
    // R-0039-16 (half: every later turn)
    let house = House::new().await;
    house
        .register(wf("writer").node("w", MEMORY, put("left")))
        .await;
    house.register(wf("reader").node("r", MEMORY, get())).await;
    let next = |worker: &str| json!({"kind": "next-worker", "nextWorkerIds": [worker]});
    let plan = json!([next("writer"), next("reader"), next("reader")]);
    let crew = wf("conformance-crew")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": plan}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    house.register(crew).await;
    let run = house.create("conformance-crew", json!({})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let workers = children(&house.log(&run).await);
    assert_eq!(workers.len(), 3);
    for reader in &workers[1..] {
        assert_eq!(read(&house, reader).await, "left");
    }
}

/// One turn that starts these workers, then looks.
fn crew(id: &str, turn: &[&str], dispatch: Value) -> Flow {
    let mut look = get();
    look["output"] = json!("seen");
    wf(id)
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": [{"kind": "next-worker", "nextWorkerIds": turn}]}),
        )
        .node("send", "core.dispatch", dispatch)
        .node("look", MEMORY, look)
        .path("lead send look lead")
}

/// What the parent of a crew saw in its one turn, and what its last worker read.
async fn seen(house: &House, run: &RunId) -> (Value, Value) {
    assert_eq!(house.ended(run).await, RunStatus::Completed);
    let own = house.folded(run).await.view().variables["seen"].clone();
    let workers = children(&house.log(run).await);
    let last = house.folded(workers.last().expect("a worker")).await;
    (own, last.outputs().expect("it completed")["value"].clone())
}

#[test(start_paused = true)]
async fn below_version_five_what_a_worker_left_is_seen_within_the_turn() {
    // R-0039-16 (half: at once, where turns have no view of their own)
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
        let agents = AgentPolicy::default().capped(Some(version));
        let plan = Plan {
            agents: agents.expect("a version there is"),
            ..Plan::default()
        };
        let house = plan.build().await;
        house
            .register(wf("writer").node("w", MEMORY, put("left")))
            .await;
        house.register(wf("reader").node("r", MEMORY, get())).await;
        let crew = crew("conformance-crew", &["writer", "reader"], dispatch);
        house.register(crew).await;
        let run = house.create("conformance-crew", json!({})).await;
        assert_eq!(seen(&house, &run).await, expected, "version {version}");
        let replay = fork(&house, &run, ForkMode::Replay, 1).await;
        assert_eq!(house.ended(&replay).await, RunStatus::Completed);
        let again = house.folded(&replay).await.view().variables["seen"].clone();
        assert_eq!(
            again, expected.0,
            "a replay sees the same, version {version}"
        );
    }
}

#[test(start_paused = true)]
async fn a_worker_stays_in_its_parents_tenant_and_scope() {
    // R-0039-14 (half: what a worker of another tenant or scope left is not seen)
    let house = House::new().await;
    let rival = TenantId::new("rival");
    for owner in [tenant(), rival.clone()] {
        for flow in [
            wf("writer").node("w", MEMORY, put("theirs")),
            wf("reader").node("r", MEMORY, get()),
            crew("conformance-writes", &["writer"], json!({})),
            crew("conformance-reads", &["reader"], json!({})),
        ] {
            let permissions = Permissions::default();
            let document = flow.document();
            let partition = owner.clone().into();
            let registered = house
                .runtime
                .register(Some(&partition), &document, permissions);
            registered.await.expect("the workflow is sound");
        }
    }
    create(&house, &rival, "conformance-writes", "s").await;
    let elsewhere = create(&house, &tenant(), "conformance-writes", "other").await;
    house.elapse(1_000).await;
    assert_eq!(house.ended(&elsewhere).await, RunStatus::Completed);
    let reads = create(&house, &tenant(), "conformance-reads", "s").await;
    assert_eq!(seen(&house, &reads).await, (Value::Null, Value::Null));
}

#[test(start_paused = true)]
async fn the_guide_says_which_write_wins() {
    // R-0039-19 (half: it is documented)
    let guide = include_str!("../../../docs/guide/memory.md");
    assert!(guide.contains("last write wins"));
}

#[test(start_paused = true)]
async fn a_childs_entry_lives_from_the_childs_own_write() {
    // R-0039-17
    let house = House::new().await;
    let mut short = put("left");
    short["ttlSeconds"] = json!(60);
    let child = wf("child")
        .delay("nap", 50_000)
        .node("w", MEMORY, short)
        .path("nap w");
    house.register(child).await;
    let parent = wf("parent")
        .call("call", "child", json!({}))
        .delay("rest", 3_600_000)
        .path("call rest")
        .settings(json!({"timeout": 0}));
    house.register(parent).await;
    let began = house.runtime.clock().now();
    let run = house.create("parent", json!({})).await;
    house.elapse(51_000).await;
    let entry = known(&house, &run).await.remove(0);
    assert!(entry.written_at >= began.plus_ms(50_000));
    assert_eq!(entry.expires_at, Some(entry.written_at.plus_ms(60_000)));
    house.elapse(50_000).await;
    assert_eq!(
        known(&house, &run).await.len(),
        1,
        "not from the parent's start"
    );
    house.elapse(10_000).await;
    assert!(known(&house, &run).await.is_empty());
}

#[test(start_paused = true)]
async fn a_branch_reads_memory_as_it_was_where_it_begins() {
    // R-0039-20, R-0039-25 (half: what was looked at before is what the fork reads)
    let house = House::new().await;
    let flow = wf("asks")
        .node("w", MEMORY, put("then"))
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .node("r", MEMORY, get())
        .path("w gate r")
        .settings(json!({"timeout": 0}));
    house.register(flow).await;
    house
        .register(wf("later").node("w", MEMORY, put("now")))
        .await;
    let run = create(&house, &tenant(), "asks", "s").await;
    let log = house.log(&run).await;
    let wrote = log
        .iter()
        .position(|r| matches!(r.event, Event::MemoryWritten { .. }));
    let wrote = wrote.expect("it has written") as u64;
    create(&house, &tenant(), "later", "s").await;
    let after = fork(&house, &run, ForkMode::Branch, wrote + 2).await;
    let seen = known(&house, &after).await;
    assert_eq!(seen[0].value, "then", "whatever was written since");
    let answer = Command::ResolveInterrupt {
        node: NodeId::new("gate"),
        interrupt: None,
        value: json!({"action": "accept"}),
        by: None,
        by_link: false,
        standing: Default::default(),
    };
    house.submit(&after, answer).await.expect("it asks again");
    assert_eq!(read(&house, &after).await, "then");
}

#[test(start_paused = true)]
async fn a_replay_reads_its_sources_journal_and_writes_nothing_of_its_own() {
    // R-0039-20, R-0039-30
    let house = House::new().await;
    let flow = wf("two")
        .node("one", MEMORY, put("1"))
        .node("two", MEMORY, put("2"))
        .node("r", MEMORY, get())
        .path("one two r");
    house.register(flow).await;
    house
        .register(wf("later").node("w", MEMORY, put("3")))
        .await;
    house.register(wf("reader").node("r", MEMORY, get())).await;
    let source = create(&house, &tenant(), "two", "s").await;
    create(&house, &tenant(), "later", "s").await;
    let ids = |log: &[tandem_record::Recorded]| -> Vec<String> {
        let written = log.iter().filter_map(|r| match &r.event {
            Event::MemoryWritten { entry, .. } => Some(entry.id.clone()),
            _ => None,
        });
        written.collect()
    };
    let log = house.log(&source).await;
    assert_eq!(ids(&log).len(), 2);
    for from in 0..log.len() as u64 {
        let replay = fork(&house, &source, ForkMode::Replay, from).await;
        assert_eq!(ids(&house.log(&replay).await), ids(&log), "from {from}");
        assert_eq!(read(&house, &replay).await, "2", "from {from}");
    }
    let reader = create(&house, &tenant(), "reader", "s").await;
    assert_eq!(read(&house, &reader).await, "3", "the scope is as it was");
}
