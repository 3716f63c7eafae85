//! The node types this host knows and the meaning of their configuration. Parsing happens once, at
//! registration, so that an invalid `config` is refused with its path instead of failing a run.

mod catalog;
mod chat_flow;
mod conversation;
mod decision;
mod dispatch;
mod flow;
mod gate;
mod http;
pub(crate) mod interrupt;
pub(crate) mod interrupt_kind;
mod interrupt_settings;
mod memory;
mod model;
pub(crate) mod settings;
mod sub_workflow;
pub(crate) mod supervisor;
pub(crate) mod tool;
mod verifier;

use crate::conformance::{self, AllowedHooks, ConformanceKind};
use crate::definition::Problem;
use crate::definition::schema::{self, Schemas, problems};
use crate::pack::AllowedPackTypes;
use serde_json::Value;
use tandem_record::{NodeId, Object};
use tandem_schema::Schema;

#[cfg(test)]
use catalog::all_types;
pub(crate) use catalog::test_only;
pub use catalog::{Availability, NodeType, advertised_types, node_type};
pub(crate) use chat_flow::ChatFlow;
pub(crate) use conversation::ConversationGate;
pub(crate) use decision::{OrchestratorDecision, Route};
pub use dispatch::{ASK_USER_ROUTINGS, FAN_OUT_POLICIES, JOIN_MODES, MAX_FAN_OUT};
pub(crate) use dispatch::{Dispatch, FanOut, JoinMode, OnWorkerFailure, Parallel};
pub(crate) use flow::{ChannelWrite, LoopConfig, delay_ms, millis};
pub use gate::ACTIONS as APPROVAL_ACTIONS;
pub(crate) use gate::{ApprovalGate, ClarificationGate, GenericInterrupt, profile_problem};
pub(crate) use http::HttpConfig;
pub(crate) use interrupt_kind::waiting_status;
pub(crate) use interrupt_settings::{EscalationLevel, InterruptSettings, OnTimeout};
pub(crate) use memory::{MemoryAction, MemoryConfig, MemoryKey, MemorySource, is_key};
pub(crate) use model::ModelNode;
pub(crate) use settings::{RefusalPolicy, escaped, unknown_pack_settings, unknown_settings};
pub(crate) use sub_workflow::SubWorkflow;
pub(crate) use supervisor::{DecisionSource, Supervisor};
pub(crate) use tool::ToolNode;
pub(crate) use verifier::{Verifier, VerifierReport, VerifierSource};

/// What a node does, with its parsed configuration.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Input ports are copied to output ports of the same name.
    Passthrough,
    Delay {
        configured: Option<u64>,
    },
    Fail {
        code: String,
        message: String,
    },
    SetVariable {
        name: String,
        value: Option<Value>,
    },
    GetVariable {
        name: String,
    },
    ChannelWrite(ChannelWrite),
    SubWorkflow(SubWorkflow),
    Loop(LoopConfig),
    Http(HttpConfig),
    Model(ModelNode),
    Tool(ToolNode),
    ApprovalGate(ApprovalGate),
    ClarificationGate(ClarificationGate),
    GenericInterrupt(GenericInterrupt),
    /// Implemented in a pack.
    Pack,
    Memory(MemoryConfig),
    ConversationGate(ConversationGate),
    ChatFlow(ChatFlow),
    Supervisor(Supervisor),
    Dispatch(Dispatch),
    /// Known to the protocol, not provided by this host: registered, but no run may start.
    Gated {
        capability: &'static str,
    },
    /// Exists for conformance tests only.
    Conformance(ConformanceKind),
}

/// A number without a fraction is a whole one however it is written: `1.0`, `1e3`.
pub(crate) fn whole_number(value: &Value) -> Option<u64> {
    /// Up to here floating point represents every whole number exactly.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(n) = value.as_u64() {
        return Some(n);
    }
    let n = value.as_f64()?;
    let exact = n.fract() == 0.0 && (0.0..=MAX_EXACT).contains(&n);
    // Within the range every whole number has one value of either type.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above"
    )]
    exact.then_some(n as u64)
}

impl Kind {
    /// The settings of the node's interrupt, if it opens one.
    pub(crate) fn interrupt_settings(&self) -> Option<&InterruptSettings> {
        match self {
            Self::ApprovalGate(gate) => Some(&gate.interrupt_settings),
            Self::ClarificationGate(gate) => Some(&gate.interrupt_settings),
            Self::GenericInterrupt(open) => Some(&open.interrupt_settings),
            Self::ConversationGate(gate) => Some(&gate.interrupt_settings),
            _ => None,
        }
    }
}

/// The context of a node while its configuration is parsed.
pub(crate) struct ParseContext<'a> {
    /// JSON pointer to the node.
    pub(crate) path: String,
    pub(crate) node: &'a NodeId,
    /// Which types and hooks for conformance tests exist here.
    pub(crate) hooks: AllowedHooks,
    /// Set when something is parsed that exists for conformance tests only.
    pub(crate) test_only: bool,
    /// Node types besides the host's own.
    pub(crate) packs: AllowedPackTypes<'a>,
    /// Compiles the schemas of the document's nodes.
    pub(crate) schemas: &'a mut Schemas,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl ParseContext<'_> {
    /// Whether a test-only type or hook may be used here; records its use.
    pub(crate) fn test_hook(&mut self) -> bool {
        self.test_only |= self.hooks.named;
        self.hooks.named
    }

    /// Whether the document is one of the protocol's own test workflows, which get some hooks
    /// implicitly; records the use.
    pub(crate) fn implicit_hook(&mut self) -> bool {
        self.test_only |= self.hooks.implicit;
        self.hooks.implicit
    }

    /// The type is unknown to this host, or not in this form.
    pub(crate) fn no_such_type<T>(&mut self, type_id: &str) -> Option<T> {
        self.problems.push(Problem {
            type_id: Some(type_id.to_owned()),
            node: Some(self.node.clone()),
            ..Problem::new(
                format!("{}/typeId", self.path),
                format!("{type_id:?} is not a node type of this host"),
            )
        });
        None
    }

    /// Records a problem at `config/<key>` (or the whole config) and returns `None` for this node.
    pub(crate) fn bad<T>(&mut self, key: &str, message: impl Into<String>) -> Option<T> {
        let at = if key.is_empty() {
            String::new()
        } else {
            format!("/{key}")
        };
        let mut problem = Problem::new(format!("{}/config{at}", self.path), message);
        problem.node = Some(self.node.clone());
        self.problems.push(problem);
        None
    }

    /// A schema at `config/<key>`.
    pub(crate) fn schema(&mut self, key: &str, document: &Value) -> Option<Schema> {
        match self.schemas.compile(document) {
            Ok(schema) => Some(schema),
            Err(why) => {
                let at = format!("{}/config/{key}", self.path);
                self.problems.push(Problem {
                    node: Some(self.node.clone()),
                    ..schema::refusal(&why, &at)
                });
                None
            }
        }
    }

    /// An optional text; a value of another type is a problem.
    pub(crate) fn text(&mut self, config: &Object, key: &str) -> Option<Option<String>> {
        match config.get(key) {
            None | Some(Value::Null) => Some(None),
            Some(Value::String(text)) => Some(Some(text.clone())),
            Some(_) => self.bad(key, "must be text"),
        }
    }

    pub(crate) fn required_text(&mut self, config: &Object, key: &str) -> Option<String> {
        match self.text(config, key)? {
            Some(text) if !text.is_empty() => Some(text),
            _ => self.bad(key, format!("{key} is required")),
        }
    }

    /// An optional whole number of at least `min`.
    pub(crate) fn whole(&mut self, config: &Object, key: &str, min: u64) -> Option<Option<u64>> {
        match config.get(key) {
            None | Some(Value::Null) => Some(None),
            Some(value) => match whole_number(value).filter(|n| *n >= min) {
                Some(n) => Some(Some(n)),
                None => self.bad(key, format!("must be a whole number of at least {min}")),
            },
        }
    }

    pub(crate) fn flag(&mut self, config: &Object, key: &str, default: bool) -> Option<bool> {
        match config.get(key) {
            None | Some(Value::Null) => Some(default),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(_) => self.bad(key, "must be true or false"),
        }
    }
}

impl Kind {
    /// Whether the node only waits. A replay repeats a recorded wait; a wait that was not recorded
    /// ends at once.
    pub(crate) fn only_waits(&self) -> bool {
        match self {
            Self::Delay { .. } => true,
            Self::Conformance(kind) => kind.only_waits(),
            _ => false,
        }
    }

    /// Whether executing the node again in the same run gives the same result. A replay executes
    /// such nodes and copies the recorded events of all others. Every kind is listed, so that a new
    /// kind has to be classified.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Passthrough
            | Self::Fail { .. }
            | Self::SetVariable { .. }
            | Self::GetVariable { .. }
            | Self::ChannelWrite(_)
            | Self::Loop(_)
            // Given the recorded answers.
            | Self::Model(_) => true,
            Self::Memory(config) => config.action.only_reads(),
            Self::Conformance(kind) => kind.is_repeatable(),
            Self::Delay { .. }
            | Self::SubWorkflow(_)
            | Self::Http(_)
            | Self::Tool(_)
            | Self::Pack
            | Self::ApprovalGate(_)
            | Self::ClarificationGate(_)
            | Self::GenericInterrupt(_)
            | Self::ConversationGate(_)
            // Nobody is talked to twice: the recorded result is used.
            | Self::ChatFlow(_)
            | Self::Supervisor(_)
            | Self::Dispatch(_)
            | Self::Gated { .. } => false,
        }
    }
}

/// A node of a pack's type, with its configuration checked against the pack's schema.
fn pack(type_id: &str, config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let Some(shape) = cx.packs.config(type_id) else {
        return Some(Kind::Pack);
    };
    let found = problems(
        shape,
        &Value::Object(config.clone()),
        &format!("{}/config", cx.path),
        &cx.schemas.meter,
    );
    if found.is_empty() {
        return Some(Kind::Pack);
    }
    cx.problems.extend(found.into_iter().map(|problem| Problem {
        node: Some(cx.node.clone()),
        ..problem
    }));
    None
}

/// Parses a node's type and configuration. `None` after recording at least one problem.
pub(crate) fn parse(type_id: &str, config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let Some(known) = node_type(type_id) else {
        if cx.packs.contains(type_id) {
            return pack(type_id, config, cx);
        }
        return cx.no_such_type(type_id);
    };
    match known.availability {
        Availability::Gated(capability) => return Some(Kind::Gated { capability }),
        Availability::TestOnly if !cx.hooks.exist => return cx.no_such_type(type_id),
        Availability::TestOnly if !cx.test_hook() => {
            cx.problems.push(Problem {
                type_id: Some(type_id.to_owned()),
                node: Some(cx.node.clone()),
                reason: Some("typeId_refused"),
                ..Problem::new(
                    format!("{}/typeId", cx.path),
                    format!(
                        "{type_id:?} is for conformance workflows only: the workflow id must start \
                         with \"conformance-\", or the key must have the role \"conformance\""
                    ),
                )
            });
            return None;
        }
        Availability::TestOnly | Availability::Served | Availability::InPart => {}
    }
    match type_id {
        "core.identity" => flow::identity(config, cx),
        "core.delay" => flow::delay(config, cx),
        "core.fail" => flow::fail(config, cx),
        "core.setVariable" => flow::set_variable(config, cx),
        "core.getVariable" => flow::get_variable(config, cx),
        "core.channelWrite" => ChannelWrite::parse(config, cx).map(Kind::ChannelWrite),
        "core.loop" => LoopConfig::parse(config, cx).map(Kind::Loop),
        "core.subWorkflow" => SubWorkflow::parse(config, cx).map(Kind::SubWorkflow),
        "core.approvalGate" => ApprovalGate::parse(config, cx).map(Kind::ApprovalGate),
        "core.clarificationGate" => {
            ClarificationGate::parse(config, cx).map(Kind::ClarificationGate)
        }
        "core.conversationGate" => ConversationGate::parse(config, cx).map(Kind::ConversationGate),
        "core.interrupt" => interrupt::interrupt(config, cx),
        "core.orchestrator.supervisor" => Supervisor::parse(config, cx).map(Kind::Supervisor),
        "core.dispatch" => Dispatch::parse(config, cx).map(Kind::Dispatch),
        "core.ai.structuredOutput" => ModelNode::structured(config, cx).map(Kind::Model),
        "core.llm.chat" => ModelNode::chat(config, cx).map(Kind::Model),
        "core.mcp.toolCall" => ToolNode::call(config, cx).map(Kind::Tool),
        "core.ai.callPrompt" if config.contains_key("mcp") => {
            ToolNode::prompt(config, cx).map(Kind::Tool)
        }
        "core.ai.callPrompt" if cx.test_hook() => ModelNode::prompt(config, cx).map(Kind::Model),
        "core.ai.callPrompt" => cx.no_such_type(type_id),
        "vendor.tandem.flow" => ChatFlow::parse(config, cx).map(Kind::ChatFlow),
        "vendor.tandem.http" => HttpConfig::parse(config, cx).map(Kind::Http),
        "vendor.tandem.memory" => MemoryConfig::parse(config, cx).map(Kind::Memory),
        _ if known.availability == Availability::TestOnly => {
            conformance::parse(type_id, config, cx)
        }
        _ => Some(Kind::Passthrough),
    }
}
