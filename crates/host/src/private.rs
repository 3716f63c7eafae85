//! Files and directories that only their owner may read, whatever the umask.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file, or empties an existing one and removes the permissions of others.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    tighten(path, 0o600)?;
    Ok(file)
}

/// Creates the directory and its missing parents. An existing directory is not changed.
pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes the permissions of others, if there are any.
pub(crate) fn tighten(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = std::fs::metadata(path)?;
        // Permissions of a pipe or terminal are not changed.
        let ours = file.is_file() || file.is_dir();
        if ours && file.permissions().mode() & 0o077 != 0 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        }
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn created_files_are_readable_by_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("a/b");
        create_dir_all(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&directory.path().join("a")), 0o700);
        let file = inner.join("file");
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        create(&file).unwrap();
        assert_eq!(
            (mode(&file), std::fs::read(&file).unwrap()),
            (0o600, vec![])
        );
    }
}
