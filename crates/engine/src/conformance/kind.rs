//! The node kinds that exist for conformance tests only: their types, settings and configuration.

use super::memory_hook::MemoryHook;
use super::mock_agent::{self, MockAgent};
use crate::definition::admission::Fault;
use crate::node::settings::{
    AllowedSettings::{Closed, ClosedByProtocol},
    NONE, Setting, value,
};
use crate::node::tool::{CLIENT, PROMPT};
use crate::node::{Kind, NodeType, ParseContext, ToolNode, test_only};
use serde_json::Value;
use tandem_record::Object;

const SECRET_ECHO: &[Setting] = &[value("secretId")];
const COST_EMIT: &[Setting] = &[value("attrs")];
const ARTIFACT_EMIT: &[Setting] = &[value("artifactId"), value("artifactType"), value("content")];

/// The test-only node types of the catalog.
pub(crate) const NODE_TYPES: &[NodeType] = &[
    test_only(
        "core.conformance.mock-agent",
        ClosedByProtocol(mock_agent::SETTINGS),
    ),
    test_only("conformance.requiresMissing", NONE),
    test_only("conformance.modelCapability.insufficient", NONE),
    test_only("conformance.secret.echo", Closed(SECRET_ECHO)),
    test_only("conformance.cost.emit", Closed(COST_EMIT)),
    test_only("conformance.artifact.emit", Closed(ARTIFACT_EMIT)),
    test_only("core.conformance.side-effect", NONE),
    test_only("core.conformance.hold", NONE),
    test_only("core.conformance.mcp-client", Closed(CLIENT)),
    test_only("core.conformance.mcp-invoke", Closed(PROMPT)),
];

/// What a test-only node does, with its parsed configuration.
#[derive(Debug)]
pub(crate) enum ConformanceKind {
    /// Waits, then outputs its inputs.
    Hold,
    /// Stands for a node with a side effect.
    SideEffect,
    /// Writes one message twice.
    DuplicateMessage,
    /// Needs a capability no host has.
    RequiresMissing {
        capability: &'static str,
    },
    /// Needs a capability no model has.
    ModelCapabilityMissing,
    SecretEcho {
        secret_id: String,
    },
    CostEmit {
        attributes: Object,
    },
    ArtifactEmit {
        artifact_id: Option<String>,
        artifact_type: String,
        content: Value,
    },
    /// A memory operation of a fixture.
    MemoryHook(MemoryHook),
    /// An agent that emits the events of its configuration.
    MockAgent(Box<MockAgent>),
}

/// Parses a node of a test-only type.
pub(crate) fn parse(type_id: &str, config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    let kind = match type_id {
        "core.conformance.mock-agent" => {
            ConformanceKind::MockAgent(Box::new(MockAgent::parse(config, cx)?))
        }
        "conformance.requiresMissing" => ConformanceKind::RequiresMissing {
            capability: "conformance.never-provided",
        },
        "conformance.modelCapability.insufficient" => ConformanceKind::ModelCapabilityMissing,
        "conformance.secret.echo" => ConformanceKind::SecretEcho {
            secret_id: cx.required_text(config, "secretId")?,
        },
        "conformance.cost.emit" => ConformanceKind::CostEmit {
            attributes: match config.get("attrs") {
                Some(Value::Object(attributes)) => attributes.clone(),
                _ => return cx.bad("attrs", "must be an object"),
            },
        },
        "conformance.artifact.emit" => ConformanceKind::ArtifactEmit {
            artifact_id: cx.text(config, "artifactId")?,
            artifact_type: cx
                .text(config, "artifactType")?
                .unwrap_or_else(|| "conformance.artifact".to_owned()),
            content: config.get("content").cloned().unwrap_or(Value::Null),
        },
        "core.conformance.side-effect" => ConformanceKind::SideEffect,
        "core.conformance.hold" => ConformanceKind::Hold,
        "core.conformance.mcp-client" => return ToolNode::client(config, cx).map(Kind::Tool),
        "core.conformance.mcp-invoke" => return ToolNode::prompt(config, cx).map(Kind::Tool),
        other => unreachable!("{other} is not in the catalog of test-only types"),
    };
    Some(Kind::Conformance(kind))
}

/// Fixtures set test hooks on `core.identity`; elsewhere the keys have no meaning. `Some(None)`
/// where there is no hook.
pub(crate) fn identity_hook(
    config: &Object,
    cx: &mut ParseContext<'_>,
) -> Option<Option<ConformanceKind>> {
    if config.contains_key("memoryAction") && cx.implicit_hook() {
        let hook = MemoryHook::parse(config, cx)?;
        return Some(Some(ConformanceKind::MemoryHook(hook)));
    }
    let twice = config.get("emitDuplicateMessageId") == Some(&Value::Bool(true));
    let twice = twice && cx.implicit_hook();
    Some(twice.then_some(ConformanceKind::DuplicateMessage))
}

impl ConformanceKind {
    /// Whether the node only waits.
    pub(crate) fn only_waits(&self) -> bool {
        matches!(self, Self::Hold)
    }

    /// Whether executing the node again in the same run gives the same result. Every kind is listed,
    /// so that a new kind has to be classified.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::CostEmit { .. } | Self::ArtifactEmit { .. } | Self::DuplicateMessage => true,
            Self::Hold
            | Self::SideEffect
            | Self::RequiresMissing { .. }
            | Self::ModelCapabilityMissing
            | Self::SecretEcho { .. }
            | Self::MemoryHook(_)
            | Self::MockAgent(_) => false,
        }
    }

    /// Whether the node outputs its inputs, so that sensitive ones stay sensitive.
    pub(crate) fn passes_inputs_on(&self) -> bool {
        matches!(self, Self::Hold | Self::SideEffect | Self::DuplicateMessage)
    }

    /// The secret of the operator that the node needs.
    pub(crate) fn needed_secret(&self) -> Option<&str> {
        match self {
            Self::SecretEcho { secret_id } => Some(secret_id),
            Self::MemoryHook(hook) => hook.secret(),
            _ => None,
        }
    }

    /// Whether the engine names the artifact that the node creates.
    pub(crate) fn leaves_artifact_unnamed(&self) -> bool {
        matches!(
            self,
            Self::ArtifactEmit {
                artifact_id: None,
                ..
            }
        )
    }

    /// The memory names that the node reads.
    pub(crate) fn memory_refs(&self, own: &str) -> Vec<String> {
        match self {
            Self::MemoryHook(hook) => hook.memory_refs(own),
            _ => Vec::new(),
        }
    }

    /// The variables in which a memory hook leaves its results.
    pub(crate) fn result_variables(&self) -> &'static [&'static str] {
        match self {
            Self::MemoryHook(hook) => hook.result_variables(),
            _ => &[],
        }
    }

    /// The agent that a node plays: it may emit every agent event that its configuration asks for.
    pub(crate) fn agent(&self) -> Option<&MockAgent> {
        match self {
            Self::MockAgent(agent) => Some(agent),
            _ => None,
        }
    }

    /// What registration refuses in the node's configuration although earlier versions accepted it.
    pub(crate) fn config_faults(&self, config: &Object) -> Vec<Fault> {
        match self {
            Self::MockAgent(_) => mock_agent::config_faults(config),
            _ => Vec::new(),
        }
    }
}
