//! How a fact is written into a stream, and read back.

use serde::{Deserialize, Serialize};
use tandem_record::{Cause, Event, Recorded};
use tandem_store::{Fault, StoredEvent};

#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    c: &'a Option<Cause>,
    e: &'a Event,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    c: Option<Cause>,
    e: Event,
}

pub(crate) fn encode(cause: &Option<Cause>, event: &Event) -> String {
    serde_json::to_string(&Written { c: cause, e: event })
        .expect("events are plain data with text keys")
}

pub(crate) fn decode(stored: &StoredEvent) -> Result<Recorded, Fault> {
    let read: Read = serde_json::from_str(&stored.body).map_err(|e| {
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
