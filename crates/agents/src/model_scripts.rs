//! The scripts of an agent's scripted models, from its configuration or from files in its folder.

use crate::summary::AgentFileError;
use std::path::Path;
use tandem_engine::agent::{AgentModel, AgentSpec, ScriptSource};
use tandem_nodes::Script;

/// Largest script that is read.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// Texts of scripts that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ModelScripts {
    pub(crate) chat: Option<String>,
    pub(crate) extraction: Option<String>,
}

impl ModelScripts {
    /// `root` is the agent's folder, `entry` its file.
    pub(crate) fn read(spec: &AgentSpec, root: &Path, entry: &str) -> Result<Self, AgentFileError> {
        let read = |model: Option<&AgentModel>, setting: &str| match model {
            Some(AgentModel::Scripted { script }) => text(script, root, entry, setting).map(Some),
            Some(AgentModel::Provider { .. }) | None => Ok(None),
        };
        Ok(Self {
            chat: read(spec.model.as_ref(), "model")?,
            extraction: read(spec.extraction_model.as_ref(), "extractionModel")?,
        })
    }
}

fn text(
    script: &ScriptSource,
    root: &Path,
    entry: &str,
    setting: &str,
) -> Result<String, AgentFileError> {
    let (file, text) = match script {
        ScriptSource::Inline(script) => (entry, Ok(script.to_string())),
        ScriptSource::File(file) => (file.as_str(), read_file(&root.join(file))),
    };
    let text = text.map_err(|why| {
        AgentFileError::new(file, format!("/{setting}/script cannot be read: {why}"))
    })?;
    match Script::parse(&text) {
        Ok(_) => Ok(text),
        Err(why) => Err(AgentFileError::new(
            file,
            format!("the script of /{setting}: {why}"),
        )),
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() || metadata.len() > MAX_SCRIPT_BYTES {
        return Err(format!("it is a file of at most {MAX_SCRIPT_BYTES} bytes"));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}
