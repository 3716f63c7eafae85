//! Encodes events for a stream and decodes them.

use serde::{Deserialize, Serialize};
use tandem_record::{Cause, Event, RecordedEvent};
use tandem_store::{Fault, StoredEvent};

/// An event as it is stored in a stream.
#[derive(Serialize)]
pub(crate) struct EncodedEvent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    c: &'a Option<Cause>,
    e: &'a Event,
}

#[derive(Deserialize)]
struct DecodedEvent {
    #[serde(default)]
    c: Option<Cause>,
    e: Event,
}

impl<'a> EncodedEvent<'a> {
    pub(crate) fn new(recorded: &'a RecordedEvent) -> Self {
        Self {
            c: &recorded.cause,
            e: &recorded.event,
        }
    }
}

pub(crate) fn decode(stored: &StoredEvent) -> Result<RecordedEvent, Fault> {
    let read: DecodedEvent = serde_json::from_str(&stored.body).map_err(|e| {
        Fault::permanent(
            "corrupt",
            format!(
                "event {} is unreadable: {e}; restore the store from a backup",
                stored.seq
            ),
        )
    })?;
    Ok(RecordedEvent {
        seq: stored.seq,
        at: stored.at,
        cause: read.c,
        event: read.e,
    })
}
