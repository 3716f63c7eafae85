//! Workflows that start by the clock: each occurrence starts one run, of the version that is registered then, whichever
//! process looks at it and wherever one ends.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::workflow_schedule_id;
use tandem_record::conversation::{ScheduleRecord, ScheduleRunRecord, ScheduleStatus};
use tandem_record::{
    Actor, Partition, Principal, RunId, RunStatus, ScheduleId, TenantId, Timestamp, WorkflowId,
    WorkspaceId,
};
use tandem_runtime::{
    Clock, ConformanceTypes, ListingPage, Page, Permissions, RegisterError, Registration, RunFilter,
};
use tandem_store::memory::MemoryStore;
use tandem_testkit::test_host::{TestHost, TestHostBuilder, tenant};
use tandem_testkit::{InjectedFault, SimClock, wf};
use tokio::test;

const MINUTE: u64 = 60_000;
const FLOW: &str = "report";

/// One store and one clock for several processes.
struct Place {
    store: MemoryStore,
    clock: Arc<dyn Clock>,
}

impl Place {
    fn new() -> Self {
        Self {
            store: MemoryStore::new(),
            clock: Arc::new(SimClock::starting_at(Timestamp(1_800_000_000_000))),
        }
    }

    async fn process(&self, incarnation: u64, shares_store: bool) -> TestHost {
        let host = TestHostBuilder {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            incarnation,
            shares_store,
            ..TestHostBuilder::default()
        };
        host.build().await
    }
}

/// A workflow of one node with a schedule trigger.
fn scheduled(node: &str, config: Value) -> Value {
    let mut document = wf(FLOW)
        .variable("note", json!("none"))
        .noop(node)
        .document();
    let trigger = json!({"id": "daily", "type": "schedule", "config": config});
    let triggers = document["triggers"].as_array_mut().expect("a list");
    triggers.push(trigger);
    document
}

fn every_minute(node: &str) -> Value {
    scheduled(node, json!({"cron": "* * * * *"}))
}

async fn register(host: &TestHost, document: &Value) -> Registration {
    let owner = tenant().into();
    let registered = host
        .runtime
        .register(Some(&owner), document, Permissions::default());
    registered.await.expect("the workflow is sound")
}

fn schedule_of(owner: Option<&Partition>) -> ScheduleId {
    workflow_schedule_id(owner, &WorkflowId::new(FLOW), "daily")
}

async fn record(host: &TestHost, schedule: &ScheduleId) -> ScheduleRecord {
    let record = host.runtime.read_schedule(schedule).await;
    record.expect("the store answers").expect("it was made")
}

/// Its occurrences, the oldest first.
async fn occurrences(host: &TestHost, schedule: &ScheduleId) -> Vec<ScheduleRunRecord> {
    let page = ListingPage {
        after: None,
        limit: 500,
    };
    let listing = host
        .runtime
        .store()
        .list_schedule_runs(schedule, &page)
        .await;
    let rows = listing.expect("the store answers").expect("no cursor").rows;
    let records = rows.iter().map(|row| serde_json::from_str(&row.body));
    let mut records: Vec<ScheduleRunRecord> = records.map(|r| r.expect("a record")).collect();
    records.reverse();
    records
}

/// The runs of a tenant, the oldest first.
async fn runs_of(host: &TestHost, tenant: &TenantId) -> Vec<RunId> {
    let page = Page {
        before: None,
        limit: 500,
    };
    let listing = host
        .runtime
        .list_runs(tenant, &RunFilter::default(), &page)
        .await;
    let rows = listing.expect("the store answers").runs;
    let mut runs: Vec<RunId> = rows.into_iter().map(|row| row.row.run_id).collect();
    runs.reverse();
    runs
}

async fn runs(host: &TestHost) -> Vec<RunId> {
    runs_of(host, &tenant()).await
}

async fn nodes(host: &TestHost) -> Vec<String> {
    let mut nodes = Vec::new();
    for run in runs(host).await {
        let run = host.folded(&run).await;
        nodes.push(run.definition().document.nodes[0].id.to_string());
    }
    nodes
}

fn outcome(record: &ScheduleRunRecord) -> (&'static str, Option<&str>) {
    let outcome = record.outcome.map_or("", |outcome| outcome.as_str());
    (outcome, record.reason.as_deref())
}

#[test(start_paused = true)]
async fn occurrence_starts_one_run_for_who_registered_the_document() {
    let host = Place::new().process(1, false).await;
    let owner = Partition {
        tenant: tenant(),
        workspace: Some(WorkspaceId::new("desk")),
    };
    let ana = Actor {
        principal: Some(Principal::from("ana")),
        ..Actor::host()
    };
    let document = scheduled(
        "a",
        json!({"cron": "* * * * *", "inputs": {"note": "hello"}}),
    );
    let runtime = host.runtime.acting_as(ana);
    let registered = runtime.register(Some(&owner), &document, Permissions::default());
    registered.await.expect("the workflow is sound");
    host.elapse(MINUTE + 1_000).await;
    let started = runs(&host).await;
    let [run] = &started[..] else {
        panic!("one run: {started:?}");
    };
    assert_eq!(host.status(run).await, RunStatus::Completed);
    let folded = host.folded(run).await;
    let request = folded.request();
    assert_eq!(request.owner.workspace, owner.workspace);
    assert_eq!(request.owner.principal, Some(Principal::from("ana")));
    assert_eq!(request.inputs["note"], "hello");
    let metadata = request.options.metadata.as_ref().expect("it was scheduled");
    assert_eq!(
        metadata["triggerData"],
        json!({"scheduledFor": "2027-01-15T08:01:00.000Z", "triggerId": "daily"})
    );
    let seen = occurrences(&host, &schedule_of(Some(&owner))).await;
    assert_eq!(outcome(&seen[0]), ("success", None));
    assert_eq!(seen[0].workflow_run_id.as_ref(), Some(run));
}

#[test(start_paused = true)]
async fn two_processes_start_each_run_once() {
    let place = Place::new();
    let first = place.process(1, true).await;
    let second = place.process(2, true).await;
    register(&first, &every_minute("a")).await;
    first.elapse(20 * MINUTE + 1_000).await;
    assert_eq!(runs(&first).await.len(), 20);
    let seen = occurrences(&second, &schedule_of(Some(&tenant().into()))).await;
    let started: Vec<_> = seen
        .iter()
        .filter_map(|o| o.workflow_run_id.clone())
        .collect();
    assert_eq!(started, runs(&second).await, "in their order");
}

#[test(start_paused = true)]
async fn crash_at_any_commit_neither_loses_nor_repeats_a_run() {
    let mut crashes = 0;
    for commits in 0..6 {
        for crash in [InjectedFault::CrashesBefore, InjectedFault::CrashesAfter] {
            let place = Place::new();
            let host = place.process(1, false).await;
            register(&host, &every_minute("a")).await;
            host.elapse(MINUTE - 1_000).await;
            let before = std::iter::repeat_n(InjectedFault::None, commits);
            host.faults.next(before.chain([crash]));
            tokio::select! {
                () = host.faults.crashed() => crashes += 1,
                () = host.elapse(30_000) => {}
            }
            let next = place.process(2, false).await;
            next.elapse(30_000).await;
            let started = runs(&next).await;
            assert_eq!(started.len(), 1, "after {commits} commits, {crash:?}");
            assert_eq!(next.ended(&started[0]).await, RunStatus::Completed);
            let seen = occurrences(&next, &schedule_of(Some(&tenant().into()))).await;
            assert_eq!(seen[0].workflow_run_id.as_ref(), Some(&started[0]));
            assert_eq!(outcome(&seen[0]), ("success", None));
        }
    }
    assert!(
        crashes >= 4,
        "the claim and the start are commits: {crashes}"
    );
}

#[test(start_paused = true)]
async fn registration_and_its_schedule_are_one_commit() {
    for crash in [InjectedFault::CrashesBefore, InjectedFault::CrashesAfter] {
        let place = Place::new();
        let host = place.process(1, false).await;
        host.faults.next([crash]);
        let document = every_minute("a");
        tokio::select! {
            _ = register(&host, &document) => {}
            () = host.faults.crashed() => {}
        }
        let next = place.process(2, false).await;
        let workflow = WorkflowId::new(FLOW);
        let registered = next.runtime.workflow(&tenant().into(), &workflow).await;
        let is_registered = registered.expect("the store answers").is_some();
        assert_eq!(is_registered, crash == InjectedFault::CrashesAfter);
        next.elapse(MINUTE + 1_000).await;
        assert_eq!(runs(&next).await.len(), usize::from(is_registered));
    }
}

#[test(start_paused = true)]
async fn new_version_replaces_and_the_end_of_the_trigger_or_the_workflow_ends() {
    let host = Place::new().process(1, false).await;
    let owner: Partition = tenant().into();
    let schedule = schedule_of(Some(&owner));
    register(&host, &every_minute("a")).await;
    host.elapse(MINUTE + 1_000).await;
    assert_eq!(
        register(&host, &every_minute("b")).await,
        Registration::Changed
    );
    assert_eq!(
        record(&host, &schedule).await.version,
        1,
        "its trigger is the same"
    );
    host.elapse(MINUTE).await;
    assert_eq!(nodes(&host).await, ["a", "b"]);
    register(&host, &scheduled("c", json!({"cron": "*/5 * * * *"}))).await;
    host.elapse(3 * MINUTE).await;
    assert_eq!(nodes(&host).await, ["a", "b", "c"], "at 08:05");
    let mut disabled = every_minute("d");
    disabled["triggers"][1]["enabled"] = json!(false);
    register(&host, &disabled).await;
    host.elapse(10 * MINUTE).await;
    assert_eq!(runs(&host).await.len(), 3);
    assert_eq!(
        record(&host, &schedule).await.status,
        ScheduleStatus::Canceled
    );
    register(&host, &every_minute("e")).await;
    host.elapse(MINUTE).await;
    assert_eq!(nodes(&host).await, ["a", "b", "c", "e"]);
    let deleted = host
        .runtime
        .unregister(&owner, &WorkflowId::new(FLOW))
        .await;
    assert!(deleted.expect("the store answers"));
    host.elapse(10 * MINUTE).await;
    assert_eq!(runs(&host).await.len(), 4);
    assert_eq!(
        record(&host, &schedule).await.status,
        ScheduleStatus::Canceled
    );
}

#[test(start_paused = true)]
async fn missed_occurrences_are_listed_and_at_most_one_is_made_up_for() {
    for (missed_tick, started) in [("skip", 0), ("fire-once", 1)] {
        let place = Place::new();
        let host = place.process(1, false).await;
        let config = json!({"cron": "0 * * * *", "missedTick": missed_tick});
        register(&host, &scheduled("a", config)).await;
        host.runtime.shutdown(Duration::ZERO).await;
        host.elapse(5 * 60 * MINUTE + 30 * MINUTE).await;
        let next = place.process(2, false).await;
        next.elapse(1_000).await;
        assert_eq!(runs(&next).await.len(), started, "{missed_tick}");
        let seen = occurrences(&next, &schedule_of(Some(&tenant().into()))).await;
        let missed = seen
            .iter()
            .filter(|o| outcome(o) == ("skipped", Some("missed")));
        assert_eq!(
            (seen.len(), missed.count()),
            (5, 5 - started),
            "{missed_tick}"
        );
    }
}

#[test(start_paused = true)]
async fn moment_that_took_place_does_not_come_back_with_its_document() {
    let host = Place::new().process(1, false).await;
    let owner: Partition = tenant().into();
    let config = json!({"at": "2027-01-15T08:01:00Z", "missedTick": "fire-once"});
    let document = scheduled("a", config);
    register(&host, &document).await;
    host.elapse(MINUTE + 1_000).await;
    let started = runs(&host).await;
    let workflow = WorkflowId::new(FLOW);
    let unregistered = host.runtime.unregister(&owner, &workflow);
    unregistered.await.expect("the store answers");
    register(&host, &document).await;
    host.elapse(MINUTE).await;
    assert_eq!(runs(&host).await, started);
    let seen = occurrences(&host, &schedule_of(Some(&owner))).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(outcome(&seen[0]), ("success", None));
    assert_eq!(seen[0].workflow_run_id.as_ref(), started.first());
}

#[test(start_paused = true)]
async fn document_of_everybody_starts_runs_of_one_tenant() {
    let host = Place::new().process(1, false).await;
    let shared = every_minute("a");
    let registered = host.runtime.register(None, &shared, Permissions::default());
    registered.await.expect("the workflow is sound");
    host.elapse(MINUTE + 1_000).await;
    let default = TenantId::new("default");
    assert_eq!(runs_of(&host, &default).await.len(), 1);
    assert_eq!(runs(&host).await.len(), 0);
    // The tenant puts a document of its own in place of the operator's.
    let own: Partition = default.clone().into();
    let document = wf(FLOW).noop("own").document();
    let registered = host
        .runtime
        .register(Some(&own), &document, Permissions::default());
    registered.await.expect("the workflow is sound");
    host.elapse(MINUTE).await;
    assert_eq!(runs_of(&host, &default).await.len(), 1);
    let seen = occurrences(&host, &schedule_of(None)).await;
    assert_eq!(outcome(&seen[1]), ("skipped", Some("workflow_replaced")));
}

#[test(start_paused = true)]
async fn start_that_is_refused_is_a_failed_occurrence() {
    let host = Place::new().process(1, false).await;
    let mut document = every_minute("a");
    // A caller with the role for conformance tests may start it, a schedule may not.
    document["nodes"][0]["typeId"] = json!("conformance.artifact.emit");
    let owner: Partition = tenant().into();
    let permissions = Permissions {
        conformance: ConformanceTypes::Everywhere,
        ..Permissions::default()
    };
    let registered = host.runtime.register(Some(&owner), &document, permissions);
    registered.await.expect("the workflow is sound");
    host.elapse(2 * MINUTE + 1_000).await;
    assert!(runs(&host).await.is_empty());
    let seen = occurrences(&host, &schedule_of(Some(&owner))).await;
    assert_eq!(seen.len(), 2, "the schedule goes on");
    let (outcome, reason) = outcome(&seen[0]);
    assert_eq!(outcome, "failed");
    assert!(
        reason.is_some_and(|why| why.starts_with("validation_error: ")),
        "{reason:?}"
    );
}

#[test(start_paused = true)]
async fn trigger_is_judged_when_it_is_new_and_not_again() {
    let host = Place::new().process(1, false).await;
    let owner: Partition = tenant().into();
    let at = |node: &str, at: &str| scheduled(node, json!({"at": at}));
    let refused = |document: Value| {
        let (runtime, owner) = (host.runtime.clone(), owner.clone());
        async move {
            let permissions = Permissions::default();
            match runtime.register(Some(&owner), &document, permissions).await {
                Err(RegisterError::Invalid(problems)) => problems[0].reason.unwrap_or("passed"),
                other => panic!("it is refused: {other:?}"),
            }
        }
    };
    assert_eq!(refused(at("a", "2027-01-15T07:59:00Z")).await, "passed");
    let far = refused(at("a", "2047-01-15T07:59:00Z")).await;
    assert_eq!(far, "schedule_horizon_exceeded");
    register(&host, &at("a", "2027-01-15T08:01:00Z")).await;
    host.elapse(2 * MINUTE).await;
    assert_eq!(nodes(&host).await, ["a"]);
    register(&host, &at("b", "2027-01-15T08:01:00Z")).await;
    host.elapse(2 * MINUTE).await;
    assert_eq!(nodes(&host).await, ["a"], "it has taken place");
    assert_eq!(refused(at("c", "2027-01-15T08:02:00Z")).await, "passed");
}
