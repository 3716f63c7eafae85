use super::*;

fn checkpointer(directory: &Path) -> Checkpointer {
    let path = directory.join("tandem.db");
    drop(connection::create(&path).unwrap());
    Checkpointer::start(&path).unwrap()
}

#[test]
fn commits_are_refused_when_the_wal_grew_too_large_after_a_failed_sync() {
    let directory = tempfile::tempdir().unwrap();
    let checkpointer = checkpointer(directory.path());
    let progress = &checkpointer.progress;
    progress.pages.store(WITHOUT_CHECKPOINT, Ordering::Relaxed);
    assert_eq!(checkpointer.before_commit(), Ok(()), "no sync failed");
    *progress.sync_failed.lock().unwrap() = true;
    let fault = checkpointer.before_commit().unwrap_err();
    assert_eq!((fault.code, fault.retryable), ("io", true));
    progress
        .pages
        .store(WITHOUT_CHECKPOINT - 1, Ordering::Relaxed);
    assert_eq!(checkpointer.before_commit(), Ok(()), "there is room");
}

#[test]
fn no_checkpoint_follows_a_failed_sync() {
    let directory = tempfile::tempdir().unwrap();
    let checkpointer = checkpointer(directory.path());
    let path = directory.path().join("tandem.db");
    let writer = connection::open_read_write(&path).unwrap();
    connection::keep_wal(&writer, &path).unwrap();
    let written = writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)");
    written.unwrap();
    let wal = directory.path().join("tandem.db-wal");
    let before = std::fs::read(&wal).unwrap();
    *checkpointer.progress.sync_failed.lock().unwrap() = true;
    assert_eq!(checkpointer.progress.passive(&writer), 0);
    checkpointer.finish(writer);
    assert_eq!(std::fs::read(&wal).unwrap(), before, "the WAL is kept");
}
