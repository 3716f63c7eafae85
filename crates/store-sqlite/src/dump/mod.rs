//! Runs with their whole history as lines of JSON, out of one database and into another.
//!
//! ```text
//! {"tandem":{"format":"tandem-export-1","schema":8,"whole":true,"memoryPosition":41}}
//! {"definitions":{"hash":"…","document":"…"}}     what runs stand on, before them
//! {"streams":{"stream":"run:…","head":12}}        a run begins; all up to the next is of it
//! {"runs":{…}}  {"events":{…}}  {"interrupts":{…}}  {"timers":{…}}  {"outbox":{…}}
//! {"end":{"lines":5120}}
//! ```
//!
//! A line is one row under the name of its table. Texts are carried as they are stored, byte for byte,
//! so that hashes over them still hold. What can be made from the rest (the inbox, snapshots) is left
//! out, and so are leases: they belong to a process.
//!
//! An export of everything also carries what is not of a run: the audit log, keys, settings with
//! the secrets that sign links. A table added to the schema is part of it without being named here.

mod lineage;
mod read;
mod row;
mod write;

pub use lineage::{OriginSource, ReadOrigin};
pub use read::import;
pub use write::export;

use serde::{Deserialize, Serialize};
use tandem_record::{RunId, TenantId};

const FORMAT: &str = "tandem-export-1";
/// Opens every export.
const TITLE: &str = "tandem";
const END: &str = "end";

/// Rebuilt by an import, or of no use to it.
const DERIVED: [&str; 4] = ["inbox", "snapshots", "heartbeat", "memory_present"];
/// Carried with the stream they belong to.
const OF_STREAMS: [&str; 7] = [
    "streams",
    "events",
    "runs",
    "interrupts",
    "timers",
    "outbox",
    "memory_joins",
];
/// Others refer to it, so it goes first.
const DEFINITIONS: &str = "definitions";
const MEMORY: &str = "memory";

/// What to export; with nothing said, everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSelection {
    /// These, the runs below them, and the runs whose memory they go on from.
    pub runs: Vec<RunId>,
    /// All runs of it.
    pub tenant: Option<TenantId>,
}

impl ExportSelection {
    pub fn is_whole(&self) -> bool {
        self.runs.is_empty() && self.tenant.is_none()
    }
}

/// What was carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    pub runs: u64,
    pub events: u64,
    /// Rows of any kind, these included.
    pub rows: u64,
}

impl TransferCounts {
    fn add(&mut self, table: &str) {
        self.rows += 1;
        match table {
            "runs" => self.runs += 1,
            "events" => self.events += 1,
            _ => {}
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Title {
    format: String,
    /// Version of the schema the rows were read from.
    schema: i32,
    whole: bool,
    /// Runs remember where this journal stood; nothing may be written at or below it later.
    memory_position: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct End {
    /// All before this one.
    lines: u64,
}
