//! How a flow ends, and what its effects give back.

use serde::Deserialize;
use serde_json::Value;
use std::fmt::Display;
use tandem_engine::flow::FlowError;
use tandem_record::Object;

/// What the function of a flow returns.
pub type FlowResult = Result<FlowReturn, FlowStop>;

/// A flow that came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowReturn {
    pub(crate) reason: Option<String>,
}

impl FlowReturn {
    pub fn done() -> Self {
        Self::default()
    }

    /// The reason is recorded as that of `flow.ended`.
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
        }
    }
}

/// Why a flow does not go on. `?` passes it on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FlowStop {
    /// The run has ended: by `end` or `handoff`, or from outside. Nothing that follows is performed.
    #[error("the flow was closed")]
    Closed,
    /// A tool failed, an effect was refused, or nobody answered in time. A flow may go on after it.
    #[error("{}: {}", .0.code, .0.message)]
    Thrown(FlowError),
    /// An error of the author. It fails the run.
    #[error("{0}")]
    Failed(String),
}

impl FlowStop {
    /// For `map_err`, so that `?` works with errors of other crates.
    pub fn failed(why: impl Display) -> Self {
        Self::Failed(why.to_string())
    }

    /// The code of a thrown error, for example `not_found` of a tool.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Thrown(error) => Some(&error.code),
            Self::Closed | Self::Failed(_) => None,
        }
    }
}

/// What `escalate` gives back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenedEscalation {
    pub escalation_id: String,
    /// Not always the one asked for: see `escalationDefaults.fallbackMode`.
    pub mode: String,
    pub status: String,
    pub created_at: String,
}

/// What `wait` gives back. Which fields are set depends on `outcome`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitOutcome {
    /// `resolved`, `handed_back`, `positive`, `negative`, `elapsed`, `timed_out` or `canceled`.
    pub outcome: String,
    #[serde(default)]
    pub approved: bool,
    #[serde(default)]
    pub timed_out: bool,
    pub escalation_id: Option<String>,
    pub message: Option<String>,
    pub action_data: Option<Value>,
    pub resolved_by: Option<String>,
    /// Messages that arrived meanwhile, in order.
    #[serde(default)]
    pub queued_inbound: Vec<Value>,
    /// Everything else of the payload.
    #[serde(flatten)]
    pub other: Object,
}

/// What `proxy_to_admin` gives back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedProxy {
    pub proxy_id: String,
    /// The target that is used: a fallback while the named one is closed.
    pub target: String,
    pub mode: String,
    pub started_at: String,
    /// The bridge whose place it took.
    pub replaced: Option<String>,
}

/// What `stop_proxy` gives back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoppedProxy {
    pub stopped: bool,
    pub proxy_id: Option<String>,
}

/// What `proxy_wait` gives back. Which fields are set depends on `outcome`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyOutcome {
    /// `admin_input`, `timed_out` or `stopped`.
    pub outcome: String,
    pub proxy_id: String,
    /// What the admin wrote.
    pub text: Option<String>,
    #[serde(default)]
    pub forwarded: bool,
    /// What the user got.
    pub forwarded_text: Option<String>,
    /// The filter stopped the bridge.
    #[serde(default)]
    pub ended: bool,
    #[serde(default)]
    pub timed_out: bool,
    pub escalation_id: Option<String>,
    pub reason: Option<String>,
    /// Everything else of the payload.
    #[serde(flatten)]
    pub other: Object,
}

/// What `run_workflow` gives back.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowOutcome {
    pub run_id: String,
    pub status: String,
    pub output: Option<Value>,
    pub error: Option<Value>,
}
