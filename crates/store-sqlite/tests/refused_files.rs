//! Files the store does not open, and the errors for them.

use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use tandem_store::battery::sample::{must, row, started};
use tandem_store::{Fault, Maintenance, Store};
use tandem_store_sqlite::{Options, SqliteStore};

fn refused(path: &Path) -> Fault {
    match SqliteStore::open(path, Options::default()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(fault) => fault,
    }
}

#[track_caller]
fn is(fault: &Fault, code: &str, path: &Path) {
    assert_eq!(fault.code, code, "{fault}");
    assert!(!fault.retryable, "{fault}");
    let name = path.display().to_string();
    assert!(fault.message.contains(&name), "the file is named: {fault}");
}

/// A closed database with enough content to be damaged.
async fn filled(path: &Path) {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, Options::default()).unwrap());
    for n in 0..300 {
        must(&store, started(row("t1", &format!("r{n}")))).await;
    }
    store.close().await;
}

#[tokio::test]
async fn one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let first = SqliteStore::open(&path, Options::default()).unwrap();
    let fault = refused(&path);
    is(&fault, "locked", &path);
    assert!(fault.message.contains("tandem.db.lock"), "{fault}");
    first.ping().await.expect("the first is not affected");
    first.close().await;
    let second = SqliteStore::open(&path, Options::default());
    second
        .expect("a closed store releases its lock")
        .ping()
        .await
        .unwrap();
}

#[tokio::test]
async fn newer_schema_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    filled(&path).await;
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let fault = refused(&path);
    is(&fault, "newer_schema", &path);
    for version in ["99", "knows version"] {
        assert!(fault.message.contains(version), "{fault}");
    }
    assert!(before == std::fs::read(&path).unwrap(), "the file changed");
}

#[tokio::test]
async fn foreign_database_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine');")
        .unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let fault = refused(&path);
    is(&fault, "corrupt", &path);
    assert!(fault.message.contains("another program"), "{fault}");
    assert!(before == std::fs::read(&path).unwrap(), "the file changed");
}

#[tokio::test]
async fn non_sqlite_file_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    std::fs::write(&path, "this is a letter to a friend\n".repeat(500)).unwrap();
    is(&refused(&path), "corrupt", &path);
}

#[tokio::test]
async fn truncated_file_is_reported_corrupt() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    filled(&path).await;
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    is(&refused(&path), "corrupt", &path);
}

#[tokio::test]
async fn overwritten_page_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    filled(&path).await;
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    is(&refused(&path), "corrupt", &path);
}

#[test]
fn missing_directory_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("absent/tandem.db");
    is(&refused(&path), "io", &path);
}
