//! Registers the operator's workflow documents. An invalid document is reported and the others are
//! loaded; for an unchanged one only a hash is computed.

use crate::documents;
use crate::failure::Failure;
use futures_util::StreamExt as _;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tandem_record::{DefinitionHash, MAX_NESTING, TenantId, nests_deeper};
use tandem_runtime::{ChildReference, Permissions, Problem, RegisterError, Registration, Runtime};

/// Concurrent registrations; the store commits them together.
const AT_ONCE: usize = 64;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) registered: usize,
    pub(crate) unchanged: usize,
    pub(crate) refused: usize,
}

/// A document and where it came from.
pub(crate) struct Source {
    pub(crate) origin: String,
    pub(crate) text: String,
}

pub(super) async fn register_directories(
    runtime: &Runtime,
    directories: &[PathBuf],
) -> anyhow::Result<()> {
    if directories.is_empty() {
        return Ok(());
    }
    let mut sources = Vec::new();
    for directory in directories {
        let directory = directory.clone();
        sources.extend(tokio::task::spawn_blocking(move || read(&directory)).await??);
    }
    let total = sources.len();
    let loaded = register(runtime, sources).await?;
    let Loaded {
        registered,
        unchanged,
        refused,
    } = loaded;
    tracing::info!(
        registered,
        unchanged,
        refused,
        "{total} workflow documents: {registered} registered, {unchanged} unchanged, \
         {refused} refused"
    );
    Ok(())
}

fn read(directory: &Path) -> Result<Vec<Source>, Failure> {
    let unreadable = |path: &Path, error: std::io::Error| {
        Failure::new(
            format!("cannot read the workflows in {}: {error}", path.display()),
            "Name a readable directory with --workflows.",
        )
    };
    let found = documents::find(directory).map_err(|error| unreadable(directory, error))?;
    let files = found.documents;
    let mut sources = Vec::with_capacity(files.len());
    for file in files {
        let text = std::fs::read(&file).map_err(|error| unreadable(&file, error))?;
        sources.push(Source {
            origin: file.display().to_string(),
            // Text that is not UTF-8 is not JSON either and is refused as such.
            text: String::from_utf8_lossy(&text).into_owned(),
        });
    }
    Ok(sources)
}

/// Registers documents for every tenant.
pub(crate) async fn register(runtime: &Runtime, sources: Vec<Source>) -> anyhow::Result<Loaded> {
    // No tenant has this name, so it sees only shared documents.
    let everybody = runtime.workflows(&TenantId::new("").into()).await?;
    let known: HashMap<String, DefinitionHash> = everybody
        .into_iter()
        .map(|registered| (registered.workflow.to_string(), registered.hash))
        .collect();
    let mut loaded = Loaded::default();
    let mut origins: HashMap<String, String> = HashMap::new();
    let mut changed = Vec::new();
    for source in sources {
        if nests_deeper(source.text.as_bytes(), MAX_NESTING) {
            let reason = format!("nests deeper than {MAX_NESTING} levels");
            refuse(&mut loaded, &source.origin, &reason);
            continue;
        }
        let document: Value = match serde_json::from_str(&source.text) {
            Ok(document) => document,
            Err(error) => {
                refuse(&mut loaded, &source.origin, &format!("not JSON: {error}"));
                continue;
            }
        };
        let id = document["id"].as_str().unwrap_or_default().to_owned();
        if let Some(other) = origins.get(&id) {
            let reason = format!("the workflow id {id:?} is taken by {other}");
            refuse(&mut loaded, &source.origin, &reason);
            continue;
        }
        let hash = known.get(&id);
        if hash.is_some_and(|hash| *hash == tandem_engine::definition_hash(&document)) {
            loaded.unchanged += 1;
        } else {
            changed.push((source.origin.clone(), document));
        }
        origins.insert(id, source.origin);
    }
    let mut registrations = futures_util::stream::iter(changed)
        .map(|(origin, document)| async move {
            let permissions = Permissions::default();
            let outcome = runtime.register_with_report(None, &document, permissions);
            let outcome = outcome.await;
            (origin, outcome)
        })
        .buffer_unordered(AT_ONCE);
    while let Some((origin, outcome)) = registrations.next().await {
        match outcome {
            Ok(report) => {
                match report.registration {
                    Registration::Created | Registration::Changed => loaded.registered += 1,
                    Registration::Unchanged => loaded.unchanged += 1,
                }
                // Documents come in any order: a child may follow its parent.
                let children = report.unknown_children.iter();
                let children = children.filter(|c| !origins.contains_key(c.workflow.as_str()));
                let children: Vec<Problem> = children.map(ChildReference::unknown).collect();
                for warning in report.warnings.iter().chain(&children) {
                    tracing::warn!("{origin}: {}: {}", warning.path, warning.message);
                }
            }
            Err(RegisterError::Invalid(problems)) => {
                let first = problems.first();
                let first = first.map_or(String::new(), |p| format!("{}: {}", p.path, p.message));
                let errors = problems.iter().filter(|p| !p.warning).count();
                let more = match errors {
                    0 | 1 => String::new(),
                    n => format!(" (and {} more; `tandem check` shows all)", n - 1),
                };
                refuse(&mut loaded, &origin, &format!("{first}{more}"));
            }
            Err(RegisterError::Fault(fault)) => return Err(fault.into()),
        }
    }
    Ok(loaded)
}

fn refuse(loaded: &mut Loaded, origin: &str, reason: &str) {
    loaded.refused += 1;
    tracing::warn!("{origin} is not registered: {reason}");
}
