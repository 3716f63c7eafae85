//! Messages sent while a question stays unanswered.

use serde::{Deserialize, Serialize};

/// Reminders of one question.
pub const MAX_REMINDERS: usize = 5;

/// Sent that long after its question, unless an answer came before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reminder {
    pub after_ms: u64,
    pub text: String,
}
