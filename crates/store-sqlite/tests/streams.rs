//! Rows that belong to streams: as earlier versions wrote them, and in an export and import.

mod earlier_versions;

use earlier_versions::of_version;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tandem_record::{OrderKey, StepId, StreamId, TenantId, TimerName, Timestamp};
use tandem_store::battery::sample::{
    NOW, append, commit, entry, lane, lanes_due, later, must, put,
};
use tandem_store::{
    DueTimer, InterruptFilter, LeaseId, LeaseRequest, OutboxEntry, Page, Store, WorkFailure,
};
use tandem_store_sqlite::{ExportSelection, Options, SqliteStore, export, import};

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Options::default()).expect("the database opens"))
}

async fn lease(store: &Arc<dyn Store>) -> Vec<OutboxEntry> {
    let due = store.due_lanes(lanes_due(lane().class, NOW)).await.unwrap();
    let request = LeaseRequest {
        lease: LeaseId::new("me", 1),
        now: NOW,
        until: later(60),
        lane_limits: due.into_iter().map(|due| (due.lane, due.due)).collect(),
    };
    store.lease(request).await.unwrap()
}

#[tokio::test]
async fn rows_of_runs_become_rows_of_streams() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    of_version(
        13,
        &path,
        r#"INSERT INTO runs (run_id, tenant, workflow_id, definition, status, created_at)
               VALUES ('r1', 't1', 'w', 'd', 'running', 1);
           INSERT INTO interrupts (interrupt, run_id, node, tenant, kind, created_at, body)
               VALUES ('i1', 'r1', 'gate', 't1', 'approval', 1, '{}'),
                      ('i2', 'r2', 'gate', 't1', 'approval', 1, '{}');
           INSERT INTO timers (stream, key, due) VALUES ('run:r1', '{"k":"run_deadline"}', 9);
           INSERT INTO outbox (effect, stream, kind, body, class, tenant, target, available_at, attempts)
               VALUES ('e1', 'run:r1', 'http', '{}', 1, 't1', '', 5, 0);"#,
    );
    let store = open(&path);
    let tenant = TenantId::new("t1");
    let filter = InterruptFilter {
        stream: Some(StreamId::new("run:r1")),
        ..InterruptFilter::default()
    };
    let page = Page {
        before: None,
        limit: 9,
    };
    let listed = store.list_interrupts(&tenant, &filter, &page).await;
    let rows = listed.unwrap().rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].1.run(), Some("r1".into()));
    assert_eq!(rows[0].1.step, StepId::new("gate"));
    let due = store.due_timers(NOW, 9).await.unwrap();
    let expected = DueTimer {
        stream: StreamId::new("run:r1"),
        name: TimerName::new(r#"{"k":"run_deadline"}"#),
        due: Timestamp(9),
        claimed_until: None,
        failures: 0,
    };
    assert_eq!(due, [expected]);
    let parked = WorkFailure {
        failures: 1,
        error: "no".into(),
        failed_at: NOW,
        retry_at: None,
    };
    store.record_timer_failure(&due[0], parked).await.unwrap();
    let listed = store.list_parked(Some(&tenant), 9).await.unwrap();
    assert_eq!(listed.len(), 1, "its tenant is known");
    let taken = lease(&store).await;
    assert_eq!(taken[0].effect.as_str(), "e1");
    assert_eq!(taken[0].order_key, None);
}

#[tokio::test]
async fn order_of_entries_survives_export_and_import() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = open(&path("tandem.db"));
    for (effect, stream) in [("e1", "conv:z"), ("e2", "conv:a"), ("e3", "conv:z")] {
        let stream = StreamId::new(stream);
        if effect != "e3" {
            must(&store, commit([append(&stream, None, 1)])).await;
        }
        let entry = OutboxEntry {
            stream,
            order_key: Some(OrderKey::new("to:ann")),
            ..entry(effect, NOW)
        };
        must(&store, put([entry])).await;
    }
    assert_eq!(lease(&store).await.len(), 1, "a lease is not exported");
    let mut file = File::create(path("all.ndjson")).unwrap();
    let all = ExportSelection::default();
    export(
        &path("tandem.db"),
        &all,
        &|_| None,
        &mut file,
        &mut |_, _| {},
    )
    .unwrap();
    import(&path("all.ndjson"), &path("new.db"), &mut |_, _| {}).unwrap();
    let moved = open(&path("new.db"));
    for expected in ["e1", "e2", "e3"] {
        let taken = lease(&moved).await;
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].effect.as_str(), expected);
        let done = tandem_store::OutboxChange::Remove(taken[0].effect.clone());
        let mut removal = put([]);
        removal.outbox.push(done);
        must(&moved, removal).await;
    }
}
