//! The run listing: separate for each tenant, filtered, and stable while a reader pages through it.

use super::sample::{later, moved, must, partition, row, started};
use crate::{Page, RunFilter, RunListing, RunRow, Store};
use std::sync::Arc;
use tandem_record::{
    Partition, RunId, RunStatus, Seq, StreamId, TenantId, WorkflowId, WorkspaceId,
};

fn ids(listing: &RunListing) -> Vec<&str> {
    listing.runs.iter().map(|r| r.row.run_id.as_str()).collect()
}

fn first(limit: usize) -> Page {
    Page {
        before: None,
        limit,
    }
}

async fn list(store: &Arc<dyn Store>, tenant: &str, filter: &RunFilter, page: &Page) -> RunListing {
    store
        .list_runs(&TenantId::new(tenant), filter, page)
        .await
        .expect("listing works")
}

pub async fn descendants_are_counted_at_every_depth(store: Arc<dyn Store>) {
    let parents = [
        ("root", None),
        ("a", Some("root")),
        ("b", Some("root")),
        ("a1", Some("a")),
        ("a11", Some("a1")),
        ("other", None),
        ("o1", Some("other")),
    ];
    for (run, parent) in parents {
        let mut row = row("t1", run);
        row.parent = parent.map(RunId::new);
        must(&store, started(row)).await;
    }
    let count = async |tenant: &str, run: &str, limit: u64| {
        let (tenant, run) = (TenantId::new(tenant), RunId::new(run));
        store.count_descendants(&tenant, &run, limit).await.unwrap()
    };
    assert_eq!(count("t1", "root", 100).await, 4);
    assert_eq!(count("t1", "a", 100).await, 2);
    assert_eq!(count("t1", "a11", 100).await, 0);
    assert_eq!(count("t1", "root", 3).await, 3, "not more than asked for");
    assert_eq!(count("t2", "root", 100).await, 0);
    assert_eq!(count("t1", "nobody", 100).await, 0);
}

pub async fn bound_to_their_tenant(store: Arc<dyn Store>) {
    must(&store, started(row("t1", "r1"))).await;
    let run = RunId::new("r1");
    let own = store.run(&"t1".into(), &run).await.unwrap().unwrap();
    assert_eq!(own.row, row("t1", "r1"), "every field comes back");
    assert_eq!(own.head, Seq(0));
    let other = store.run(&"t2".into(), &run).await.unwrap();
    assert_eq!(other, None, "another tenant's run is not found");
    let any = store.run_of_any_tenant(&run).await.unwrap();
    assert_eq!(any, Some(own));
    let absent = store.run_of_any_tenant(&RunId::new("r2")).await.unwrap();
    assert_eq!(absent, None);
    let position = async |tenant: &str, workspace: Option<&str>, run: &str| {
        let of = Partition {
            tenant: tenant.into(),
            workspace: workspace.map(Into::into),
        };
        store.run_position(&of, &RunId::new(run)).await.unwrap()
    };
    let mut bound = row("t1", "r3");
    bound.workspace = Some(WorkspaceId::new("red"));
    must(&store, started(bound)).await;
    let listed = list(&store, "t1", &RunFilter::default(), &first(10)).await;
    let places: Vec<_> = listed.runs.iter().map(|r| Some(r.position)).collect();
    assert_eq!(position("t1", None, "r1").await, places[1]);
    assert_eq!(position("t1", None, "r3").await, places[0]);
    assert_eq!(position("t1", Some("red"), "r3").await, places[0]);
    for (tenant, workspace, run) in [
        ("t2", None, "r1"),
        ("t1", Some("red"), "r1"),
        ("t1", Some("blue"), "r3"),
        ("t1", None, "r2"),
    ] {
        let found = position(tenant, workspace, run).await;
        assert_eq!(found, None, "{tenant} {workspace:?} {run}");
    }
    let listed = list(&store, "t2", &RunFilter::default(), &first(10)).await;
    assert_eq!(listed, RunListing::default());
}

pub async fn a_projection_follows_its_run(store: Arc<dyn Store>) {
    let mut run = row("t1", "r1");
    run.workspace = Some(WorkspaceId::new("w1"));
    run.parent = Some(RunId::new("r0"));
    run.scope = Some("order-7".into());
    must(&store, started(run.clone())).await;
    run.status = RunStatus::Failed;
    run.ended_at = Some(later(9));
    run.error_code = Some("node_failed".into());
    must(&store, moved(run.clone(), Some(0))).await;
    let stored = store.run(&"t1".into(), &run.run_id).await.unwrap().unwrap();
    assert_eq!(stored.row, run);
    assert_eq!(stored.head, Seq(1));
    // The head follows events that do not change the row.
    let stream = StreamId::of_run(&run.run_id);
    let more = super::sample::append(&stream, Some(1), 2);
    must(&store, super::sample::commit([more])).await;
    let stored = store.run(&"t1".into(), &run.run_id).await.unwrap().unwrap();
    assert_eq!(stored.head, Seq(3));
}

pub async fn identity_is_fixed(store: Arc<dyn Store>) {
    must(&store, started(row("t1", "r1"))).await;
    let mut stolen = row("t2", "r1");
    stolen.workflow_id = WorkflowId::new("other");
    stolen.created_at = later(5);
    stolen.scope = Some("order-7".into());
    stolen.status = RunStatus::Paused;
    must(&store, moved(stolen, Some(0))).await;
    let run = RunId::new("r1");
    assert_eq!(store.run(&"t2".into(), &run).await.unwrap(), None);
    let stored = store.run(&"t1".into(), &run).await.unwrap().unwrap();
    let mut expected = row("t1", "r1");
    expected.status = RunStatus::Paused;
    assert_eq!(stored.row, expected, "only the status fields may change");
}

pub async fn lists_newest_first(store: Arc<dyn Store>) {
    // Only the order of creation counts, not ids or times.
    for id in ["r5", "r1", "r3"] {
        must(&store, started(row("t1", id))).await;
        must(&store, started(row("t2", &format!("other-{id}")))).await;
    }
    must(&store, moved(row("t1", "r5"), Some(0))).await;
    let all = list(&store, "t1", &RunFilter::default(), &first(10)).await;
    assert_eq!(ids(&all), ["r3", "r1", "r5"]);
    assert!(!all.more);
    let two = list(&store, "t1", &RunFilter::default(), &first(2)).await;
    assert_eq!(ids(&two), ["r3", "r1"]);
    assert!(two.more, "an older row is left");
    let three = list(&store, "t1", &RunFilter::default(), &first(3)).await;
    assert!(!three.more, "nothing older is left");
}

/// Twelve runs in which status, workflow, workspace and parent vary independently.
fn varied() -> Vec<RunRow> {
    (0..12)
        .map(|n| {
            let mut run = row("t1", &format!("r{n:02}"));
            run.status = [RunStatus::Running, RunStatus::Completed][n % 2];
            run.workflow_id = WorkflowId::new(["f0", "f1", "f2"][n % 3]);
            run.workspace = (n >= 4).then(|| WorkspaceId::new(["w0", "w1"][(n / 4) % 2]));
            run.parent = (n >= 6).then(|| RunId::new("r00"));
            run
        })
        .collect()
}

pub async fn filters_combine(store: Arc<dyn Store>) {
    let rows = varied();
    for run in &rows {
        must(&store, started(run.clone())).await;
        let mut twin = run.clone();
        twin.tenant = TenantId::new("t2");
        twin.run_id = RunId::new(format!("other-{}", run.run_id));
        must(&store, started(twin)).await;
    }
    for bits in 0..16 {
        let with = |bit: u32| bits & (1 << bit) != 0;
        let filter = RunFilter {
            status: with(0).then_some(RunStatus::Completed),
            workflow: with(1).then(|| WorkflowId::new("f1")),
            parent: with(2).then(|| RunId::new("r00")),
            workspace: with(3).then(|| WorkspaceId::new("w1")),
        };
        let expected: Vec<&str> = rows
            .iter()
            .rev()
            .filter(|r| filter.status.is_none_or(|s| r.status == s))
            .filter(|r| filter.workflow.as_ref().is_none_or(|w| r.workflow_id == *w))
            .filter(|r| filter.parent.is_none() || r.parent == filter.parent)
            .filter(|r| filter.workspace.is_none() || r.workspace == filter.workspace)
            .map(|r| r.run_id.as_str())
            .collect();
        let listed = list(&store, "t1", &filter, &first(100)).await;
        assert_eq!(ids(&listed), expected, "{filter:?}");
        // The same, one row at a time.
        let mut page = first(1);
        let mut walked = Vec::new();
        loop {
            let listed = list(&store, "t1", &filter, &page).await;
            walked.extend(listed.runs.iter().map(|r| r.row.run_id.to_string()));
            page.before = listed.runs.last().map(|r| r.position);
            if !listed.more {
                break;
            }
        }
        assert_eq!(walked, expected, "{filter:?} in pages");
    }
}

pub async fn pages_stay_stable_while_runs_arrive(store: Arc<dyn Store>) {
    for n in 0..6 {
        must(&store, started(row("t1", &format!("r{n}")))).await;
    }
    let mut page = first(2);
    let mut walked = Vec::new();
    for n in 0..3 {
        let listed = list(&store, "t1", &RunFilter::default(), &page).await;
        walked.extend(listed.runs.iter().map(|r| r.row.run_id.to_string()));
        assert_eq!(listed.more, n < 2);
        page.before = listed.runs.last().map(|r| r.position);
        must(&store, started(row("t1", &format!("new-{n}")))).await;
        // A run that changes keeps its position.
        must(&store, moved(row("t1", "r0"), Some(n))).await;
    }
    assert_eq!(walked, ["r5", "r4", "r3", "r2", "r1", "r0"]);
}

pub async fn scope_finds_live_runs(store: Arc<dyn Store>) {
    let scope = async |tenant: &str| {
        let owner = partition(tenant);
        store.live_run_in_scope(&owner, "order-7").await.unwrap()
    };
    let mut run = row("t1", "r1");
    run.scope = Some("order-7".into());
    must(&store, started(run.clone())).await;
    assert_eq!(scope("t1").await, Some(RunId::new("r1")));
    assert_eq!(scope("t2").await, None, "scopes are a tenant's own");
    run.status = RunStatus::Cancelled;
    must(&store, moved(run, Some(0))).await;
    assert_eq!(scope("t1").await, None, "an ended run frees its scope");
}

pub async fn counts_by_status(store: Arc<dyn Store>) {
    assert_eq!(store.count_by_status().await.unwrap(), []);
    for run in varied() {
        must(&store, started(run)).await;
    }
    let mut run = row("t2", "r99");
    run.status = RunStatus::WaitingApproval;
    must(&store, started(run)).await;
    let mut counts = store.count_by_status().await.unwrap();
    counts.sort();
    let expected = [("completed", 6), ("running", 6), ("waiting-approval", 1)];
    let expected = expected.map(|(status, count)| (status.to_owned(), count));
    assert_eq!(counts, expected, "over all tenants, only what there is");
}
