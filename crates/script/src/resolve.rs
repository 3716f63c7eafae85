//! What an import specifier stands for: a file of the agent, a file of an installed package, or the
//! built-in module.
//!
//! Paths are written with `/`, relative to the agent's folder; `../` is allowed once, because packages may
//! be installed next to the folder. Nothing above that is read.

use crate::package::Package;
use crate::source_set::BUILT_IN;
use std::path::{Path, PathBuf};

const EXTENSIONS: [&str; 5] = ["ts", "js", "mjs", "mts", "json"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    BuiltIn,
    /// Path of a file that exists.
    File(String),
}

pub(crate) struct Resolver {
    /// The agent's folder, or the folder of its only file.
    root: PathBuf,
    /// Whether files next to the agent's folder may be read.
    reads_parent: bool,
}

impl Resolver {
    pub(crate) fn new(root: &Path, reads_parent: bool) -> Self {
        Self {
            root: root.to_owned(),
            reads_parent,
        }
    }

    pub(crate) fn on_disk(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// `from` is the path of the importing file.
    pub(crate) fn resolve(&self, from: &str, specifier: &str) -> Result<Resolved, String> {
        if BUILT_IN.contains(&specifier) {
            return Ok(Resolved::BuiltIn);
        }
        if specifier.starts_with("./") || specifier.starts_with("../") {
            return self.relative(from, specifier);
        }
        if specifier.starts_with('/') || specifier.contains(':') || specifier.starts_with('#') {
            return Err(format!(
                "cannot import '{specifier}': only relative paths and packages can be imported; there is no Node API in the sandbox"
            ));
        }
        self.package(from, specifier)
    }

    fn relative(&self, from: &str, specifier: &str) -> Result<Resolved, String> {
        let Some(path) = self.join(parent(from), specifier) else {
            return Err(format!(
                "cannot import '{specifier}': it lies outside of the agents' folder"
            ));
        };
        self.file(&path)
            .map(Resolved::File)
            .ok_or_else(|| format!("cannot import '{specifier}': there is no file '{path}'"))
    }

    fn package(&self, from: &str, specifier: &str) -> Result<Resolved, String> {
        let split = match specifier.strip_prefix('@') {
            Some(scoped) => scoped
                .find('/')
                .and_then(|slash| scoped[slash + 1..].find('/').map(|at| slash + at + 2)),
            None => specifier.find('/'),
        };
        let (name, rest) = specifier.split_at(split.unwrap_or(specifier.len()));
        let folder = self
            .package_folders(from)
            .into_iter()
            .map(|folder| format!("{folder}node_modules/{name}"))
            .find(|folder| self.on_disk(folder).join("package.json").is_file());
        let Some(folder) = folder else {
            let place = if self.reads_parent {
                "the agent's folder or next to it"
            } else {
                "the folder of the agent's file"
            };
            return Err(format!(
                "the package '{name}' is not installed: run `npm install {name}` in {place}, or use a JSON Schema literal instead of a schema library"
            ));
        };
        let package = Package::read(&self.on_disk(&folder).join("package.json"))
            .map_err(|problem| format!("the package '{name}' cannot be used: {problem}"))?;
        let target = package
            .entry(rest.trim_start_matches('/'))
            .map_err(|problem| format!("cannot import '{specifier}': {problem}"))?;
        let path = self
            .join(&folder, &target)
            .filter(|path| path.starts_with(&folder))
            .and_then(|path| self.file(&path));
        path.map(Resolved::File).ok_or_else(|| {
            format!("cannot import '{specifier}': the package '{name}' has no file '{target}'")
        })
    }

    /// Folders that may hold `node_modules` for an importing file, nearest first. Each ends with `/`
    /// unless it is the agent's folder.
    fn package_folders(&self, from: &str) -> Vec<String> {
        let mut folders = Vec::new();
        let mut folder = parent(from);
        while !folder.is_empty() && folder != ".." {
            folders.push(format!("{folder}/"));
            folder = parent(folder);
        }
        folders.push(String::new());
        if self.reads_parent {
            folders.push("../".to_owned());
        }
        folders
    }

    /// `None` when the path leaves what may be read.
    fn join(&self, folder: &str, path: &str) -> Option<String> {
        let mut parts: Vec<&str> = Vec::new();
        for part in folder.split('/').chain(path.split('/')) {
            match part {
                "" | "." => {}
                ".." if parts.last().is_none_or(|last| *last == "..") => parts.push(part),
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        let above = parts.iter().filter(|part| **part == "..").count();
        (above <= usize::from(self.reads_parent)).then(|| parts.join("/"))
    }

    /// The file that a path without extension, a folder or a `.js` that is written as `.ts` stands for.
    fn file(&self, path: &str) -> Option<String> {
        let typescript = path.strip_suffix(".js").map(|stem| format!("{stem}.ts"));
        let with_extension = EXTENSIONS.iter().map(|end| format!("{path}.{end}"));
        let index = EXTENSIONS.iter().map(|end| format!("{path}/index.{end}"));
        std::iter::once(path.to_owned())
            .chain(typescript)
            .chain(with_extension)
            .chain(index)
            .find(|path| self.on_disk(path).is_file())
    }
}

pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
