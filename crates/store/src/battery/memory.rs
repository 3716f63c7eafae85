//! The memory journal: a scope as of any position, the writes of single runs, and isolation of
//! tenants and scopes.

use super::sample::{NOW, head, later, moved, must, row, started};
use crate::{
    AuditDraft, Commit, ListedRun, MemoryJoin, MemoryQuery, MemoryRow, MemorySegment, MemoryView,
    SnapshotRecord, Store,
};
use std::sync::Arc;
use tandem_record::{Actor, Object, RunId, RunStatus, Seq, StreamId, TenantId};

fn write(run: &str, seq: u64, key: &str, value: Option<&str>) -> MemoryRow {
    MemoryRow {
        tenant: TenantId::new("t1"),
        scope: "s".into(),
        memory_ref: "notes".into(),
        key: key.into(),
        run: RunId::new(run),
        seq: Seq(seq),
        body: value.map(|value| format!("\"{value}\"")),
    }
}

async fn journal(store: &Arc<dyn Store>, rows: impl IntoIterator<Item = MemoryRow>) {
    let commit = Commit {
        memory: rows.into_iter().collect(),
        ..Commit::default()
    };
    must(store, commit).await;
}

fn view(start: u64, segments: &[(&str, Option<u64>, bool)]) -> MemoryView {
    MemoryView {
        tenant: TenantId::new("t1"),
        scope: "s".into(),
        start,
        segments: segments
            .iter()
            .map(|(run, below, applies_deletions)| MemorySegment {
                run: RunId::new(run),
                below: below.map(Seq),
                applies_deletions: *applies_deletions,
            })
            .collect(),
    }
}

/// `key=value` of the visible entries, oldest write first; the same through every kind of query.
async fn visible_entries(store: &Arc<dyn Store>, view: &MemoryView) -> Vec<String> {
    let all = store
        .memory_entries(view, &MemoryQuery::default())
        .await
        .expect("reads work");
    let in_ref = MemoryQuery {
        memory_ref: Some("notes".into()),
        key: None,
    };
    let notes = store
        .memory_entries(view, &in_ref)
        .await
        .expect("reads work");
    let expected: Vec<_> = all
        .iter()
        .filter(|r| r.memory_ref == "notes")
        .cloned()
        .collect();
    assert_eq!(notes, expected, "a name is a filter");
    for row in &notes {
        let one = MemoryQuery {
            key: Some(row.key.clone()),
            ..in_ref.clone()
        };
        let found = store.memory_entries(view, &one).await.expect("reads work");
        assert_eq!(found, std::slice::from_ref(row), "a key is a filter");
    }
    all.iter()
        .map(|row| format!("{}={}", row.key, row.body.as_deref().unwrap_or("gone")))
        .collect()
}

pub async fn a_scope_is_readable_as_of_every_position(store: Arc<dyn Store>) {
    // R-0039-21
    assert_eq!(store.memory_position().await.unwrap(), 0);
    journal(
        &store,
        [
            write("r1", 1, "a", Some("1")),
            write("r1", 2, "b", Some("1")),
            write("r2", 1, "a", Some("2")),
            write("r2", 2, "b", None),
        ],
    )
    .await;
    let before = store.memory_position().await.unwrap();
    journal(&store, [write("r3", 1, "b", Some("3"))]).await;
    let end = store.memory_position().await.unwrap();
    assert!(before < end, "positions grow");
    let at = |back: u64| view(end - back, &[]);
    assert_eq!(
        visible_entries(&store, &at(0)).await,
        ["a=\"2\"", "b=\"3\""]
    );
    assert_eq!(
        visible_entries(&store, &at(1)).await,
        ["a=\"2\""],
        "b was deleted"
    );
    assert_eq!(
        visible_entries(&store, &at(2)).await,
        ["b=\"1\"", "a=\"2\""]
    );
    assert_eq!(
        visible_entries(&store, &at(3)).await,
        ["a=\"1\"", "b=\"1\""]
    );
    assert!(visible_entries(&store, &view(0, &[])).await.is_empty());
}

pub async fn run_writes_are_visible_up_to_an_event(store: Arc<dyn Store>) {
    // R-0039-20, R-0039-21
    journal(
        &store,
        [
            write("r1", 2, "a", Some("1")),
            write("r1", 5, "a", Some("2")),
            write("r2", 1, "a", Some("other")),
            write("r1", 7, "a", None),
        ],
    )
    .await;
    assert!(
        visible_entries(&store, &view(0, &[("r1", Some(2), false)]))
            .await
            .is_empty()
    );
    assert_eq!(
        visible_entries(&store, &view(0, &[("r1", Some(3), false)])).await,
        ["a=\"1\""]
    );
    assert_eq!(
        visible_entries(&store, &view(0, &[("r1", None, false)])).await,
        ["a=\"2\""],
        "its own"
    );
    assert!(
        visible_entries(&store, &view(0, &[("r1", None, true)]))
            .await
            .is_empty(),
        "another's"
    );
    let both = [("r1", None, false), ("r2", None, true)];
    assert_eq!(
        visible_entries(&store, &view(0, &both)).await,
        ["a=\"other\""],
        "the newest wins"
    );
}

pub async fn bound_to_tenant_and_scope(store: Arc<dyn Store>) {
    // R-0039-14 (half: the store keeps tenants and scopes apart)
    let foreign = |tenant: &str, scope: &str| MemoryRow {
        tenant: TenantId::new(tenant),
        scope: scope.into(),
        ..write("r1", 1, "a", Some("theirs"))
    };
    journal(&store, [foreign("t2", "s"), foreign("t1", "other")]).await;
    let end = store.memory_position().await.unwrap();
    let everything = view(end, &[("r1", None, true)]);
    assert!(
        visible_entries(&store, &everything).await.is_empty(),
        "not even by its run"
    );
    journal(&store, [write("r2", 1, "a", Some("ours"))]).await;
    let count = |tenant: &str| {
        let (store, tenant) = (Arc::clone(&store), TenantId::new(tenant));
        async move {
            store
                .memory_count(&tenant, "s", "notes", NOW, 10)
                .await
                .unwrap()
        }
    };
    assert_eq!(
        (count("t1").await, count("t2").await, count("t3").await),
        (1, 1, 0)
    );
}

pub async fn counts_current_keys(store: Arc<dyn Store>) {
    let keys = ["a", "b", "c", "d"];
    let rows = keys
        .iter()
        .zip(1..)
        .map(|(key, seq)| write("r1", seq, key, Some("1")));
    journal(&store, rows).await;
    journal(
        &store,
        [write("r1", 8, "a", None), write("r1", 9, "b", Some("2"))],
    )
    .await;
    let tenant = TenantId::new("t1");
    let count = |limit| store.memory_count(&tenant, "s", "notes", NOW, limit);
    assert_eq!(count(10).await.unwrap(), 3);
    assert_eq!(count(2).await.unwrap(), 2, "counted up to the limit");
    let over = |seq: u64, at: u64| MemoryRow {
        body: Some(format!(
            "{{\"expires_at\":{},\"written_at\":{}}}",
            later(at).0,
            NOW.0
        )),
        ..write("r1", seq, &format!("e{seq}"), Some(""))
    };
    journal(&store, [over(10, 5), over(11, 9)]).await;
    for (now, there) in [(4, 5), (5, 4), (8, 4), (9, 3)] {
        let count = store.memory_count(&tenant, "s", "notes", later(now), 10);
        assert_eq!(count.await.unwrap(), there, "at {now}");
    }
}

pub async fn joins_in_order(store: Arc<dyn Store>) {
    let run = RunId::new("r1");
    let join = |seq: u64, child: &str| MemoryJoin {
        run: run.clone(),
        seq: Seq(seq),
        child: RunId::new(child),
    };
    let commit = Commit {
        joins: vec![join(3, "c1"), join(6, "c2")],
        ..Commit::default()
    };
    must(&store, commit).await;
    let all = store.memory_joins(&run, None).await.unwrap();
    assert_eq!(all, [RunId::new("c1"), RunId::new("c2")]);
    let early = store.memory_joins(&run, Some(Seq(6))).await.unwrap();
    assert_eq!(early, [RunId::new("c1")], "strictly before");
    let none = store.memory_joins(&RunId::new("c1"), None).await.unwrap();
    assert!(none.is_empty());
}

pub async fn rejected_commit_writes_no_memory(store: Arc<dyn Store>) {
    must(&store, started(row("t1", "r1"))).await;
    let stale = Commit {
        memory: vec![write("r1", 1, "a", Some("1"))],
        ..moved(row("t1", "r1"), Some(7))
    };
    super::sample::conflict(&store, stale).await;
    assert_eq!(store.memory_position().await.unwrap(), 0);
    assert!(
        visible_entries(&store, &view(u64::MAX, &[]))
            .await
            .is_empty()
    );
}

pub async fn purged_run_retains_its_row_and_memory(store: Arc<dyn Store>) {
    let ended = |run: &str, ms: u64| {
        let mut ended = row("t1", run);
        ended.status = RunStatus::Completed;
        ended.ended_at = Some(later(ms));
        ended
    };
    for (run, ms) in [("r1", 10), ("r2", 20), ("r3", 5)] {
        let mut begin = started(ended(run, ms));
        begin.appends[0].snapshot = Some(SnapshotRecord {
            seq: Seq(0),
            format: 1,
            body: "{}".into(),
        });
        must(&store, begin).await;
    }
    must(&store, started(row("t1", "live"))).await;
    journal(&store, [write("r1", 0, "a", Some("1"))]).await;
    let ended = async |after, before, limit| {
        let runs = store.ended_runs(after, before, limit).await.unwrap();
        let place = |run: &ListedRun| (run.row.ended_at.unwrap(), run.position);
        let last = runs.last().map(place);
        let ids: Vec<_> = runs.into_iter().map(|run| run.row.run_id).collect();
        (ids, last)
    };
    let (old, _) = ended(None, later(20), 10).await;
    assert_eq!(
        old,
        [RunId::new("r3"), RunId::new("r1")],
        "longest ended first"
    );
    let (first, place) = ended(None, later(99), 1).await;
    assert_eq!(first, [RunId::new("r3")]);
    let (rest, place) = ended(place, later(99), 9).await;
    assert_eq!(
        rest,
        [RunId::new("r1"), RunId::new("r2")],
        "from a place on"
    );
    assert_eq!(ended(place, later(99), 9).await.0, []);
    let audit = AuditDraft::new(NOW, None, &Actor::host(), "run.purge", "r1", Object::new());
    for _ in 0..2 {
        let left = "{\"left\":1}";
        let purged = store
            .purge_run(&"r1".into(), left, Some(audit.clone()))
            .await;
        purged.unwrap();
        let audit = store.audit_head().await.unwrap();
        assert_eq!(audit.map(|head| head.seq), Some(1), "recorded once");
    }
    let nobody = store.purge_run(&"nobody".into(), "{}", Some(audit)).await;
    nobody.unwrap();
    let end = store.audit_head().await.unwrap();
    assert_eq!(end.map(|end| end.seq), Some(1), "nothing happened");
    let stream = StreamId::new("run:r1");
    let slice = store.events(&stream, None, 10).await.unwrap();
    assert!(slice.events.is_empty(), "its log is gone");
    assert_eq!(store.snapshot(&stream).await.unwrap(), None);
    let left = store.run(&"t1".into(), &"r1".into()).await.unwrap();
    let left = left.expect("its row stays");
    assert_eq!(left.tombstone.as_deref(), Some("{\"left\":1}"));
    assert_eq!(left.head, Seq(0), "and says how far it went");
    let other = store.run(&"t1".into(), &"r2".into()).await.unwrap();
    assert_eq!(other.expect("another run").tombstone, None);
    assert_eq!(ended(None, later(99), 9).await.0.len(), 2);
    let end = store.memory_position().await.unwrap();
    assert_eq!(visible_entries(&store, &view(end, &[])).await, ["a=\"1\""]);
    // New runs do not appear in a purged stream.
    for run in ["r2", "r3", "live"] {
        store.purge_run(&run.into(), "{}", None).await.unwrap();
    }
    must(&store, started(row("t1", "new"))).await;
    assert_eq!(head(&store, &StreamId::new("run:new")).await, Some(0));
    let purged = store.events(&stream, None, 10).await.unwrap();
    assert!(purged.events.is_empty(), "at {NOW:?}");
}
