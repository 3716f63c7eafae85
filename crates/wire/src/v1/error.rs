//! The error envelope: exactly three keys.

use serde::Serialize;
use tandem_record::Object;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorEnvelope {
    pub error: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Object>,
}

impl ErrorEnvelope {
    pub fn new(error: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            message: message.into(),
            details: None,
        }
    }

    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        let details = self.details.get_or_insert_default();
        details.insert(key.to_owned(), value.into());
        self
    }
}
