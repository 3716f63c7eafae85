//! A call of a model that a mock provider answers in place of one: what it will say, and how far it
//! has come. Recorded with the call, so that whoever goes on with it says neither more nor less.

use crate::{ChunkEnd, ChunkPiece, ErrorInfo, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MockCall {
    pub script: MockScript,
    /// Pieces told so far.
    #[serde(rename = "said")]
    pub emitted: usize,
    /// When the next thing happens.
    pub due: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MockScript {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<ChunkPiece>,
    /// Before the first thing happens.
    #[serde(default)]
    pub wait_ms: u64,
    /// Between two pieces.
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
    /// A call as it begins, or begins again.
    pub fn begin(script: MockScript, now: Timestamp) -> Self {
        Self {
            emitted: 0,
            due: now.plus_ms(script.wait_ms),
            script,
        }
    }

    /// One more piece was told.
    pub fn record_emitted(&mut self, at: Timestamp) {
        self.emitted += 1;
        self.due = at.plus_ms(self.script.delay_ms);
    }
}
