//! Recordings and files of a session. Events name them; their bytes are in streams of their own, so that whoever
//! reads a session's log does not read them.

use crate::MediaId;
use serde::{Deserialize, Serialize};

/// A recording or file whose bytes are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaRef {
    pub id: MediaId,
    pub content_type: String,
    /// How many.
    pub bytes: u64,
}

/// A text that a transport took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentMessage {
    /// The id that the network gave it, if it gives one.
    pub provider_message_id: Option<String>,
    /// The ids of the further messages of a text that was sent as several.
    pub further_ids: Vec<String>,
    /// The speech that was sent with it.
    pub speech: Option<MediaRef>,
    /// Why it was sent without speech although it was meant to be spoken.
    pub speech_error: Option<String>,
    /// The network's template that was sent instead of the text.
    pub template: Option<String>,
}
