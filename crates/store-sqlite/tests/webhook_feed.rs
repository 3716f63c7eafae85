//! Webhooks of an earlier schema version keep their pending deliveries, and a feed that is partly
//! expanded survives an export.

mod earlier_versions;

use earlier_versions::of_version;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tandem_store::battery::sample::{NOW, must};
use tandem_store::{Commit, Store, WebhookChange};
use tandem_store_sqlite::{ExportSelection, Options, SqliteStore, export, import};

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Options::default()).expect("the database opens"))
}

fn publish(body: &str) -> Commit {
    Commit {
        webhooks: vec![WebhookChange::Publish {
            tenant: "t1".into(),
            body: body.into(),
        }],
        ..Commit::default()
    }
}

#[tokio::test]
async fn pending_deliveries_of_version_12_stay_and_their_webhooks_receive_later_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    of_version(
        12,
        &path,
        r#"INSERT INTO webhooks (webhook, tenant, body, last_number, dropped)
               VALUES ('wh', 't1', '{}', 7, 2);
           INSERT INTO webhook_deliveries
               (webhook, number, run_id, seq, event_type, created_at, state, due, attempts)
           VALUES ('wh', 6, 'r1', 3, 'run.started', 5, 'delivered', NULL, 1),
                  ('wh', 7, 'r1', 4, 'run.completed', 5, 'pending', 5, 0);"#,
    );
    let store = open(&path);
    let due = store.due_deliveries(&"wh".into(), NOW, 9).await.unwrap();
    let due: Vec<_> = due.iter().map(|row| (row.number, row.seq.0)).collect();
    assert_eq!(due, [(7, 4)]);
    let found = store.webhook(&"wh".into()).await.unwrap().unwrap();
    assert_eq!((found.dropped, found.feed_start), (2, 0));
    must(&store, publish("{}")).await;
    let feed = store.webhook_feed(&"t1".into(), 9).await.unwrap();
    assert!(feed.rows[0].position > found.feed_start);
}

#[tokio::test]
async fn feed_and_its_progress_are_exported_and_imported() {
    let directory = tempfile::tempdir().unwrap();
    let [from, file, to] = ["a.db", "a.ndjson", "b.db"].map(|name| directory.path().join(name));
    let store = open(&from);
    must(&store, publish("1")).await;
    must(&store, publish("2")).await;
    let mut registered = Commit::default();
    registered.webhooks.push(WebhookChange::Put {
        webhook: "wh".into(),
        tenant: "t1".into(),
        body: "{}".into(),
    });
    must(&store, registered).await;
    must(&store, publish("3")).await;
    let mut progress = Commit::default();
    progress.webhooks.push(WebhookChange::Expand {
        tenant: "t1".into(),
        chunk_end: 3,
        through: Some("wh".into()),
    });
    must(&store, progress).await;
    let before = store.webhook_feed(&"t1".into(), 9).await.unwrap();
    store.close().await;
    let mut out = File::create(&file).unwrap();
    let everything = ExportSelection::default();
    export(&from, &everything, &|_| None, &mut out, &mut |_, _| {}).unwrap();
    import(&file, &to, &mut |_, _| {}).unwrap();
    let store = open(&to);
    assert_eq!(store.webhook_feed(&"t1".into(), 9).await.unwrap(), before);
    assert_eq!((before.head, before.rows.len()), (3, 3));
    let found = store.webhook(&"wh".into()).await.unwrap().unwrap();
    assert_eq!(found.feed_start, 2);
}
