//! The one projection: from stored events and folded runs to what a given reader may see. Callers name the
//! reader; the protocol major of the reader chooses the shapes.

use crate::v1;
use serde_json::Value;
use tandem_record::{RecordedEvent, RunId, RunView, Sensitivity};
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

/// The payload of one event, without its envelope.
pub fn message(run: &RunId, recorded: &RecordedEvent, reader: Reader<'_>) -> Value {
    match reader.major {
        ProtocolMajor::V1 => v1::project::message(run, recorded, reader.mask),
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
