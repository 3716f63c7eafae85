//! Test-only types of the protocol's conformance workflows. Registration accepts them only there.

use super::settings::{Setting, value};
use super::{Kind, ParseContext, ToolNode};
use serde_json::Value;
use tandem_record::Object;

pub(super) const SECRET_ECHO: &[Setting] = &[value("secretId")];
pub(super) const COST_EMIT: &[Setting] = &[value("attrs")];
pub(super) const ARTIFACT_EMIT: &[Setting] =
    &[value("artifactId"), value("artifactType"), value("content")];

/// Cost attributes that are allowed in events; all others in that namespace are dropped.
const COST_ATTRIBUTES: [&str; 8] = [
    "openwop.cost.tokens.input",
    "openwop.cost.tokens.output",
    "openwop.cost.tokens.total",
    "openwop.cost.usd",
    "openwop.cost.currency",
    "openwop.cost.estimated",
    "openwop.cost.provider",
    "openwop.cost.model",
];

pub(crate) fn allowed_cost(attributes: &Object) -> Object {
    attributes
        .iter()
        .filter(|(name, value)| {
            COST_ATTRIBUTES.contains(&name.as_str()) && !value.is_object() && !value.is_array()
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(super) fn parse(type_id: &str, config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    match type_id {
        "conformance.requiresMissing" => Some(Kind::RequiresMissing {
            capability: "conformance.never-provided",
        }),
        "conformance.modelCapability.insufficient" => Some(Kind::ModelCapabilityMissing),
        "conformance.secret.echo" => Some(Kind::SecretEcho {
            secret_id: cx.required_text(config, "secretId")?,
        }),
        "conformance.cost.emit" => Some(Kind::CostEmit {
            attributes: match config.get("attrs") {
                Some(Value::Object(attributes)) => attributes.clone(),
                _ => return cx.bad("attrs", "must be an object"),
            },
        }),
        "conformance.artifact.emit" => Some(Kind::ArtifactEmit {
            artifact_id: cx.text(config, "artifactId")?,
            artifact_type: cx
                .text(config, "artifactType")?
                .unwrap_or_else(|| "conformance.artifact".to_owned()),
            content: config.get("content").cloned().unwrap_or(Value::Null),
        }),
        "core.conformance.side-effect" => Some(Kind::SideEffect),
        "core.conformance.hold" => Some(Kind::Hold),
        "core.conformance.mcp-client" => ToolNode::client(config, cx).map(Kind::Tool),
        "core.conformance.mcp-invoke" => ToolNode::prompt(config, cx).map(Kind::Tool),
        other => unreachable!("{other} is not in the catalog of test-only types"),
    }
}
