//! The effects of a flow. The serialized form is for storage; what an author writes is read by
//! [`FlowEffect::parse`].

use super::{Reminder, SchemaSource};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tandem_record::Object;
pub use tandem_record::conversation::{
    EscalationMode, EscalationPriority, ProxyFlags, ProxyMode, ProxyTimeoutBehavior, WaitFor,
};

/// A plain value a flow hands to the runtime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum FlowEffect {
    /// Blank text is valid and sends nothing.
    Say {
        text: String,
    },
    Ask {
        key: String,
        text: String,
        #[serde(default)]
        reminders: Vec<Reminder>,
    },
    Tool {
        name: String,
        args: Object,
        #[serde(default)]
        on_error: ToolErrorMode,
    },
    Handoff {
        to: String,
        input: Option<Value>,
    },
    End {
        reason: Option<String>,
    },
    Confirm(ConfirmEffect),
    Escalate(EscalateEffect),
    Wait(WaitEffect),
    ProxyStart(ProxyStartEffect),
    ProxyWait(ProxyWaitEffect),
    ProxyStop {
        reason: Option<String>,
    },
    WorkflowRun(WorkflowRunEffect),
}

/// What a failed tool call does to the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorMode {
    /// A `ToolError` is thrown.
    #[default]
    Throw,
    /// The flow gets `{ok: false, code, message}`.
    Return,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmEffect {
    pub question: String,
    /// Given by the author; unique within the flow run.
    pub id: Option<String>,
    pub timeout_ms: Option<u64>,
    /// Replaces only this list of the defaults.
    pub positive_keywords: Option<Vec<String>>,
    pub negative_keywords: Option<Vec<String>>,
    pub response_schema: Option<SchemaSource>,
    #[serde(default)]
    pub reminders: Vec<Reminder>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalateEffect {
    pub mode: EscalationMode,
    pub reason: String,
    pub id: Option<String>,
    #[serde(default)]
    pub priority: EscalationPriority,
    pub metadata: Option<Object>,
    pub timeout_ms: Option<u64>,
    /// How many people must approve.
    pub required_approvals: u32,
    /// Who may decide; empty means everybody with the right.
    #[serde(default)]
    pub approvers: Vec<String>,
    pub queue: Option<String>,
    pub assignee: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitEffect {
    pub wait_for: WaitFor,
    /// Always present for [`WaitFor::Timeout`].
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyStartEffect {
    /// Key of a registered target, never an address.
    pub target: String,
    #[serde(default)]
    pub mode: ProxyMode,
    #[serde(default)]
    pub replace: bool,
    /// Bounds the whole bridge.
    pub timeout_ms: Option<u64>,
    pub forward_user_messages: Option<bool>,
    pub forward_admin_messages: Option<bool>,
    pub auto_prefix: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyWaitEffect {
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub timeout_behavior: ProxyTimeoutBehavior,
    pub timeout_message_to_user: Option<String>,
    /// The effect carries the function; it lives in the parked instance.
    #[serde(default)]
    pub process_before_forward: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRunEffect {
    pub workflow_id: String,
    pub input: Option<Value>,
    pub wait: bool,
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub cancel_on_timeout: bool,
    #[serde(default)]
    pub surface_interrupts: bool,
}

impl FlowEffect {
    /// What an author may write as `type`.
    pub(crate) const TYPES: [&'static str; 12] = [
        "say",
        "ask",
        "tool",
        "handoff",
        "end",
        "interrupt.confirm",
        "interrupt.escalate",
        "interrupt.wait",
        "interrupt.proxy.start",
        "interrupt.proxy.wait",
        "interrupt.proxy.stop",
        "workflow.run",
    ];

    /// The `type` an author writes.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Say { .. } => "say",
            Self::Ask { .. } => "ask",
            Self::Tool { .. } => "tool",
            Self::Handoff { .. } => "handoff",
            Self::End { .. } => "end",
            Self::Confirm(_) => "interrupt.confirm",
            Self::Escalate(_) => "interrupt.escalate",
            Self::Wait(_) => "interrupt.wait",
            Self::ProxyStart(_) => "interrupt.proxy.start",
            Self::ProxyWait(_) => "interrupt.proxy.wait",
            Self::ProxyStop { .. } => "interrupt.proxy.stop",
            Self::WorkflowRun(_) => "workflow.run",
        }
    }

    /// Whether the flow run stops at it until somebody or something answers.
    pub fn pauses(&self) -> bool {
        match self {
            Self::Ask { .. } | Self::Confirm(_) | Self::Wait(_) | Self::ProxyWait(_) => true,
            Self::WorkflowRun(effect) => effect.wait,
            Self::Say { .. }
            | Self::Tool { .. }
            | Self::Handoff { .. }
            | Self::End { .. }
            | Self::Escalate(_)
            | Self::ProxyStart(_)
            | Self::ProxyStop { .. } => false,
        }
    }
}

impl ProxyStartEffect {
    pub fn flags(&self) -> ProxyFlags {
        let forwards_admin = match self.mode {
            ProxyMode::Mirror => true,
            ProxyMode::Shadow => false,
        };
        ProxyFlags {
            forward_user_messages: self.forward_user_messages.unwrap_or(true),
            forward_admin_messages: self.forward_admin_messages.unwrap_or(forwards_admin),
            auto_prefix: self.auto_prefix.unwrap_or(true),
        }
    }
}
