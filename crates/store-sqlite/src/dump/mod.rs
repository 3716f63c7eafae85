//! Runs with their whole history as lines of JSON, out of one database and into another.
//!
//! ```text
//! {"tandem":{"format":"tandem-export-1","schema":8,"whole":true,"memoryPosition":41}}
//! {"definitions":{"hash":"…","document":"…"}}     what runs depend on, before them
//! {"streams":{"stream":"run:…","head":12}}        a run starts; all lines up to the next belong to it
//! {"runs":{…}}  {"events":{…}}  {"interrupts":{…}}  {"timers":{…}}  {"outbox":{…}}
//! {"end":{"lines":5120}}
//! ```
//!
//! A line is one row under the name of its table. Texts are exported as they are stored, byte for
//! byte, so that hashes over them stay valid. Derived data (the inbox, snapshots) is left out, and
//! so are leases: they belong to a process.
//!
//! A full export also contains the rows that do not belong to a run: the audit log, keys, and
//! settings with the secrets that sign links. Conversations (users, sessions, escalations, their streams
//! and the logs of agents) are in full exports only. A table added to the schema is exported without
//! being named here.

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
/// First key of every export.
const TITLE: &str = "tandem";
const END: &str = "end";

/// Rebuilt by an import, or not needed by it. The lists of conversations follow from their rows.
const DERIVED: [&str; 8] = [
    "inbox",
    "snapshots",
    "heartbeat",
    "memory_present",
    "chat_user_lists",
    "session_lists",
    "escalation_lists",
    "proxy_lists",
];
/// Exported with the stream they belong to.
const OF_STREAMS: [&str; 7] = [
    "streams",
    "events",
    "runs",
    "interrupts",
    "timers",
    "outbox",
    "memory_joins",
];
/// Other rows refer to it, so it comes first.
const DEFINITIONS: &str = "definitions";
const MEMORY: &str = "memory";

/// What to export. Default: everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSelection {
    /// These runs, their descendants, and the runs whose memory they continue.
    pub runs: Vec<RunId>,
    /// All runs of this tenant.
    pub tenant: Option<TenantId>,
}

impl ExportSelection {
    pub fn is_whole(&self) -> bool {
        self.runs.is_empty() && self.tenant.is_none()
    }
}

/// How much was exported or imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    pub runs: u64,
    pub events: u64,
    /// Rows of any kind, including these.
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
    /// Runs refer to positions of this journal; nothing may be written at or below it later.
    memory_position: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct End {
    /// Number of lines before this one.
    lines: u64,
}
