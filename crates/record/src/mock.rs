//! A model call that a mock provider answers: its script, and its progress. Recorded with the call,
//! so that a restart neither loses nor repeats a chunk.

use crate::{ChunkEnd, ChunkPiece, ErrorInfo, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MockCall {
    pub script: MockScript,
    /// Chunks emitted so far.
    #[serde(rename = "said")]
    pub emitted: usize,
    /// When the next chunk or ending is due.
    pub due: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MockScript {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<ChunkPiece>,
    /// Delay before the first chunk.
    #[serde(default)]
    pub wait_ms: u64,
    /// Delay between two chunks.
    #[serde(default)]
    pub delay_ms: u64,
    pub ending: MockEnding,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MockEnding {
    Answer(ChunkEnd),
    Failure(ErrorInfo),
}

impl MockCall {
    /// A call at its start, or when it is repeated.
    pub fn begin(script: MockScript, now: Timestamp) -> Self {
        Self {
            emitted: 0,
            due: now.plus_ms(script.wait_ms),
            script,
        }
    }

    /// One more chunk was emitted.
    pub fn record_emitted(&mut self, at: Timestamp) {
        self.emitted += 1;
        self.due = at.plus_ms(self.script.delay_ms);
    }
}
