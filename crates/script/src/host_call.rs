//! Calls that code makes to the host: awaited functions of `ctx` that are not effects.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which call of a realm made a host call. A flow is call 0 of its realm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) u64);

impl CallId {
    pub(crate) const FLOW: Self = Self(0);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostCall {
    /// Position in program order, from 0.
    pub index: u64,
    /// For example `session.kv.get`.
    pub name: String,
    pub args: Vec<Value>,
    #[serde(skip, default = "flow")]
    pub(crate) call: CallId,
}

fn flow() -> CallId {
    CallId::FLOW
}
