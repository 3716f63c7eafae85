//! Backups and exports: everything is restored, and data that does not fit is refused.

#[path = "backup_and_export/content.rs"]
mod content;
#[path = "earlier_versions/export.rs"]
mod earlier_export;

use content::{audit_signer, dump_as_text, fill, question};
use earlier_export::of_version_8;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_record::{MemoryBase, MemoryOrigin, RunId, Seq, StreamId, TenantId};
use tandem_store::battery::sample::{
    NOW, append, commit, conversation_changes, conversations_as_text, must, row, session_row,
    started,
};
use tandem_store::{
    ConversationChange, InterruptFilter, MemoryQuery, MemoryRow, MemorySegment, MemoryView, Page,
    Store,
};
use tandem_store_sqlite::{
    ExportSelection, Options, OriginSource, SqliteStore, backup, export, import, restore, storage,
};

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Options::default()).expect("the database opens"))
}

/// In these tests the first event of a run contains its memory origin.
fn origin(source: OriginSource<'_>) -> Option<MemoryOrigin> {
    match source {
        OriginSource::FirstEvent(text) | OriginSource::Tombstone(text) => {
            serde_json::from_str(text).ok()
        }
    }
}

struct TestStores {
    directory: tempfile::TempDir,
}

impl TestStores {
    async fn new() -> (Self, Arc<dyn Store>) {
        let stores = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let store = open(&stores.path("tandem.db"));
        fill(&store).await;
        (stores, store)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn export(&self, name: &str, selection: &ExportSelection) -> PathBuf {
        let path = self.path(name);
        let mut file = File::create(&path).unwrap();
        export(
            &self.path("tandem.db"),
            selection,
            &origin,
            &mut file,
            &mut |_, _| {},
        )
        .unwrap();
        path
    }

    fn import(&self, file: &str, to: &str) -> Result<u64, &'static str> {
        let read = import(&self.path(file), &self.path(to), &mut |_, _| {});
        read.map(|counts| counts.runs).map_err(|fault| fault.code)
    }
}

#[tokio::test]
async fn a_backup_is_taken_beside_the_writer_and_restored() {
    let (stores, store) = TestStores::new().await;
    let before = dump_as_text(&store).await;
    let (from, copy) = (stores.path("tandem.db"), stores.path("copy.db"));
    backup(&from, &copy, false, &mut |_, _| {}).unwrap();
    must(&store, started(row("t1", "later"))).await;
    let refused = backup(&from, &copy, false, &mut |_, _| {}).unwrap_err();
    assert_eq!(refused.code, "target_exists");
    let refused = backup(&copy, &from, true, &mut |_, _| {}).unwrap_err();
    assert_eq!(refused.code, "locked", "never over a store in use");
    let refused = restore(&copy, &from, &mut |_, _| {}).unwrap_err();
    assert_eq!(refused.code, "locked");

    let again = stores.path("again.db");
    restore(&copy, &again, &mut |_, _| {}).unwrap();
    let refused = restore(&copy, &again, &mut |_, _| {}).unwrap_err();
    assert_eq!(refused.code, "target_exists");
    let restored = open(&again);
    assert_eq!(dump_as_text(&restored).await, before);
    assert!(
        audit_signer(&restored)
            .verify(0, u64::MAX)
            .await
            .unwrap()
            .is_valid()
    );
    let later = restored.run(&"t1".into(), &"later".into()).await.unwrap();
    assert_eq!(later, None, "what came after the backup is not in it");

    fs::write(stores.path("junk.db"), "not a database").unwrap();
    let junk = backup(
        &stores.path("junk.db"),
        &stores.path("x.db"),
        false,
        &mut |_, _| {},
    );
    assert_eq!(junk.unwrap_err().code, "corrupt");
    assert!(!stores.path("x.db").exists() && !stores.path("x.db.part").exists());
}

#[tokio::test]
async fn full_import_needs_an_empty_store() {
    let (stores, store) = TestStores::new().await;
    let before = dump_as_text(&store).await;
    stores.export("all.ndjson", &ExportSelection::default());
    assert_eq!(stores.import("all.ndjson", "new.db"), Ok(3));
    let moved = open(&stores.path("new.db"));
    assert_eq!(dump_as_text(&moved).await, before);
    assert!(
        audit_signer(&moved)
            .verify(0, u64::MAX)
            .await
            .unwrap()
            .is_valid()
    );
    must(&moved, started(row("t1", "next"))).await;
    // What follows from the rows was rebuilt: the session moves between the lists.
    let mut ended = session_row("t1", "s1");
    ended.ended_at = Some(NOW);
    must(
        &moved,
        conversation_changes([ConversationChange::PutSession(ended)]),
    )
    .await;
    moved.purge_session(&"s1".into(), None).await.unwrap();
    assert!(!conversations_as_text(&moved, "t1").await.contains("s1"));
    assert_eq!(stores.import("all.ndjson", "new.db"), Err("locked"));
    moved.close().await;
    assert_eq!(
        stores.import("all.ndjson", "new.db"),
        Err("store_not_empty")
    );
}

#[tokio::test]
async fn selected_runs_import_into_a_store_without_them() {
    let (stores, store) = TestStores::new().await;
    let one = ExportSelection {
        runs: vec!["r1".into()],
        tenant: None,
    };
    let file = stores.export("one.ndjson", &one);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("s3cret"), "a run's export contains no key");
    assert!(text.contains("run:r2"), "it contains the child run");
    assert!(!text.contains("run:r3"));
    let other = open(&stores.path("other.db"));
    must(&other, started(row("t1", "own"))).await;
    other.close().await;
    assert_eq!(stores.import("one.ndjson", "other.db"), Ok(2));
    assert_eq!(
        stores.import("one.ndjson", "other.db"),
        Err("target_exists")
    );
    let other = open(&stores.path("other.db"));
    for run in ["r1", "r2", "own"] {
        let id = RunId::new(run);
        let theirs = other.run(&"t1".into(), &id).await.unwrap();
        assert!(theirs.is_some(), "{run}");
    }
    assert_eq!(other.memory_position().await.unwrap(), 3);
    assert!(
        audit_signer(&other)
            .verify(0, u64::MAX)
            .await
            .unwrap()
            .is_valid()
    );
    let audit_head = other.audit_head().await.unwrap().unwrap();
    assert_eq!(audit_head.seq, 2, "each imported run has an entry");
    // A store with its own memory cannot take the memory of another.
    other.close().await;
    let two = ExportSelection {
        runs: vec!["r3".into()],
        tenant: None,
    };
    stores.export("two.ndjson", &two);
    assert_eq!(
        stores.import("two.ndjson", "other.db"),
        Err("store_not_empty")
    );
    drop(store);
}

#[tokio::test]
async fn damaged_export_is_rejected_before_any_write() {
    let (stores, _store) = TestStores::new().await;
    let file = stores.export("all.ndjson", &ExportSelection::default());
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without = |skip: usize| -> String {
        let remaining = lines.iter().enumerate().filter(|(n, _)| *n != skip);
        remaining.map(|(_, line)| format!("{line}\n")).collect()
    };
    for (name, damaged) in [
        ("cut off", text[..text.len() / 2].to_owned()),
        ("without an end", without(lines.len() - 1)),
        ("without a line", without(3)),
        ("without a title", without(0)),
        (
            "another table",
            text.replacen("{\"events\":", "{\"sqlite_schema\":", 1),
        ),
        ("another column", text.replacen("\"at\":", "\"ta\":", 1)),
        ("nothing", String::new()),
    ] {
        fs::write(stores.path("bad.ndjson"), damaged).unwrap();
        assert_eq!(
            stores.import("bad.ndjson", "new.db"),
            Err("export_unreadable"),
            "{name}"
        );
        assert!(!stores.path("new.db").exists(), "{name}");
    }
    let newer = text.replacen("\"schema\":", "\"schema\":9", 1);
    fs::write(stores.path("bad.ndjson"), newer).unwrap();
    assert_eq!(stores.import("bad.ndjson", "new.db"), Err("newer_schema"));
    let missing = ExportSelection {
        runs: vec!["r9".into()],
        tenant: None,
    };
    let none = export(
        &stores.path("tandem.db"),
        &missing,
        &origin,
        &mut Vec::new(),
        &mut |_, _| {},
    );
    assert_eq!(none.unwrap_err().code, "not_found");
}

fn write(run: &str, seq: u64, scope: &str, key: &str, body: Option<&str>) -> MemoryRow {
    MemoryRow {
        tenant: "t1".into(),
        scope: scope.into(),
        memory_ref: "notes".into(),
        key: key.into(),
        run: RunId::new(run),
        seq: Seq(seq),
        body: body.map(str::to_owned),
    }
}

/// Starts a run with this memory origin, with its writes.
async fn start_run_with_memory(
    store: &Arc<dyn Store>,
    run: &str,
    forked: Option<&MemoryOrigin>,
    memory: Vec<MemoryRow>,
) -> MemoryOrigin {
    let now = store.memory_position().await.unwrap();
    let from = MemoryOrigin {
        scope: "s".into(),
        // A fork continues from where its source started.
        start: forked.map_or(now, |source| source.start),
        base: forked.map(|_| MemoryBase {
            run: RunId::new("source"),
            below: Seq(5),
            fork: true,
        }),
    };
    let mut begin = started(row("t1", run));
    begin.appends[0].events[0].body = serde_json::to_string(&from).unwrap();
    begin.memory = memory;
    must(store, begin).await;
    from
}

#[tokio::test]
async fn single_run_export_contains_only_its_visible_memory() {
    let (stores, store) = TestStores::new().await;
    let before = vec![
        write("old", 1, "s", "a", Some("1")),
        write("old", 2, "s", "gone", Some("1")),
        write("old", 3, "s", "gone", None),
        write("old", 4, "elsewhere", "a", Some("\"not theirs\"")),
    ];
    start_run_with_memory(&store, "old", None, before).await;
    let own = vec![
        write("source", 3, "s", "a", Some("2")),
        write("source", 5, "s", "b", Some("3")),
    ];
    let source = start_run_with_memory(&store, "source", None, own).await;
    let since = vec![
        write("later", 1, "s", "a", Some("\"too late\"")),
        write("later", 2, "s", "b", None),
    ];
    start_run_with_memory(&store, "later", None, since).await;
    let forked = vec![write("fork", 6, "s", "c", Some("4"))];
    start_run_with_memory(&store, "fork", Some(&source), forked).await;

    let one = ExportSelection {
        runs: vec!["fork".into()],
        tenant: None,
    };
    let file = stores.export("fork.ndjson", &one);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("run:source"), "the run it continues");
    assert!(
        !text.contains("run:later") && !text.contains("too late"),
        "{text}"
    );
    assert!(!text.contains("not theirs"));
    assert_eq!(stores.import("fork.ndjson", "new.db"), Ok(2));
    let moved = open(&stores.path("new.db"));
    let segment = |run: &str, below: Option<u64>| MemorySegment {
        run: RunId::new(run),
        below: below.map(Seq),
        applies_deletions: false,
    };
    for segments in [
        vec![],
        vec![segment("source", Some(4))],
        vec![segment("source", None)],
        vec![segment("source", Some(5)), segment("fork", Some(6))],
        vec![segment("source", Some(5)), segment("fork", None)],
    ] {
        let view = MemoryView {
            tenant: "t1".into(),
            scope: "s".into(),
            start: source.start,
            segments,
        };
        let query = MemoryQuery::default();
        let then = store.memory_entries(&view, &query).await.unwrap();
        let now = moved.memory_entries(&view, &query).await.unwrap();
        assert_eq!(then, now, "{view:?}");
        assert!(!then.is_empty());
    }
    assert_eq!(
        moved.memory_position().await.unwrap(),
        store.memory_position().await.unwrap(),
        "the next write comes after"
    );
    let tenant = TenantId::new("t1");
    let count = moved.memory_count(&tenant, "s", "notes", NOW, 9);
    assert_eq!(count.await.unwrap(), 3, "a, b and c");
}

#[tokio::test]
async fn older_export_gets_workspace_memory_scopes() {
    let (stores, store) = TestStores::new().await;
    let mut run = row("t1", "red-run");
    run.workspace = Some("red".into());
    let mut begin = started(run);
    begin.memory.push(MemoryRow {
        tenant: "t1".into(),
        scope: "tenant".into(),
        memory_ref: "red-notes".into(),
        key: "k".into(),
        run: "red-run".into(),
        seq: Seq(0),
        body: Some(r#"{"written_at":1}"#.into()),
    });
    must(&store, begin).await;
    let file = stores.export("old.ndjson", &ExportSelection::default());
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, of_version_8(&text)).unwrap();
    assert_eq!(stores.import("old.ndjson", "new.db"), Ok(4));
    let moved = open(&stores.path("new.db"));
    let tenant = TenantId::new("t1");
    for (scope, there) in [("tenant", 0), ("workspace:red", 1)] {
        let count = moved.memory_count(&tenant, scope, "red-notes", NOW, 9);
        assert_eq!(count.await.unwrap(), there, "{scope}");
    }
    let of_run = InterruptFilter {
        stream: Some(StreamId::new("run:r1")),
        ..Default::default()
    };
    let page = Page {
        before: None,
        limit: 9,
    };
    let questions = moved.list_interrupts(&tenant, &of_run, &page).await;
    assert_eq!(questions.unwrap().rows[0].1, question("r1"));
}

#[tokio::test]
async fn storage_reports_sizes_and_next_purge() {
    let (stores, store) = TestStores::new().await;
    let retention_ms = |_: &TenantId, _: &_| 1000;
    let look = || storage(&stores.path("tandem.db"), &retention_ms).unwrap();
    let found = look();
    let counts = tandem_store::RunCounts {
        live: 2,
        purged: 1,
        ..Default::default()
    };
    assert_eq!(found.usage.runs, counts);
    assert_eq!(found.next_purge_at, None, "nothing ended");
    let runs = found.tables.iter().find(|table| table.name == "runs");
    let runs = runs.unwrap();
    assert_eq!((runs.rows, runs.more), (3, false));
    assert!(runs.bytes.unwrap() > 0);
    let mut ended = row("t1", "done");
    ended.ended_at = Some(NOW);
    let mut long = append(&StreamId::new("run:done"), None, 50);
    long.run = Some(ended);
    must(&store, commit([long])).await;
    let found = look();
    assert_eq!(found.next_purge_at, Some(NOW.plus_ms(1000)));
    assert_eq!(found.usage.runs.retained, 1);
    let first = &found.usage.largest_runs[0];
    assert_eq!((first.run_id.as_str(), first.events), ("done", 50));
    assert!(first.bytes > 50);
    assert_eq!(found.usage.workflows[0].events, 52);
}
