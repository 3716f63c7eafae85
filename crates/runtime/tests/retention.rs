//! Retention of ended runs by workflow and tenant, and the hash that a purged log leaves.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use tandem_record::{RunId, StreamId};
use tandem_runtime::Retention;
use tandem_store::{Audit, Maintenance, ReadLog, StoredRun};
use tandem_testkit::test_host::{TestHost, TestHostBuilder, new_run, tenant};
use tandem_testkit::{StoreConnection, wf};
use tokio::test;

const HOUR: i64 = 3600 * 1000;

async fn host() -> TestHost {
    let hours = |n: i64| (n * HOUR).unsigned_abs();
    let plan = TestHostBuilder {
        retention: Retention {
            default_ms: hours(1),
            tenants: [(tenant(), hours(3))].into(),
            workflows: [("brief".into(), hours(2)), ("long".into(), hours(9))].into(),
        },
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    for name in ["brief", "long", "other"] {
        let flow = wf(name).node("n", "core.noop", json!({}));
        host.register(flow).await;
    }
    host
}

async fn stored(host: &TestHost, run: &RunId) -> StoredRun {
    let found = host.runtime.find_run(&tenant(), run).await;
    found.expect("the store answers").expect("its row stays")
}

#[test(start_paused = true)]
async fn most_specific_retention_rule_applies() {
    let host = host().await;
    let mut runs = Vec::new();
    // More than one batch, so that runs with a longer retention lie between the others.
    for n in 0..200 {
        let workflow = ["long", "brief", "other"][n % 3];
        let run = host.runtime.create_run(new_run(workflow, json!({})), None);
        runs.push((workflow, run.await.expect("the run may start")));
    }
    for (hours, gone) in [
        (1, vec![]),
        (1, vec!["brief"]),
        (1, vec!["brief", "other"]),
        (7, vec!["brief", "long", "other"]),
    ] {
        let moved = host.runtime.advance_clock(hours * HOUR + 1).await;
        moved.expect("it moves");
        host.elapse(1_000).await;
        for (workflow, run) in &runs {
            let stored = stored(&host, run).await;
            let expected = gone.contains(workflow);
            assert_eq!(
                stored.tombstone.is_some(),
                expected,
                "{workflow} after {hours}"
            );
            assert_eq!(host.runtime.is_past_retention(&stored), expected);
        }
    }
    host.runtime.shutdown(Duration::ZERO).await;
}

#[test(start_paused = true)]
async fn ended_run_is_read_from_memory_until_it_is_purged() {
    let host = host().await;
    let run = host.create("brief", json!({})).await;
    let row = stored(&host, &run).await;
    let observe = async |row: &StoredRun| {
        let shown = host.runtime.observe_stored(row.clone()).await;
        shown.expect("the store answers").map(|shown| shown.view)
    };
    host.faults.set_connection(StoreConnection::Down);
    let from_memory = observe(&row).await.expect("it is retained");
    host.faults.set_connection(StoreConnection::Up);
    let from_log = host.runtime.observe_at(&row, row.head).await;
    let from_log = from_log.expect("the store answers").view;
    assert_eq!(format!("{from_memory:?}"), format!("{from_log:?}"));

    // Another process purges it.
    let purged = host.store.purge_run(&run, "{}", None).await;
    purged.expect("the store answers");
    let row = stored(&host, &run).await;
    assert!(observe(&row).await.is_none());
    host.runtime.shutdown(Duration::ZERO).await;
}

#[test(start_paused = true)]
async fn the_hash_of_a_removed_log_stays_in_tombstone_and_audit_log() {
    let host = host().await;
    let run = host.runtime.create_run(new_run("brief", json!({})), None);
    let run = run.await.expect("the run may start");
    let stream = StreamId::of_run(&run);
    let log = host.store.events(&stream, None, usize::MAX);
    let log = log.await.expect("the store answers").events;
    let mut hash = Sha256::new();
    for event in &log {
        let line = format!("{}\t{}\t{}\n", event.seq.0, event.at.0, event.body);
        hash.update(line);
    }
    let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    let expected = json!({"events": log.len(), "sha256": hex});

    let moved = host.runtime.advance_clock(3 * HOUR).await;
    moved.expect("it moves");
    host.elapse(1_000).await;
    let tombstone = stored(&host, &run).await.tombstone.expect("it is old");
    let tombstone: Value = serde_json::from_str(&tombstone).expect("it is JSON");
    assert_eq!(tombstone["log"], expected);
    let entries = host.store.audit_entries(0, 1000).await;
    let entries = entries.expect("the store answers");
    let entries_of_run: Vec<Value> = entries
        .iter()
        .map(|row| serde_json::from_slice(&row.body).expect("it is JSON"))
        .filter(|entry: &Value| entry["action"] == "run.purge")
        .collect();
    assert_eq!(entries_of_run.len(), 1, "once");
    assert_eq!(entries_of_run[0]["target"], run.as_str());
    assert_eq!(entries_of_run[0]["details"]["log"], expected);
    host.runtime.shutdown(Duration::ZERO).await;
}
