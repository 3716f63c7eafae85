//! What belongs to a run as a whole: its owner, its request, its status.

use crate::conversation::WaitingSession;
use crate::{
    ForkedFrom, MemoryOrigin, NodeId, Object, Principal, RunId, Seq, TenantId, WorkflowId,
    WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The identity triple a run belongs to. Fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub tenant: TenantId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// The caller's options; stored as submitted and immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurable: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    Rest,
    Mcp,
    A2a,
    Ui,
}

/// W3C trace context as received, passed to every continuation of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    pub traceparent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// The link of a child run to its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParentLink {
    pub run_id: RunId,
    pub node_id: NodeId,
    /// The parent's event that named this child.
    pub dispatched_at: Seq,
    /// Workflow ids from the root down to the parent; limits depth and refuses recursion.
    pub lineage: Vec<WorkflowId>,
    /// Child variables that the parent reads when the child completes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harvest: Vec<String>,
    #[serde(default)]
    pub cause: ParentCause,
    /// The run at the top of the tree; absent in logs older than it, where the parent stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RunId>,
}

impl ParentLink {
    /// The run at the top of the tree.
    pub fn tree_root(&self) -> &RunId {
        self.root.as_ref().unwrap_or(&self.run_id)
    }
}

/// Which primitive made a run the child of another run of this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentCause {
    #[default]
    SubWorkflow,
    Dispatch,
}

/// A parent on another host, as an authenticated caller claims it. A claim, never authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedParent {
    pub run_id: String,
    pub host_id: String,
    /// Where that host is described; absent when it is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well_known_url: Option<String>,
    /// The event on that host that led to this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

/// Everything needed to start a run, apart from its definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    pub owner: Owner,
    pub inputs: Object,
    /// Keys whose declared default must not apply: the parent mapped an unset variable onto them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erased_defaults: Vec<String>,
    /// Inputs that the parent got from a tool server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted_inputs: Vec<String>,
    /// Inputs that are sensitive in the parent, and so here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive_inputs: Vec<String>,
    #[serde(default)]
    pub options: RunOptions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// The caller who named the callback may answer interrupts, so the links sent to it can answer;
    /// otherwise they only show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub callback_may_answer: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_parent: Option<ClaimedParent>,
    /// The conversation whose flow started the run and waits for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_session: Option<Box<WaitingSession>>,
    /// The caller has the role that permits conformance types in any workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conformance_role: bool,
    /// The version of the multi-agent execution model that the run uses, if its host was configured
    /// below the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_model: Option<u32>,
    /// The run starts with an empty memory of its own instead of its parent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated_memory: bool,
    pub transport: Transport,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// From where it reads memory; absent in logs older than memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryOrigin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<ForkedFrom>>,
    /// Who forked the run, or a run that it was forked from or is a child of. The owner stays that
    /// of the source, so these are the others who started it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forked_by: Vec<Principal>,
    /// Levels of workflows above the root of its tree: a flow of the last of them started that root.
    #[serde(default, skip_serializing_if = "crate::is_zero_u32")]
    pub levels_above: u32,
}

impl RunRequest {
    /// Whether the run repeats another one from its recorded events, without effects.
    pub fn is_replay(&self) -> bool {
        let fork = self.forked_from.as_ref();
        fork.is_some_and(|f| f.mode == crate::ForkMode::Replay)
    }

    /// Levels of workflows above it, those between which there are flows of conversations included.
    pub fn depth(&self) -> u32 {
        let nested = self.parent.as_ref().map_or(0, |p| p.lineage.len());
        let nested = u32::try_from(nested).unwrap_or(u32::MAX);
        self.levels_above.saturating_add(nested)
    }

    /// From where the run reads memory. Runs older than memory read none.
    pub fn memory_origin(&self) -> MemoryOrigin {
        let workspace = self.owner.workspace.as_ref();
        match &self.memory {
            Some(origin) => origin.clone().scoped_to_workspace(workspace),
            None => self.new_memory(0),
        }
    }

    /// From where a run with this request reads when it begins at a position of the journal.
    pub fn new_memory(&self, start: u64) -> MemoryOrigin {
        let workspace = self.owner.workspace.as_ref();
        MemoryOrigin {
            scope: MemoryOrigin::scope_of(workspace, self.scope_id.as_deref()),
            start,
            base: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    Pending,
    Running,
    Paused,
    WaitingApproval,
    WaitingInput,
    /// A held decision that is put as a question; every other question is `waiting-input`.
    WaitingClarification,
    WaitingExternal,
    Cancelling,
    Completed,
    Failed,
    Cancelled,
}

impl RunStatus {
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::Running,
        Self::Paused,
        Self::WaitingApproval,
        Self::WaitingInput,
        Self::WaitingClarification,
        Self::WaitingExternal,
        Self::Cancelling,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    pub fn is_waiting(self) -> bool {
        matches!(
            self,
            Self::WaitingApproval
                | Self::WaitingInput
                | Self::WaitingClarification
                | Self::WaitingExternal
        )
    }

    /// The name used in stored rows; equal to the serde name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::WaitingApproval => "waiting-approval",
            Self::WaitingInput => "waiting-input",
            Self::WaitingClarification => "waiting-clarification",
            Self::WaitingExternal => "waiting-external",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

/// Why a node or a run failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether a retry can help. Decides retries; shown to clients.
    #[serde(default)]
    pub retryable: bool,
}

impl ErrorInfo {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            details: None,
            retryable: false,
        }
    }

    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// What a reader sees in place of a sensitive value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Masking {
    #[default]
    Mask,
    Omit,
    Hash,
    Passthrough,
}

impl Masking {
    /// What stands in place of a value that a reader may not see; `None` if it is left out.
    pub fn mask_value(self, value: &Value) -> Option<Value> {
        match self {
            Self::Mask => Some(Value::from("[REDACTED]")),
            Self::Omit => None,
            Self::Hash => Some(Value::from(hashed(value))),
            Self::Passthrough => Some(value.clone()),
        }
    }

    /// A value of the same form, with every text masked.
    fn mask_texts(self, value: &Value) -> Value {
        match value {
            Value::String(_) => {
                let masked = self
                    .mask_value(value)
                    .or_else(|| Self::Mask.mask_value(value));
                masked.unwrap_or_default()
            }
            Value::Array(items) => items.iter().map(|item| self.mask_texts(item)).collect(),
            Value::Object(fields) => {
                let masked = |(key, value): (&String, _)| (key.clone(), self.mask_texts(value));
                Value::Object(fields.iter().map(masked).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

fn hashed(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

/// Stands in place of an error's message.
const HIDDEN_MESSAGE: &str =
    "the message is not shown: the node handles values marked as sensitive";

/// Which values of a workflow its author marked as sensitive, and where they are repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    pub mode: Masking,
    pub variables: BTreeSet<String>,
    pub channels: BTreeSet<String>,
    /// Sensitive output ports by node.
    pub outputs: BTreeMap<NodeId, BTreeSet<String>>,
    /// Nodes that are given something sensitive or put it out: their errors may quote it.
    #[serde(default)]
    pub errors: BTreeSet<NodeId>,
    /// The nodes whose outputs are the run's; named only where something is sensitive.
    #[serde(default)]
    pub last: BTreeSet<NodeId>,
    /// What stands in place of all texts of people in its events; absent: they are shown. Of flow runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<Masking>,
    /// The class of data its runs contain, if one is set: `pii`, `phi`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

impl Sensitivity {
    /// Whether a variable, or a channel by the same name, is sensitive.
    pub fn holds(&self, name: &str) -> bool {
        self.variables.contains(name) || self.channels.contains(name)
    }

    /// Whether readers see something else in place of this variable or channel.
    pub fn masks(&self, name: &str) -> bool {
        self.mode != Masking::Passthrough && self.holds(name)
    }

    pub fn hides_anything(&self) -> bool {
        !(self.variables.is_empty() && self.channels.is_empty() && self.outputs.is_empty())
    }

    /// The error of a node, or of a run that failed at it, as a reader may see it: of a node that
    /// handles something sensitive the code alone. A message may quote what the node was given, and
    /// details may hold what it got back.
    pub fn visible_error<'a>(
        &self,
        node: Option<&NodeId>,
        error: &'a ErrorInfo,
    ) -> Cow<'a, ErrorInfo> {
        if !node.is_some_and(|node| self.hides_error_of(node)) {
            return Cow::Borrowed(error);
        }
        Cow::Owned(ErrorInfo {
            code: error.code.clone(),
            message: HIDDEN_MESSAGE.to_owned(),
            details: None,
            retryable: error.retryable,
        })
    }

    /// Whether the decision that a supervisor makes, or a dispatch node carries out, is not shown.
    pub fn hides_decision_of(&self, node: &NodeId) -> bool {
        let ports = self.outputs.get(node);
        let marked = ports.is_some_and(|ports| ports.contains("decision"));
        marked && self.mode != Masking::Passthrough
    }

    /// A supervisor's decision as a reader may see it. The protocol closes its form, so hidden texts
    /// have a mask in their place in every mode.
    pub fn visible_decision<'a>(&self, node: &NodeId, decision: &'a Value) -> Cow<'a, Value> {
        if !self.hides_decision_of(node) {
            return Cow::Borrowed(decision);
        }
        let mut shown = self.mode.mask_texts(decision);
        if let (Some(kind), Some(fields)) = (decision.get("kind"), shown.as_object_mut()) {
            fields.insert("kind".to_owned(), kind.clone());
        }
        Cow::Owned(shown)
    }

    pub fn hides_error_of(&self, node: &NodeId) -> bool {
        self.mode != Masking::Passthrough && self.errors.contains(node)
    }
}
