//! `tandem.toml`. Unknown keys are refused: a misspelt setting must not be silently ignored.

use super::layer::Layer;
use crate::failure::Failure;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const DEFAULT_FILE: &str = "tandem.toml";

/// The file that was named, or the default one if it exists.
pub(super) fn load(named: Option<PathBuf>) -> Result<Layer, Failure> {
    let path = named.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => {
            Ok(Layer::default())
        }
        Err(error) => Err(Failure::new(
            format!("cannot read the configuration {}: {error}", path.display()),
            "Name a readable file with --config.",
        )),
    }
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Layer, Failure> {
    let layer = toml::from_str::<Layer>(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        // The parser's message has several lines; errors are one line.
        let reason = error.message().replace('\n', " ");
        Failure::new(
            format!("{}:{line}:{column}: {reason}", path.display()),
            "Correct the file, or name another with --config.",
        )
    })?;
    Ok(relative_to(path.parent().unwrap_or(Path::new("")), layer))
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// Paths in the file are relative to the file, not to the working directory.
fn relative_to(base: &Path, mut layer: Layer) -> Layer {
    let rebase = |paths: Option<Vec<PathBuf>>| {
        paths.map(|paths| paths.iter().map(|path| base.join(path)).collect())
    };
    layer.workflows = rebase(layer.workflows);
    layer.agents = rebase(layer.agents);
    layer.packs = rebase(layer.packs);
    let models = layer.models.iter_mut().flat_map(|m| m.values_mut());
    models.for_each(|model| model.relative_to(base));
    layer.store = layer.store.map(|store| {
        let path = store.strip_prefix("sqlite:");
        let path = path.map(|path| path.strip_prefix("//").unwrap_or(path));
        match path {
            Some(path) if !path.is_empty() && path != ":memory:" => {
                format!("sqlite:{}", base.join(path).display())
            }
            _ => store,
        }
    });
    layer
}
