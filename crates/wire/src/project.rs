//! The one projection: from stored events and folded runs to what a given reader may see. Callers name the
//! reader; the protocol major of the reader chooses the shapes.

use crate::v1;
use serde_json::Value;
use tandem_record::{Event, RecordedEvent, RunId, RunView, Sensitivity};
pub use v1::project::{SignedLink, SnapshotExtras};

/// A protocol major. A match over it has no catch-all arm, so a new major must be given shapes everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolMajor {
    V1,
}

/// Who reads: the protocol major they speak, and the values that are masked for them.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub major: ProtocolMajor,
    pub mask: &'a Sensitivity,
}

impl<'a> Reader<'a> {
    pub fn v1(mask: &'a Sensitivity) -> Self {
        Self {
            major: ProtocolMajor::V1,
            mask,
        }
    }
}

/// One event as the reader sees it.
pub fn event(run: &RunId, recorded: &RecordedEvent, reader: Reader<'_>) -> Value {
    match reader.major {
        ProtocolMajor::V1 => v1::project::event(run, recorded, reader.mask),
    }
}

/// The same as text. Costs less than a value where many events are sent.
pub fn event_text(run: &RunId, recorded: &RecordedEvent, reader: Reader<'_>) -> String {
    match reader.major {
        ProtocolMajor::V1 => v1::project::event_text(run, recorded, reader.mask),
    }
}

/// The same at the end of a longer text.
pub fn append_event(run: &RunId, recorded: &RecordedEvent, reader: Reader<'_>, text: &mut Vec<u8>) {
    match reader.major {
        ProtocolMajor::V1 => v1::project::append_event(run, recorded, reader.mask, text),
    }
}

/// The payload of one event as text, without its envelope.
pub fn message(run: &RunId, recorded: &RecordedEvent, reader: Reader<'_>) -> String {
    match reader.major {
        ProtocolMajor::V1 => v1::project::message(run, recorded, reader.mask),
    }
}

/// The public name of an event.
pub fn event_type(event: &Event, major: ProtocolMajor) -> &'static str {
    match major {
        ProtocolMajor::V1 => v1::project::event_type(event),
    }
}

/// A run as the reader sees it.
pub fn snapshot(view: &RunView, extras: &SnapshotExtras, reader: Reader<'_>) -> Value {
    match reader.major {
        ProtocolMajor::V1 => v1::project::snapshot(view, reader.mask, extras),
    }
}

/// A run's immediate parent; clients follow the chain themselves.
pub fn ancestry(view: &RunView, host_id: &str, major: ProtocolMajor) -> Value {
    match major {
        ProtocolMajor::V1 => v1::project::ancestry(view, host_id),
    }
}
