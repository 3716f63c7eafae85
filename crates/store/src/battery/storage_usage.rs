//! Storage usage, reported to its tenant.

use super::sample::{later, must, row, started};
use crate::{Commit, MemoryRow, RunCounts, ScopeSize, StorageUsage, Store, WorkflowSize};
use std::sync::Arc;
use tandem_record::{RunId, RunStatus, Seq, TenantId, WorkflowId};

pub async fn usage_is_limited_to_the_tenant(store: Arc<dyn Store>) {
    let ended = |run: &str, workflow: &str, ms: u64| {
        let mut ended = row("t1", run);
        ended.workflow_id = WorkflowId::new(workflow);
        ended.status = RunStatus::Completed;
        ended.ended_at = Some(later(ms));
        ended
    };
    let mut large = started(ended("r1", "w1", 30));
    let event = large.appends[0].events[0].clone();
    large.appends[0]
        .events
        .extend([event.clone(), event.clone()]);
    must(&store, large).await;
    must(&store, started(ended("r2", "w2", 20))).await;
    must(&store, started(ended("r3", "w2", 10))).await;
    must(&store, started(ended("r4", "w1", 5))).await;
    must(&store, started(row("t1", "r5"))).await;
    must(&store, started(row("t2", "r6"))).await;
    store.purge_run(&"r4".into(), "{}", None).await.unwrap();
    let write = |tenant: &str, scope: &str, seq: u64, body: Option<&str>| MemoryRow {
        tenant: TenantId::new(tenant),
        scope: scope.into(),
        memory_ref: "notes".into(),
        key: "k".into(),
        run: RunId::new("r1"),
        seq: Seq(seq),
        body: body.map(str::to_owned),
    };
    let commit = Commit {
        memory: vec![
            write("t1", "small", 1, Some("1")),
            write("t1", "large", 2, Some("\"ż\"")),
            write("t1", "large", 3, None),
            write("t2", "theirs", 4, Some("1")),
        ],
        ..Commit::default()
    };
    must(&store, commit).await;

    let usage = store.storage_usage(&"t1".into()).await.unwrap();
    let counts = RunCounts {
        live: 1,
        retained: 3,
        purged: 1,
        more: false,
    };
    assert_eq!(usage.runs, counts);
    let of = |workflow: &WorkflowId, runs, events| WorkflowSize {
        tenant: "t1".into(),
        workflow_id: workflow.clone(),
        runs,
        events,
    };
    let (w1, w2) = (WorkflowId::new("w1"), WorkflowId::new("w2"));
    assert_eq!(usage.workflows[..2], [of(&w1, 1, 3), of(&w2, 2, 2)]);
    let ids: Vec<&str> = usage
        .largest_runs
        .iter()
        .map(|run| run.run_id.as_str())
        .collect();
    assert_eq!(
        ids,
        ["r1", "r5", "r3", "r2"],
        "most events first, then the newest"
    );
    assert_eq!(usage.largest_runs[0].events, 3);
    assert_eq!(usage.largest_runs[0].bytes, 3 * event.body.len() as u64);
    let scope = |scope: &str, writes, bytes| ScopeSize {
        tenant: "t1".into(),
        scope: scope.into(),
        writes,
        bytes,
    };
    assert_eq!(usage.memory, [scope("large", 2, 4), scope("small", 1, 1)]);
    assert_eq!(
        usage.oldest_ends,
        [(w1, later(30)), (w2, later(10))],
        "of those kept"
    );
    assert_eq!(
        store.storage_usage(&"nobody".into()).await.unwrap(),
        StorageUsage::default()
    );
}
