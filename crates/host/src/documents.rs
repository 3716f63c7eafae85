//! Finds workflow documents and agents on disk. A path is a file, or a directory with all `*.json` files
//! and all folders of agents below it. The files of an agent are no documents.

use std::io;
use std::path::{Path, PathBuf};
use tandem_script::is_agent_folder;

/// Maximum depth of directories; a deeper tree is a mistake.
const MAX_DEPTH: usize = 16;
/// Installed packages of agents.
const PACKAGES: &str = "node_modules";
/// Settings of other tools beside agents.
const OTHER_FILES: [&str; 5] = [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "jsconfig.json",
    "deno.json",
];

/// What a path stands for, in a fixed order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundFiles {
    pub(crate) documents: Vec<PathBuf>,
    /// Folders.
    pub(crate) agents: Vec<PathBuf>,
}

pub(crate) fn find(path: &Path) -> io::Result<FoundFiles> {
    let mut found = FoundFiles::default();
    if !std::fs::metadata(path)?.is_dir() {
        found.documents.push(path.to_owned());
        return Ok(found);
    }
    walk(path, 0, &mut found)?;
    found.documents.sort();
    found.agents.sort();
    Ok(found)
}

fn walk(dir: &Path, depth: usize, found: &mut FoundFiles) -> io::Result<()> {
    if is_agent_folder(dir) {
        found.agents.push(dir.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_other = OTHER_FILES.iter().any(|other| name == *other);
        if name.as_encoded_bytes().starts_with(b".") || name == PACKAGES || is_other {
            continue;
        }
        // Links to files are common in mounted configuration. Links to directories may form cycles
        // and are not followed.
        if entry.file_type()?.is_dir() {
            if depth < MAX_DEPTH {
                walk(&path, depth + 1, found)?;
            }
        } else if path.extension().is_some_and(|ext| ext == "json") && path.is_file() {
            found.documents.push(path);
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
        assert_eq!(
            found.documents,
            [root.join("b/a.json"), root.join("z.json")]
        );
        assert_eq!(found.agents, [""; 0].map(PathBuf::from));
        let named = find(&root.join("notes.txt")).unwrap();
        assert_eq!(named.documents.len(), 1);
        assert!(find(&root.join("absent")).is_err());
    }

    #[test]
    fn files_of_agents_are_no_documents() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (name, text) in [
            ("desk/agent.ts", ""),
            ("desk/script.json", "{}"),
            ("plain/agent.json", r#"{"prompt": "You are data."}"#),
            ("flows/agent.json", r#"{"id": "a workflow of this name"}"#),
            ("node_modules/zod/package.json", "{}"),
            ("tsconfig.json", "{}"),
        ] {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let found = find(root).unwrap();
        assert_eq!(found.agents, [root.join("desk"), root.join("plain")]);
        assert_eq!(found.documents, [root.join("flows/agent.json")]);
    }
}
