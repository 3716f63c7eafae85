//! Databases that lost confirmed commits, databases with two names, and file permissions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_record::RunId;
use tandem_store::battery::sample::{must, row, started};
use tandem_store::{Fault, Store};
use tandem_store_sqlite::{ExportSelection, Options, SqliteStore, backup, export, restore};
use tempfile::TempDir;

const FILES: [&str; 4] = ["", "-wal", ".lock", ".marker"];

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Options::default()).unwrap())
}

#[track_caller]
fn refused(path: &Path, code: &str) -> Fault {
    match SqliteStore::open(path, Options::default()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(fault) => {
            assert_eq!(fault.code, code, "{fault}");
            assert!(!fault.retryable, "{fault}");
            fault
        }
    }
}

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The files of a store as a crash would leave them, without those named.
fn crashed(path: &Path, without: &[&str]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("tandem.db");
    for ending in FILES.iter().filter(|ending| !without.contains(ending)) {
        std::fs::copy(with(path, ending), with(&copy, ending)).unwrap();
    }
    (directory, copy)
}

/// A store whose last run is only in the write-ahead log.
async fn in_use(path: &Path) -> Arc<dyn Store> {
    let store = open(path);
    must(&store, started(row("t1", "before"))).await;
    store.close().await;
    let store = open(path);
    must(&store, started(row("t1", "after"))).await;
    store
}

#[tokio::test]
async fn a_crash_leaves_a_store_that_opens() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = in_use(&path).await;
    let (_directory, copy) = crashed(&path, &[]);
    let again = open(&copy);
    let run = again.run_of_any_tenant(&RunId::new("after")).await.unwrap();
    assert!(run.is_some(), "confirmed data is there");
    store.close().await;
}

#[tokio::test]
async fn removed_write_ahead_log_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = in_use(&path).await;
    let (_directory, copy) = crashed(&path, &["-wal"]);
    let fault = refused(&copy, "data_missing");
    for word in ["lost commits", "write-ahead log", "tandem.db.marker"] {
        assert!(fault.message.contains(word), "{word}: {fault}");
    }
    store.close().await;
}

#[tokio::test]
async fn truncated_write_ahead_log_is_detected_and_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = in_use(&path).await;
    let (_directory, copy) = crashed(&path, &[]);
    let log = with(&copy, "-wal");
    // Its header and less than one page.
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, &whole[..100]).unwrap();
    let before = std::fs::read(&copy).unwrap();
    refused(&copy, "data_missing");
    assert_eq!(std::fs::read(&log).unwrap(), whole[..100]);
    assert!(before == std::fs::read(&copy).unwrap(), "the file changed");
    std::fs::write(&log, &whole).unwrap();
    let again = open(&copy);
    assert!(
        again
            .run_of_any_tenant(&RunId::new("after"))
            .await
            .unwrap()
            .is_some()
    );
    store.close().await;
}

/// Neither copy is made, and the files stay as they are.
#[track_caller]
fn copies_refused(path: &Path, word: &str) {
    let saved = path.with_file_name("saved.db");
    std::fs::write(&saved, "a good backup").unwrap();
    // SQLite makes an empty write-ahead log where there is none.
    let files = || FILES.map(|ending| std::fs::read(with(path, ending)).unwrap_or_default());
    let before = files();
    let mut exported = Vec::new();
    let export = export(
        path,
        &ExportSelection::default(),
        &|_| None,
        &mut exported,
        &mut |_, _| {},
    );
    let backup = backup(path, &saved, true, &mut |_, _| {});
    for fault in [backup.unwrap_err(), export.unwrap_err()] {
        assert_eq!(fault.code, "data_missing", "{fault}");
        assert!(fault.message.contains(word), "{fault}");
    }
    assert!(exported.is_empty());
    assert_eq!(std::fs::read(&saved).unwrap(), b"a good backup");
    assert!(before == files(), "the files changed");
}

#[tokio::test]
async fn store_that_lost_commits_is_neither_copied_nor_exported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = in_use(&path).await;
    let (_removed, removed) = crashed(&path, &["-wal"]);
    copies_refused(&removed, "lost commits");
    let (_cut, cut) = crashed(&path, &[]);
    let whole = std::fs::read(with(&cut, "-wal")).unwrap();
    std::fs::write(with(&cut, "-wal"), &whole[..100]).unwrap();
    copies_refused(&cut, "lost commits");
    let (_emptied, emptied) = crashed(&path, &["-wal"]);
    std::fs::write(&emptied, "").unwrap();
    copies_refused(&emptied, "is empty");
    std::fs::remove_file(&emptied).unwrap();
    copies_refused(&emptied, "is missing");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn store_in_use_is_copied_whatever_its_marker_says_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = in_use(&path).await;
    let writer = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for n in 0..600 {
                must(&store, started(row("t1", &format!("r{n}")))).await;
                store.ping().await.unwrap();
            }
        }
    });
    let saved = directory.path().join("saved.db");
    let mut copies = 0;
    while !writer.is_finished() || copies == 0 {
        backup(&path, &saved, true, &mut |_, _| {}).unwrap();
        copies += 1;
    }
    writer.await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn marker_without_a_claim_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = in_use(&path).await;
    // A power cut can leave it so: the server starts, a copy that nobody can vouch for is not made.
    for content in ["", "\0\0\0\0", "x\n"] {
        let (_directory, copy) = crashed(&path, &[]);
        std::fs::write(with(&copy, ".marker"), content).unwrap();
        copies_refused(&copy, "marker cannot be read");
        open(&copy).close().await;
        backup(&copy, &copy.with_file_name("new.db"), false, &mut |_, _| {}).unwrap();
        // An empty database is refused with any marker.
        std::fs::write(with(&copy, ".marker"), content).unwrap();
        std::fs::write(&copy, "").unwrap();
        refused(&copy, "data_missing");
    }
    store.close().await;
}

#[cfg(unix)]
#[test]
fn dangling_link_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    for target in ["nowhere/other.db", "other.db", "tandem.db"] {
        std::os::unix::fs::symlink(target, &path).unwrap();
        let fault = refused(&path, "io");
        for word in ["symbolic link", target, "tandem.db is"] {
            assert!(fault.message.contains(word), "{word}: {fault}");
        }
        std::fs::remove_file(&path).unwrap();
    }
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 0, "nothing was made");
}

#[tokio::test]
async fn emptied_or_deleted_database_is_not_recreated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    in_use(&path).await.close().await;
    std::fs::write(&path, "").unwrap();
    let fault = refused(&path, "data_missing");
    assert!(fault.message.contains("is empty"), "{fault}");
    std::fs::remove_file(&path).unwrap();
    let fault = refused(&path, "data_missing");
    assert!(fault.message.contains("is missing"), "{fault}");
    assert!(!path.exists(), "no new file was created");
    // The operator confirms the loss by removing the marker.
    std::fs::remove_file(with(&path, ".marker")).unwrap();
    open(&path).close().await;
}

#[tokio::test]
async fn old_copy_is_rejected_and_restored_backup_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let saved = directory.path().join("saved.db");
    open(&path).close().await;
    backup(&path, &saved, false, &mut |_, _| {}).unwrap();
    in_use(&path).await.close().await;
    std::fs::copy(&saved, &path).unwrap();
    let fault = refused(&path, "data_missing");
    assert!(fault.message.contains("older copy"), "{fault}");
    std::fs::remove_file(&path).unwrap();
    restore(&saved, &path, &mut |_, _| {}).unwrap();
    open(&path).close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_an_open_store_does_not_open_it_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let store = in_use(&path).await;
    let symbolic = directory.path().join("symbolic.db");
    std::os::unix::fs::symlink(&path, &symbolic).unwrap();
    refused(&symbolic, "locked");
    let elsewhere = tempfile::tempdir().unwrap();
    let hard = elsewhere.path().join("hard.db");
    if std::fs::hard_link(&path, &hard).is_ok() {
        let expected = if cfg!(target_os = "linux") {
            "locked"
        } else {
            "hard_linked"
        };
        refused(&hard, expected);
    }
    store.ping().await.expect("the first is not affected");
    store.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn symbolic_link_opens_the_store_and_hard_link_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    in_use(&path).await.close().await;
    let symbolic = directory.path().join("symbolic.db");
    std::os::unix::fs::symlink(&path, &symbolic).unwrap();
    let store = open(&symbolic);
    assert!(
        store
            .run_of_any_tenant(&RunId::new("after"))
            .await
            .unwrap()
            .is_some()
    );
    refused(&path, "locked");
    store.close().await;
    let hard = directory.path().join("hard.db");
    std::fs::hard_link(&path, &hard).unwrap();
    for name in [&path, &hard] {
        refused(name, "hard_linked");
        let saved = directory.path().join("saved.db");
        let fault = backup(name, &saved, false, &mut |_, _| {}).unwrap_err();
        assert_eq!(fault.code, "hard_linked", "{fault}");
    }
    std::fs::remove_file(&hard).unwrap();
    open(&path).close().await;
}

#[cfg(unix)]
mod modes {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn store_files_are_readable_by_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tandem.db");
        let store = in_use(&path).await;
        for ending in FILES.into_iter().chain(["-shm"]) {
            assert_eq!(mode(&with(&path, ending)), 0o600, "{ending}");
        }
        let saved = directory.path().join("saved.db");
        backup(&path, &saved, false, &mut |_, _| {}).unwrap();
        assert_eq!(mode(&saved), 0o600);
        store.close().await;
    }

    #[tokio::test]
    async fn file_permissions_are_restricted_at_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tandem.db");
        open(&path).close().await;
        for ending in ["", ".lock", ".marker"] {
            let wide = std::fs::Permissions::from_mode(0o664);
            std::fs::set_permissions(with(&path, ending), wide).unwrap();
        }
        let store = in_use(&path).await;
        for ending in FILES.into_iter().chain(["-shm"]) {
            assert_eq!(mode(&with(&path, ending)), 0o600, "{ending}");
        }
        store.close().await;
    }
}
