//! Finds workflow documents on disk: a path is a file, or a directory with all `*.json` files below
//! it.

use std::io;
use std::path::{Path, PathBuf};

/// Maximum depth of directories; a deeper tree is a mistake.
const MAX_DEPTH: usize = 16;

/// The files of a path, in a fixed order.
pub(crate) fn find(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // Links to files are common in mounted configuration. Links to directories may form cycles
        // and are not followed.
        if entry.file_type()?.is_dir() {
            if depth < MAX_DEPTH {
                walk(&path, depth + 1, found)?;
            }
        } else if path.extension().is_some_and(|ext| ext == "json") && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_documents_below_a_directory_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("b/.hidden")).unwrap();
        for name in [
            "z.json",
            "b/a.json",
            "b/.hidden/x.json",
            "notes.txt",
            ".x.json",
        ] {
            std::fs::write(root.join(name), "{}").unwrap();
        }
        let found = find(root).unwrap();
        assert_eq!(found, [root.join("b/a.json"), root.join("z.json")]);
        assert_eq!(find(&root.join("notes.txt")).unwrap().len(), 1);
        assert!(find(&root.join("absent")).is_err());
    }
}
