//! Why a schema is not accepted.

/// A place in the schema and what is wrong there. The message says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaRefusal {
    /// JSON pointer below the schema.
    pub at: String,
    pub message: String,
}

impl SchemaRefusal {
    pub(crate) fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            message: message.into(),
        }
    }
}
