//! Paths of a store's files, and their permissions: only the owner may read them. SQLite gives the
//! write-ahead log and its index the mode of the database.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Limit of links followed when their target does not exist yet.
const MAX_LINKS: usize = 16;

/// The real path of a database with a suffix.
pub(crate) fn sibling_path(database: &Path, ending: &str) -> PathBuf {
    let mut name = real_path(database).into_os_string();
    name.push(ending);
    name.into()
}

/// As SQLite resolves it: links are followed.
fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = parent(&path).join(target);
    }
    let name = path.file_name().map(ToOwned::to_owned);
    match (fs::canonicalize(parent(&path)), name) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path,
    }
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Files created with these options are readable by their owner only, from the first byte on.
pub(crate) fn set_mode(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Creates the file if it does not exist.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    set_mode(&mut options);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Removes permissions of others from a store's files; older releases did not.
pub(crate) fn tighten(database: &Path) {
    for ending in ["", "-wal", "-shm", ".lock", ".marker"] {
        let path = sibling_path(database, ending);
        match tighten_one(&path) {
            Ok(false) => {}
            Ok(true) => tracing::warn!(
                "{} could be read by others; it is its owner's alone now",
                path.display()
            ),
            Err(error) => tracing::warn!(
                "{} can be read by others, and that cannot be changed: {error}",
                path.display()
            ),
        }
    }
}

#[cfg(unix)]
fn tighten_one(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(file) = fs::metadata(path) else {
        return Ok(false);
    };
    if file.permissions().mode() & 0o077 == 0 {
        return Ok(false);
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(true)
}

#[cfg(not(unix))]
fn tighten_one(_: &Path) -> io::Result<bool> {
    Ok(false)
}
