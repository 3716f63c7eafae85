//! All node types of this host: who may use each and which settings it has.

use super::settings::{AllowedSettings, NONE, Setting, object, value};
use super::{
    chat_flow, conversation, dispatch, flow, gate, http, interrupt, memory, model, sub_workflow,
    supervisor, tool,
};
use crate::conformance;
use AllowedSettings::{ByConfig, Closed, ClosedByProtocol, Open};
use tandem_record::Object;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Served,
    /// Only the form this host supports; other forms are refused, so the type is not advertised.
    InPart,
    /// Refused when a run is created, with the name of the capability.
    Gated(&'static str),
    /// Only inside the protocol's own test workflows.
    TestOnly,
}

#[derive(Debug, Clone, Copy)]
pub struct NodeType {
    pub type_id: &'static str,
    pub availability: Availability,
    pub(super) settings: AllowedSettings,
}

const fn served(type_id: &'static str, settings: AllowedSettings) -> NodeType {
    NodeType {
        type_id,
        availability: Availability::Served,
        settings,
    }
}

const fn in_part(type_id: &'static str, settings: AllowedSettings) -> NodeType {
    NodeType {
        type_id,
        availability: Availability::InPart,
        settings,
    }
}

const fn gated(
    type_id: &'static str,
    capability: &'static str,
    settings: AllowedSettings,
) -> NodeType {
    NodeType {
        type_id,
        availability: Availability::Gated(capability),
        settings,
    }
}

pub(crate) const fn test_only(type_id: &'static str, settings: AllowedSettings) -> NodeType {
    NodeType {
        type_id,
        availability: Availability::TestOnly,
        settings,
    }
}

/// Every node type besides the test-only ones.
const CATALOG: &[NodeType] = &[
    served("core.start", NONE),
    served("core.end", NONE),
    served("core.noop", Open),
    served("core.flow.noop", NONE),
    served("core.openwop.flow.noop", NONE),
    served("core.identity", Open),
    served("core.conditional", NONE),
    served("core.parallel", NONE),
    served("core.merge", NONE),
    served("core.loop", Closed(flow::LOOP)),
    served("core.delay", Closed(flow::DELAY)),
    served("core.fail", Closed(flow::FAIL)),
    served("core.setVariable", Closed(flow::SET_VARIABLE)),
    served("core.getVariable", Closed(flow::GET_VARIABLE)),
    served("core.channelWrite", Closed(flow::CHANNEL_WRITE)),
    served("core.subWorkflow", Closed(sub_workflow::SETTINGS)),
    served("core.approvalGate", Closed(gate::APPROVAL_SETTINGS)),
    served(
        "core.clarificationGate",
        Closed(gate::CLARIFICATION_SETTINGS),
    ),
    served("core.interrupt", ByConfig(interrupt::settings)),
    served("core.conversationGate", Closed(conversation::SETTINGS)),
    served("core.orchestrator.supervisor", Closed(supervisor::SETTINGS)),
    served("core.dispatch", ClosedByProtocol(dispatch::SETTINGS)),
    served("core.ai.structuredOutput", Closed(model::STRUCTURED)),
    served("core.llm.chat", Closed(model::CHAT)),
    served("core.mcp.toolCall", Closed(tool::CALL)),
    // A call of one tool. Prompts themselves are only available to conformance workflows.
    in_part("core.ai.callPrompt", ByConfig(call_prompt)),
    served("vendor.tandem.flow", Closed(chat_flow::SETTINGS)),
    served("vendor.tandem.http", Closed(http::SETTINGS)),
    served("vendor.tandem.memory", Closed(memory::SETTINGS)),
    gated(
        "core.openwop.governance.approvalGate",
        "authorization",
        Closed(GOVERNANCE),
    ),
];

/// The governance gate is known but not provided; its allowed configuration is published.
const GOVERNANCE: &[Setting] = &[
    value("title"),
    value("description"),
    value("requiredRole"),
    value("requiredScope"),
    value("quorum"),
    object("override", &[value("requiredRole"), value("audited")]),
    value("overrideBypassesQuorum"),
    value("timeoutSec"),
    value("resumeSchema"),
];

/// Either a tool is named under `mcp`, or a prompt by its id.
fn call_prompt(config: &Object) -> &'static [Setting] {
    if config.contains_key("mcp") {
        tool::PROMPT
    } else {
        model::PROMPT
    }
}

/// Every node type; registration and discovery both read this list.
pub(super) fn all_types() -> impl Iterator<Item = &'static NodeType> {
    CATALOG.iter().chain(conformance::NODE_TYPES)
}

pub fn node_type(type_id: &str) -> Option<&'static NodeType> {
    all_types().find(|t| t.type_id == type_id)
}

/// The types that are advertised to clients.
pub fn advertised_types() -> impl Iterator<Item = &'static str> {
    all_types()
        .filter(|t| t.availability == Availability::Served)
        .map(|t| t.type_id)
}
