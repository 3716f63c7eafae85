//! Encodes events for a stream and decodes them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tandem_record::{Cause, Recorded};
use tandem_store::{Fault, NewEvent, StoredEvent};

/// An event as it is stored in a stream.
#[derive(Serialize)]
pub(crate) struct EncodedEvent<'a, E> {
    #[serde(skip_serializing_if = "Option::is_none")]
    c: &'a Option<Cause>,
    e: &'a E,
}

#[derive(Deserialize)]
struct DecodedEvent<E> {
    #[serde(default)]
    c: Option<Cause>,
    e: E,
}

impl<'a, E> EncodedEvent<'a, E> {
    pub(crate) fn new(recorded: &'a Recorded<E>) -> Self {
        Self {
            c: &recorded.cause,
            e: &recorded.event,
        }
    }
}

/// Encodes an event of a machine whose events hold no secrets.
pub fn encode_event<E: Serialize>(recorded: &Recorded<E>) -> NewEvent {
    let encoded = EncodedEvent::new(recorded);
    NewEvent {
        at: recorded.at,
        body: serde_json::to_string(&encoded).expect("events are plain data"),
    }
}

pub(crate) fn decode<E: DeserializeOwned>(stored: &StoredEvent) -> Result<Recorded<E>, Fault> {
    let read: DecodedEvent<E> = serde_json::from_str(&stored.body).map_err(|e| {
        Fault::permanent(
            "corrupt",
            format!(
                "event {} is unreadable: {e}; restore the store from a backup",
                stored.seq
            ),
        )
    })?;
    Ok(Recorded {
        seq: stored.seq,
        at: stored.at,
        cause: read.c,
        event: read.e,
    })
}
