//! The files git tracks, or would track after `git add`.

use crate::process::{read, root};
use std::process::Command;

pub(crate) struct Tracked {
    pub(crate) all: Vec<File>,
}

pub(crate) struct File {
    /// Relative to the workspace, with `/`.
    pub(crate) path: String,
    /// Empty for a file that is not text.
    pub(crate) text: String,
}

impl Tracked {
    pub(crate) fn read() -> Result<Self, String> {
        let root = root();
        let mut git = Command::new("git");
        git.current_dir(&root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = read(&mut git)?;
        let all = listed
            .split('\0')
            .filter(|path| !path.is_empty())
            .filter_map(|path| {
                // A file that is deleted but not committed is listed and cannot be read.
                let bytes = std::fs::read(root.join(path)).ok()?;
                Some(File {
                    path: path.to_owned(),
                    text: String::from_utf8(bytes).unwrap_or_default(),
                })
            })
            .collect();
        Ok(Self { all })
    }

    pub(crate) fn ending(&self, suffix: &str) -> impl Iterator<Item = &File> {
        self.all
            .iter()
            .filter(move |file| file.path.ends_with(suffix))
    }

    pub(crate) fn find(&self, path: &str) -> Option<&File> {
        self.all.iter().find(|file| file.path == path)
    }
}
