//! Finds agents in folders, and sees when their files change.
//!
//! Changes are found by looking at times and sizes of files. Notifications of the operating system do not
//! cross the border of many containers and network file systems; a look at a few hundred files costs less
//! than a millisecond.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files beside agents that are not agents.
const OTHER_FILES: [&str; 5] = [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "jsconfig.json",
    "deno.json",
];
const EXTENSIONS: [&str; 5] = ["ts", "js", "mjs", "json", "toml"];
/// Installed packages: noticed when a file that imports them changes.
const PACKAGES: &str = "node_modules";
/// Bounds of one look at an agent.
const MAX_FILES: usize = 5_000;
const MAX_DEPTH: usize = 8;

/// Where an agent lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentPlace {
    pub(crate) id: String,
    /// Its folder, or its only file.
    pub(crate) path: PathBuf,
}

impl AgentPlace {
    /// The agent at a path, whatever its name is.
    pub(crate) fn at(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = match path.is_dir() {
            true => path.file_name(),
            false => path.file_stem(),
        };
        Self {
            id: name.unwrap_or_default().to_string_lossy().into_owned(),
            path,
        }
    }

    /// Where paths in the agent's configuration begin.
    pub(crate) fn root(&self) -> PathBuf {
        match self.path.is_dir() {
            true => self.path.clone(),
            false => self.path.parent().map(PathBuf::from).unwrap_or_default(),
        }
    }
}

/// Every agent of the folders, in the order of the folders and then of their names.
pub(crate) fn agents(folders: &[PathBuf]) -> Vec<AgentPlace> {
    let mut places = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        let mut found: Vec<AgentPlace> = entries
            .filter_map(|entry| place(&entry.ok()?.path()))
            .collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        places.append(&mut found);
    }
    places
}

fn place(path: &Path) -> Option<AgentPlace> {
    let name = path.file_name()?.to_str()?;
    if name.starts_with('.') || name == PACKAGES {
        return None;
    }
    let id = if path.is_dir() {
        name
    } else {
        let (stem, extension) = name.rsplit_once('.')?;
        let is_agent = EXTENSIONS.contains(&extension)
            && !stem.ends_with(".d")
            && !OTHER_FILES.contains(&name);
        is_agent.then_some(stem)?
    };
    Some(AgentPlace {
        id: id.to_owned(),
        path: path.to_owned(),
    })
}

/// Times and sizes of the files of every agent, by its path.
pub(crate) type Snapshot = BTreeMap<PathBuf, FileStamps>;

/// Times and sizes of an agent's files. Equal means unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileStamps(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

pub(crate) fn snapshot(places: &[AgentPlace]) -> Snapshot {
    let stamps = |path: &Path| {
        let mut stamps = FileStamps::default();
        stamps.add(path, 0);
        stamps
    };
    let places = places.iter();
    places
        .map(|place| (place.path.clone(), stamps(&place.path)))
        .collect()
}

impl FileStamps {
    fn add(&mut self, path: &Path, depth: usize) {
        let Ok(metadata) = std::fs::metadata(path) else {
            return;
        };
        if !metadata.is_dir() {
            let stamp = (metadata.modified().ok(), metadata.len());
            self.0.insert(path.to_owned(), stamp);
            return;
        }
        let Ok(entries) = std::fs::read_dir(path) else {
            return;
        };
        for entry in entries.filter_map(Result::ok) {
            if self.0.len() >= MAX_FILES || depth >= MAX_DEPTH {
                return;
            }
            if entry.file_name() != PACKAGES {
                self.add(&entry.path(), depth + 1);
            }
        }
    }
}
