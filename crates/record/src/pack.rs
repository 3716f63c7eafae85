//! Calls of nodes that come from packs: the request and the answer.

use crate::{CapKind, ErrorInfo, Object, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Node types with these prefixes belong to the protocol or to this host; no pack may define one.
const RESERVED: [&str; 3] = ["core.", "conformance.", "vendor.tandem."];

pub fn is_reserved_type(type_id: &str) -> bool {
    RESERVED.iter().any(|start| type_id.starts_with(start))
}

/// Everything a pack's node sees of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackCall {
    pub type_id: String,
    pub tenant: TenantId,
    pub inputs: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub config: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub configurable: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Value>,
    /// The only time it gets: when the attempt was recorded.
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackAnswer {
    pub result: PackResult,
    /// What it logged meanwhile, in order.
    #[serde(rename = "said", default, skip_serializing_if = "Vec::is_empty")]
    pub log_lines: Vec<PackLogLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum PackResult {
    Completed {
        outputs: Object,
    },
    Failed {
        error: ErrorInfo,
    },
    /// It exceeded a limit and was stopped.
    Breached {
        kind: CapKind,
        limit: u64,
        observed: u64,
        error: ErrorInfo,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackLogLine {
    pub level: String,
    pub message: String,
}

impl PackAnswer {
    pub fn failed(error: ErrorInfo) -> Self {
        Self {
            result: PackResult::Failed { error },
            log_lines: Vec::new(),
        }
    }
}
