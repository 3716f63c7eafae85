//! Confirmed data is there after the store was closed, dropped or copied while in use.

mod earlier_versions;

use earlier_versions::of_version;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tandem_record::{
    DefinitionHash, EffectId, Partition, RunId, StreamId, TenantId, TimerName, Timestamp,
    WorkflowId,
};
use tandem_store::battery::sample::{
    NOW, append, commit, conversation_started, conversations_as_text, entry, lanes_due, later,
    must, row, started, whole,
};
use tandem_store::{
    DefinitionRecord, DueLane, IdempotencyKey, IdempotencyRecord, InboxQuery, InboxSort, LeaseId,
    LeaseRequest, MemoryView, OutboxChange, RegistryChange, RunFilter, SnapshotRecord, Store,
    StoredResponse, TimerChange, WorkClass,
};
use tandem_store_sqlite::{Options, SqliteStore};

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Options::default()).expect("the database opens"))
}

fn answer() -> IdempotencyRecord {
    IdempotencyRecord {
        key: IdempotencyKey("k1".into()),
        digest: "digest".into(),
        response: StoredResponse {
            status: 201,
            body: "{}".into(),
        },
        recorded_at: NOW,
        session: None,
    }
}

/// Writes to every table.
async fn fill(store: &Arc<dyn Store>) {
    let stream = StreamId::new("run:r1");
    let mut everything = started(row("t1", "r1"));
    everything.appends[0].snapshot = Some(SnapshotRecord {
        seq: tandem_record::Seq(0),
        format: 1,
        body: "{}".into(),
    });
    everything.timers.push(TimerChange::Set {
        stream: stream.clone(),
        name: TimerName::new("deadline"),
        due: later(5),
        tenant: TenantId::new("t1"),
    });
    everything.outbox.push(OutboxChange::Put(entry("e1", NOW)));
    everything.idempotency = vec![answer()];
    everything.registry.push(RegistryChange::Register {
        owner: None,
        definition: DefinitionRecord {
            hash: DefinitionHash::new("d1"),
            workflow: WorkflowId::new("flow"),
            document: "{}".into(),
        },
        at: NOW,
    });
    must(store, everything).await;
    must(store, conversation_started("t1", "s1")).await;
    store.set("name", "value").await.unwrap();
    let request = LeaseRequest {
        lease: LeaseId::new("before", 1),
        now: NOW,
        until: later(60),
        lane_limits: vec![(tandem_store::battery::sample::lane(), 1)],
    };
    assert_eq!(store.lease(request).await.unwrap().len(), 1);
}

async fn check(store: &Arc<dyn Store>) {
    let stream = StreamId::new("run:r1");
    assert_eq!(whole(store, &stream).await.len(), 1);
    assert!(store.snapshot(&stream).await.unwrap().is_some());
    let run = store.run(&"t1".into(), &RunId::new("r1")).await.unwrap();
    assert_eq!(run.unwrap().row, row("t1", "r1"));
    assert_eq!(store.next_timer().await.unwrap(), Some(later(5)));
    assert_eq!(store.next_due().await.unwrap(), Some(later(60)), "leased");
    let answered = store
        .idempotency_record(&IdempotencyKey("k1".into()))
        .await
        .unwrap();
    assert_eq!(answered, Some(answer()));
    let registered = store
        .registered(&TenantId::new("t1").into(), &"flow".into())
        .await;
    assert_eq!(registered.unwrap().unwrap().hash.as_str(), "d1");
    assert_eq!(store.get("name").await.unwrap().as_deref(), Some("value"));
    assert_eq!(store.break_leases("after").await.unwrap(), 1);
    let effect = EffectId::new("e1");
    store
        .release(&effect, &LeaseId::new("before", 1), later(9))
        .await
        .unwrap();
    assert_eq!(store.next_due().await.unwrap(), Some(NOW), "fenced");
    let conversations = conversations_as_text(store, "t1").await;
    for stored in ["usr-ana", "SessionId(\"s1\")", "e-s1", "position: 2"] {
        assert!(conversations.contains(stored), "{stored}: {conversations}");
    }
    // New streams do not collide with old ones.
    must(store, started(row("t1", "r2"))).await;
    assert_eq!(whole(store, &StreamId::new("run:r2")).await.len(), 1);
    assert_eq!(whole(store, &stream).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_and_reopening_retains_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = open(&path);
    fill(&store).await;
    store.close().await;
    let wal = directory.path().join("tandem.db-wal");
    assert!(!wal.exists(), "a closed database is one file");
    check(&open(&path)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_and_reopening_retains_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = open(&path);
    fill(&store).await;
    drop(store);
    check(&open(&path)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_finishes_what_was_queued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = open(&path);
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let done = store.commit(started(row("t1", &format!("r{n}")))).await;
                (n, done.is_ok())
            })
        })
        .collect();
    tokio::task::yield_now().await;
    store.close().await;
    let mut confirmed = BTreeSet::new();
    for task in tasks {
        let (n, ok) = task.await.unwrap();
        confirmed.extend(ok.then(|| format!("r{n}")));
    }
    drop(store);
    let store = open(&path);
    let page = tandem_store::Page {
        before: None,
        limit: 1_000,
    };
    let listed = store
        .list_runs(&"t1".into(), &RunFilter::default(), &page)
        .await
        .unwrap();
    let stored: BTreeSet<_> = listed
        .runs
        .iter()
        .map(|run| run.row.run_id.to_string())
        .collect();
    assert_eq!(stored, confirmed, "confirmed and stored are the same");
}

/// The files as a power failure would leave them: the database first, which only a checkpoint
/// changes (and this stays below one), then the WAL, which only grows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_taken_while_committing_has_all_confirmed_commits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = open(&path);
    let confirmed = Arc::new(Mutex::new(BTreeSet::new()));
    let copied = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let (store, confirmed) = (Arc::clone(&store), Arc::clone(&confirmed));
            let copied = Arc::clone(&copied);
            tokio::spawn(async move {
                let stream = StreamId::new(format!("run:{task}"));
                must(&store, commit([append(&stream, None, 1)])).await;
                for seq in 0..30 {
                    if copied.load(Ordering::Relaxed) {
                        break;
                    }
                    must(&store, commit([append(&stream, Some(seq), 1)])).await;
                    confirmed.lock().unwrap().insert((task, seq + 1));
                }
            })
        })
        .collect();
    while confirmed.lock().unwrap().len() < 30 {
        tokio::task::yield_now().await;
    }
    let before = confirmed.lock().unwrap().clone();
    let copy = directory.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    let wal = directory.path().join("tandem.db-wal");
    std::fs::copy(wal, directory.path().join("copy.db-wal")).unwrap();
    copied.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }

    let store = open(&copy);
    for (task, seq) in before {
        let events = whole(&store, &StreamId::new(format!("run:{task}"))).await;
        assert!(events.len() > seq as usize, "run:{task} lost event {seq}");
    }
    for task in 0..4 {
        // `whole` checks that there is no gap; the stream also continues.
        let stream = StreamId::new(format!("run:{task}"));
        let last = whole(&store, &stream).await.len() as u64 - 1;
        must(&store, commit([append(&stream, Some(last), 1)])).await;
    }
}

#[tokio::test]
async fn inbox_of_first_release_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    of_version(
        1,
        &path,
        "INSERT INTO interrupts VALUES
                 (1, 'i1', 'r1', 'gate', 't1', NULL, 'approval', 5, NULL, NULL, '{}'),
                 (2, 'i2', 'r1', 'gate', 't1', 'w1', 'approval', 6, 9, NULL, '{}'),
                 (3, 'i3', 'r1', 'gate', 't1', NULL, 'custom', 7, NULL, 'resolved', '{}');",
    );
    let store = open(&path);
    let query = |workspace: Option<&str>, kind: Option<&str>| InboxQuery {
        workspace: workspace.map(Into::into),
        kind: kind.map(str::to_owned),
        sort: InboxSort::Deadline,
        limit: 10,
        ..InboxQuery::default()
    };
    for (query, expected) in [
        (query(None, None), vec!["i2", "i1"]),
        (query(Some("w1"), Some("approval")), vec!["i2"]),
        (query(None, Some("custom")), vec![]),
    ] {
        let page = store.inbox(&"t1".into(), &query).await.unwrap();
        let ids: Vec<String> = page
            .rows
            .iter()
            .map(|(_, row)| row.interrupt.to_string())
            .collect();
        assert_eq!(ids, expected, "{query:?}");
    }
}

#[tokio::test]
async fn older_memory_is_counted_after_migration() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    of_version(
        6,
        &path,
        "INSERT INTO memory VALUES
                 (1, 't1', 's', 'notes', 'mem-1', 'r1', 1, '{\"written_at\":1}'),
                 (2, 't1', 's', 'notes', 'mem-2', 'r1', 2, '{\"written_at\":1,\"expires_at\":9}'),
                 (3, 't1', 's', 'notes', 'gone', 'r1', 3, '{\"written_at\":1}'),
                 (4, 't1', 's', 'notes', 'gone', 'r1', 4, NULL),
                 (5, 't1', 's', 'notes', 'mem-1', 'r2', 1, '{\"written_at\":2}');",
    );
    let store = open(&path);
    let tenant = TenantId::new("t1");
    for (now, there) in [(8, 2), (9, 1)] {
        let count = store.memory_count(&tenant, "s", "notes", Timestamp(now), 10);
        assert_eq!(count.await.unwrap(), there, "at {now}");
    }
    let view = MemoryView {
        tenant: tenant.clone(),
        scope: "s".into(),
        start: u64::MAX,
        segments: Vec::new(),
    };
    let (held, rows) = store
        .non_expiring_memory(&view, "notes", "mem-", 0, 9)
        .await
        .unwrap();
    assert_eq!((held, rows[0].run.as_str()), (1, "r2"), "its newest write");
}

#[tokio::test]
async fn migration_gives_workspaces_their_memory_and_leaves_workflows_to_tenants() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let run = |position: i64, id: &str, workspace: &str, scope: &str, tombstone: &str| {
        format!(
            "INSERT INTO runs VALUES ({position}, '{id}', 't1', {workspace}, 'flow', 'd1',
                 'running', NULL, {scope}, 1, NULL, NULL, {tombstone});"
        )
    };
    let left = r#"'{"memory":{"scope":"scope:s","start":4},"buriedAt":9}'"#;
    let rows = [
        run(1, "r1", "'re/d'", "'order-7'", "NULL"),
        run(2, "r2", "'blue'", "NULL", left),
        run(3, "r3", "NULL", "NULL", "NULL"),
        "INSERT INTO streams VALUES ('run:r2', 0, 5);
         INSERT INTO definitions VALUES ('d1', '{}');
         INSERT INTO registry VALUES ('t1', 'flow', 'd1', 1);
         INSERT INTO memory VALUES
             (1, 't1', 'tenant', 'notes', 'k', 'r1', 1, '{\"written_at\":1}'),
             (2, 't1', 'tenant', 'notes', 'k', 'r3', 1, '{\"written_at\":1}'),
             (3, 't1', 'scope:s', 'notes', 'k', 'r2', 1, '{\"written_at\":1}'),
             (4, 't1', 'run:r1', 'notes', 'k', 'r1', 2, '{\"written_at\":1}');"
            .to_owned(),
    ];
    of_version(8, &path, &rows.concat());
    let store = open(&path);
    let tenant = TenantId::new("t1");
    for (scope, run) in [
        ("tenant", "r3"),
        ("workspace:re%2Fd", "r1"),
        ("workspace:blue/scope:s", "r2"),
        ("run:r1", "r1"),
    ] {
        let view = MemoryView {
            tenant: tenant.clone(),
            scope: scope.into(),
            start: u64::MAX,
            segments: Vec::new(),
        };
        let entries = store.memory_entries(&view, &Default::default()).await;
        let writers: Vec<String> = entries.unwrap().iter().map(|e| e.run.to_string()).collect();
        assert_eq!(writers, [run], "{scope}");
        let count = store.memory_count(&tenant, scope, "notes", Timestamp(5), 10);
        assert_eq!(count.await.unwrap(), 1, "{scope} has its current count");
    }
    let purged = store.run(&tenant, &"r2".into()).await.unwrap().unwrap();
    let left = purged.tombstone.unwrap();
    assert!(
        left.contains(r#""scope":"workspace:blue/scope:s""#),
        "{left}"
    );
    assert!(left.contains(r#""buriedAt":9"#), "{left}");
    let red = Partition {
        tenant: tenant.clone(),
        workspace: Some("re/d".into()),
    };
    for owner in [red.clone(), tenant.clone().into()] {
        let found = store.registered(&owner, &"flow".into()).await.unwrap();
        assert_eq!(found.unwrap().workspace, None);
    }
    let held = store.live_run_in_scope(&red, "order-7").await.unwrap();
    assert_eq!(held, Some("r1".into()));
    let free = store.live_run_in_scope(&tenant.into(), "order-7").await;
    assert_eq!(free.unwrap(), None);
}

#[tokio::test]
async fn log_with_one_row_per_event_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    of_version(
        7,
        &path,
        "INSERT INTO streams VALUES ('run:a', 7, 2), ('run:b', 9, 0);
             INSERT INTO events VALUES (7, 0, 5, '{\"n\":0}'), (7, 1, 5, '{\"n\":1}'),
                 (7, 2, 6, '{\"n\":2}'), (9, 0, 7, '{}');",
    );
    let store = open(&path);
    let (a, new) = (StreamId::new("run:a"), StreamId::new("run:c"));
    must(
        &store,
        commit([append(&a, Some(2), 2), append(&new, None, 1)]),
    )
    .await;
    let events = store.events(&a, None, 10).await.unwrap().events;
    let read: Vec<(i64, &str)> = events.iter().map(|e| (e.at.0, &*e.body)).take(3).collect();
    let before = [(5, r#"{"n":0}"#), (5, r#"{"n":1}"#), (6, r#"{"n":2}"#)];
    assert_eq!(read, before);
    let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, [0, 1, 2, 3, 4], "and continues");
    assert_eq!(whole(&store, &new).await.len(), 1, "a stream of its own");
    let other = store
        .events(&StreamId::new("run:b"), None, 10)
        .await
        .unwrap();
    assert_eq!(other.events.len(), 1);
}

#[tokio::test]
async fn bodies_that_would_not_round_trip_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("tandem.db"));
    let stream = StreamId::new("run:a");
    let mut one = append(&stream, None, 1);
    one.events[0].body = "not\u{1e}JSON".to_owned();
    let refused = store.commit(commit([one])).await.unwrap_err();
    assert!(refused.to_string().contains("is not JSON"), "{refused}");
    assert!(whole(&store, &stream).await.is_empty());
}

#[tokio::test]
async fn effects_and_timers_without_lanes_are_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    of_version(
        8,
        &path,
        r#"INSERT INTO runs (run_id, tenant, workflow_id, definition, status, created_at)
               VALUES ('r1', 't1', 'w', 'd', 'running', 1);
           INSERT INTO webhooks (webhook, tenant, body) VALUES ('wh', 't2', '{}');
           INSERT INTO outbox
               (effect, stream, kind, body, available_at, attempts, owner, leased_until)
           VALUES ('e1', 'run:r1', 'http', '{}', 5, 0, NULL, NULL),
                  ('e2', 'run:r1', 'continue', '{}', 5, 3, 'dead', 7),
                  ('e3', 'webhook:wh', 'webhook', 'wh', 5, 0, NULL, NULL);
           INSERT INTO timers VALUES ('run:r1', '{"k":"run_deadline"}', 9);"#,
    );
    let store = open(&path);
    let mut found = Vec::new();
    for class in WorkClass::ALL {
        let lanes = store.due_lanes(lanes_due(class, NOW)).await.unwrap();
        for DueLane { lane, due } in lanes {
            let request = LeaseRequest {
                lease: LeaseId::new("me", 1),
                now: NOW,
                until: later(60),
                lane_limits: vec![(lane.clone(), due)],
            };
            for entry in store.lease(request).await.unwrap() {
                found.push((class, lane.tenant.to_string(), entry.effect.to_string()));
            }
        }
    }
    let expected = [
        (WorkClass::Internal, "t1", "e2"),
        (WorkClass::Call, "t1", "e1"),
        (WorkClass::Delivery, "t2", "e3"),
    ];
    let expected = expected.map(|(class, tenant, effect)| (class, tenant.into(), effect.into()));
    assert_eq!(found, expected);
    assert_eq!(store.next_timer().await.unwrap(), Some(Timestamp(9)));
    assert_eq!(store.count_parked().await.unwrap(), 0);
}

#[tokio::test]
async fn store_without_conversations_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    of_version(
        14,
        &path,
        "INSERT INTO idempotency (key, digest, status, body, recorded_at)
         VALUES ('k1', 'digest', 201, '{}', 1), ('k2', 'digest', 201, '{}', 9);",
    );
    let store = open(&path);
    let key = IdempotencyKey("k1".into());
    let stored = store.idempotency_record(&key).await.unwrap();
    let expected = IdempotencyRecord {
        recorded_at: Timestamp(1),
        ..answer()
    };
    assert_eq!(stored, Some(expected));
    let expired = store.expire_idempotency(Timestamp(5), 10).await.unwrap();
    assert_eq!(expired, 1, "responses of earlier versions expire");
    must(&store, conversation_started("t1", "s1")).await;
    assert!(conversations_as_text(&store, "t1").await.contains("e-s1"));
}
