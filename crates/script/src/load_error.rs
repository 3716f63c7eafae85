//! What is wrong with a file of an agent, and where.

use crate::failure::ScriptFailure;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadError {
    /// Relative to the agent's folder.
    pub file: String,
    /// Counts from 1, as does `column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Says what to do.
    pub message: String,
}

impl LoadError {
    pub(crate) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self::at(file, None, message)
    }

    pub(crate) fn at(file: &str, position: Option<(u32, u32)>, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            message: message.into(),
        }
    }

    /// The failed evaluation of a file. The position may lie in a module that it imports.
    pub(crate) fn of_failure(file: &str, failure: ScriptFailure) -> Self {
        match failure.position {
            Some(position) => Self::at(
                &position.file,
                Some((position.line, position.column)),
                failure.message,
            ),
            None => Self::of_file(file, failure.message),
        }
    }
}
