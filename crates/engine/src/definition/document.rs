//! The workflow document as its author writes it. It is read after the schema accepted it, so these
//! types are lenient: they take what execution needs and ignore what only editors use.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::{Masking, NodeId, Object, WorkflowId};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    pub id: WorkflowId,
    pub name: String,
    pub version: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub status: Option<String>,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub triggers: Vec<Trigger>,
    pub variables: Vec<Variable>,
    #[serde(default)]
    pub channels: Option<BTreeMap<String, Channel>>,
    #[serde(default)]
    pub configurable_schema: Option<Value>,
    #[serde(default)]
    pub groups: Vec<Group>,
    pub metadata: Metadata,
    pub settings: WorkflowSettings,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub id: NodeId,
    pub type_id: String,
    pub name: String,
    pub config: Object,
    pub inputs: BTreeMap<String, PortValue>,
    #[serde(default)]
    pub settings: NodeSettings,
    #[serde(default)]
    pub disabled: bool,
    #[serde(default)]
    pub output_role: Option<String>,
    #[serde(default)]
    pub output_sensitivity: BTreeMap<String, bool>,
    #[serde(default)]
    pub agent: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSettings {
    pub retry: Option<Retry>,
    pub timeout_ms: Option<u64>,
    /// Accepted as an older name of `timeoutMs`; 0 means none.
    pub timeout: Option<u64>,
    pub on_error: OnError,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    #[default]
    Fail,
    Continue,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    pub max_attempts: Option<u32>,
    pub backoff: Backoff,
    pub backoff_ms: u64,
    pub max_backoff_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: None,
            backoff: Backoff::Exponential,
            backoff_ms: 500,
            max_backoff_ms: 60_000,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    None,
    Fixed,
    Exponential,
}

/// Where a node's input port gets its value.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum PortValue {
    Static {
        value: Value,
    },
    Variable {
        variable_name: String,
        #[serde(default)]
        optional: bool,
    },
    Connection {
        node_id: NodeId,
        output_key: String,
        #[serde(default)]
        optional: bool,
    },
    Expression {
        expression: String,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    pub id: String,
    pub source_node_id: NodeId,
    pub target_node_id: NodeId,
    #[serde(default)]
    pub source_output: Option<String>,
    #[serde(default)]
    pub target_input: Option<String>,
    #[serde(default)]
    pub condition: Option<Condition>,
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub trigger_rule: TriggerRule,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: ConditionKind,
    #[serde(default)]
    pub left: Option<String>,
    #[serde(default)]
    pub right: Value,
    #[serde(default)]
    pub expression: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConditionKind {
    Expression,
    Equals,
    NotEquals,
    Contains,
    Regex,
    Truthy,
    Falsy,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    #[default]
    AllSuccess,
    AnySuccess,
    AllComplete,
    NoneFailed,
    AnyFailed,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub config: Object,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub node_id: Option<NodeId>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default, deserialize_with = "present")]
    pub default_value: Option<Value>,
    #[serde(default)]
    pub sensitive: bool,
}

impl Variable {
    /// Whether a value is of the declared type.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        match self.kind.as_str() {
            "string" => value.is_string(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            _ => true,
        }
    }

    pub(crate) fn kind_label(&self) -> &'static str {
        match self.kind.as_str() {
            "string" => "a string",
            "number" => "a number",
            "boolean" => "true or false",
            "object" => "an object",
            "array" => "an array",
            _ => "a value",
        }
    }
}

/// Distinguishes an explicit `null` from an absent key.
fn present<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(d).map(Some)
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    pub reducer: String,
    #[serde(default)]
    pub schema: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    pub default: Option<Value>,
    #[serde(default)]
    pub max_size: Option<usize>,
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    #[serde(default)]
    pub access: Option<Value>,
    #[serde(default = "one")]
    pub schema_version: u32,
    #[serde(default)]
    pub compatible_with: Vec<u32>,
    #[serde(default)]
    pub sensitive: bool,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    pub node_ids: Vec<NodeId>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub compliance_class: Option<String>,
    pub compliance_config: Option<ComplianceConfig>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComplianceConfig {
    pub masking_mode: Option<Masking>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowSettings {
    /// Milliseconds; 0 or absent means unlimited.
    pub timeout: u64,
    pub max_retries: u32,
    pub max_loopback_iterations: Option<u32>,
    pub compensation: Option<Value>,
}
