//! A copy of a database, also while a server writes to it. Everything confirmed before the copy
//! started is in it, and the writer never waits.
//!
//! The copy appears under its final name only when it is complete: it is written to a temporary
//! file, checked, synced and renamed.

use crate::connection;
use crate::fault;
use crate::lock::{Lock, check_no_hard_links};
use crate::marker::{self, Marker};
use crate::migrations::{CURRENT, Header};
use crate::private;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, Result};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_store::Fault;

/// Pages copied between two progress reports: 4 MiB.
const PAGES: i32 = 1024;
/// Retries while another program holds the file.
const WAITS: u32 = 500;
const WAIT: Duration = Duration::from_millis(10);

/// Called with the bytes done and the total.
pub type ProgressCallback<'a> = dyn FnMut(u64, u64) + 'a;

/// Copies the database `from` to the file `to` and gives its size. `replace` permits taking the
/// place of a file. Faults: `target_exists`, `locked` (a server uses what would be replaced), and those of
/// opening a database, `data_missing` with them.
pub fn backup(
    from: &Path,
    to: &Path,
    replace: bool,
    on_progress: &mut ProgressCallback<'_>,
) -> Result<u64, Fault> {
    if to.exists() && !replace {
        return Err(target_exists(to));
    }
    // A server's database has a lock file beside it. A backup has none, and gets none.
    let _lock = match Lock::path(to).exists() {
        true => Some(Lock::take(to)?),
        false => None,
    };
    copy(from, to, on_progress)
}

/// The reverse: makes the database `to` from a backup. A file with any content is not changed.
pub fn restore(
    from: &Path,
    to: &Path,
    on_progress: &mut ProgressCallback<'_>,
) -> Result<u64, Fault> {
    let _lock = Lock::take(to)?;
    if fs::metadata(to).is_ok_and(|file| file.len() > 0) {
        return Err(target_exists(to));
    }
    copy(from, to, on_progress)
}

fn copy(from: &Path, to: &Path, on_progress: &mut ProgressCallback<'_>) -> Result<u64, Fault> {
    let source = open_for_reading(from)?;
    let same = fs::canonicalize(from).ok() == fs::canonicalize(to).ok();
    if same && to.exists() {
        let message = format!("{} would be copied onto itself", to.display());
        return Err(Fault::permanent("target_exists", message));
    }
    let part = PartialFile::begin(to)?;
    let described = |error| fault::describe(&part.path, error);
    let mut copy = Connection::open(&part.path).map_err(described)?;
    fill(&source, &mut copy, on_progress).map_err(described)?;
    check(&copy, &part.path)?;
    copy.close().map_err(|(_, error)| described(error))?;
    part.finish(to)
}

/// Opens somebody's database to read it, beside whoever writes it. It must be one of ours, and must
/// not have lost commits.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, Fault> {
    let marker = Marker::of(path);
    // Before the database: a server beside us moves both.
    let claim = marker.claim();
    marker.check_file(path)?;
    if !path.exists() {
        let message = format!("{}: there is no such file", path.display());
        return Err(Fault::permanent("io", message));
    }
    check_no_hard_links(path)?;
    let wal = private::sibling_path(path, "-wal");
    let has_wal = fs::metadata(wal).is_ok_and(|file| file.len() > 0);
    let connection = connection::open_read_write(path)
        .or_else(|_| connection::read_only(path, &crate::Options::default()))?;
    let described = |error| fault::describe(path, error);
    connection::keep_wal(&connection, path)?;
    let header = Header::read(&connection).map_err(described)?;
    header.accept(path)?;
    marker.compare(claim, &connection, header.is_blank(), path)?;
    if header.is_blank() {
        let message = format!("{} is empty", path.display());
        return Err(Fault::permanent("corrupt", message));
    }
    if !has_wal {
        // It is the one that this connection made. Any other belongs to the next server.
        connection::remove_wal_on_close(&connection);
    }
    let only_read = connection.pragma_update(None, "query_only", true);
    only_read.map_err(described)?;
    Ok(connection)
}

/// The same for readers that know only the tables of this release.
pub(crate) fn open_current_for_reading(path: &Path) -> Result<Connection, Fault> {
    let connection = open_for_reading(path)?;
    let header = Header::read(&connection).map_err(|error| fault::describe(path, error))?;
    if header.version == CURRENT {
        return Ok(connection);
    }
    let message = format!(
        "{} has schema version {} and this release reads version {CURRENT}; starting a server of this \
         release on it once brings it up to date",
        path.display(),
        header.version
    );
    Err(Fault::permanent("older_schema", message))
}

/// One read transaction around all steps: without it the backup would start over with every commit
/// of the server.
fn fill(
    source: &Connection,
    copy: &mut Connection,
    on_progress: &mut ProgressCallback<'_>,
) -> Result<()> {
    let view = source.unchecked_transaction()?;
    let page: i64 = view.pragma_query_value(None, "page_size", |row| row.get(0))?;
    view.query_row("SELECT count(*) FROM streams", (), |_| Ok(()))?;
    let backup = Backup::new(&view, copy)?;
    let mut waits = 0;
    loop {
        match backup.step(PAGES)? {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ if waits >= WAITS => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
            _ => {
                waits += 1;
                std::thread::sleep(WAIT);
            }
        }
        let progress = backup.progress();
        let bytes = |pages: i32| u64::from(pages.unsigned_abs()) * page.unsigned_abs();
        let done = progress.pagecount - progress.remaining;
        on_progress(bytes(done), bytes(progress.pagecount));
    }
}

/// Checks every page and every index: a backup that is damaged when it is needed is useless.
fn check(copy: &Connection, path: &Path) -> Result<(), Fault> {
    let verdict: Result<String> = copy.query_row("PRAGMA integrity_check(1)", (), |row| row.get(0));
    match verdict
        .map_err(|error| fault::describe(path, error))?
        .as_str()
    {
        "ok" => Ok(()),
        damage => Err(Fault::permanent(
            "corrupt",
            format!("the copy is damaged ({damage}), so the source is, or the disk"),
        )),
    }
}

fn target_exists(path: &Path) -> Fault {
    let message = format!("{} exists and is not replaced", path.display());
    Fault::permanent("target_exists", message)
}

/// A file that gets its final name only when it is complete; only its owner may read it. Deleted
/// unless it is finished.
pub struct PartialFile {
    path: PathBuf,
}

impl PartialFile {
    /// Readable by its owner only, from the first byte on.
    pub fn begin(target: &Path) -> Result<Self, Fault> {
        let part = Self {
            path: with_suffix(target, ".part"),
        };
        part.clear();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        private::set_mode(&mut options);
        match options.open(&part.path) {
            Ok(_) => Ok(part),
            Err(error) => Err(io_fault(&part.path, &error)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file and gives it its final name. Returns its size.
    pub fn finish(self, target: &Path) -> Result<u64, Fault> {
        let moved = || -> std::io::Result<u64> {
            let file = File::open(&self.path)?;
            file.sync_all()?;
            // These belong to the replaced file, not to the new one.
            for ending in ["-wal", "-shm", marker::ENDING] {
                let _ = fs::remove_file(with_suffix(target, ending));
            }
            fs::rename(&self.path, target)?;
            let directory = target.parent().filter(|dir| !dir.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok(file.metadata()?.len())
        };
        moved().map_err(|error| io_fault(target, &error))
    }

    fn clear(&self) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(with_suffix(&self.path, ending));
        }
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        self.clear();
    }
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub(crate) fn io_fault(path: &Path, error: &std::io::Error) -> Fault {
    Fault::permanent("io", format!("{}: {error}", path.display()))
}
