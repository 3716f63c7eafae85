//! `core.interrupt`: an interrupt of any kind, with explicit data. Kinds that have their own gate
//! are parsed by that gate, so that each kind is decided in one way.

use super::gate::{
    APPROVAL_DATA, ApprovalGate, CLARIFICATION_DATA, ClarificationGate, GenericInterrupt,
};
use super::interrupt_settings::TANDEM;
use super::settings::{Setting, object, value};
use super::{Kind, ParseContext};
use serde_json::Value;
use tandem_record::Object;

/// The settings of an interrupt of this kind.
pub(super) fn settings(config: &Object) -> &'static [Setting] {
    match config.get("kind").and_then(Value::as_str) {
        Some("approval") => APPROVAL,
        Some("clarification") => CLARIFICATION,
        Some("external-event") => EXTERNAL_EVENT,
        Some("custom") => CUSTOM,
        Some("low-confidence") => LOW_CONFIDENCE,
        _ => OTHER,
    }
}

const APPROVAL: &[Setting] = &[
    value("kind"),
    object("data", APPROVAL_DATA),
    value("timeoutMs"),
    value("resumeSchema"),
    value("profile"),
    object("tandem", TANDEM),
];
const CLARIFICATION: &[Setting] = &[
    value("kind"),
    object("data", CLARIFICATION_DATA),
    value("timeoutMs"),
    value("resumeSchema"),
    object("tandem", TANDEM),
];
const EXTERNAL_EVENT: &[Setting] = &[
    value("kind"),
    object("data", &[value("eventType"), value("correlation")]),
    value("timeoutMs"),
    value("resumeSchema"),
    object("tandem", TANDEM),
];
/// Whatever else belongs to the question stands under `payload`.
const CUSTOM: &[Setting] = &[
    value("kind"),
    object("data", &[value("customKind"), value("payload")]),
    value("timeoutMs"),
    value("resumeSchema"),
    object("tandem", TANDEM),
];
const LOW_CONFIDENCE: &[Setting] = &[
    value("kind"),
    object("data", LOW_CONFIDENCE_DATA),
    value("timeoutMs"),
    value("resumeSchema"),
    object("tandem", TANDEM),
];
const LOW_CONFIDENCE_DATA: &[Setting] = &[
    value("agentId"),
    value("threshold"),
    value("observed"),
    value("decision"),
];
/// The data of a host's own kinds is their asker's business.
const OTHER: &[Setting] = &[
    value("kind"),
    value("data"),
    value("timeoutMs"),
    value("resumeSchema"),
    object("tandem", TANDEM),
];

/// Required keys of an approval's `data`; a gate would set them itself.
const APPROVAL_NEEDS: [&str; 4] = ["artifactId", "artifactType", "title", "actions"];

pub(super) fn interrupt(config: &Object, cx: &mut ParseContext<'_>) -> Option<Kind> {
    match config.get("kind").and_then(Value::as_str) {
        Some("approval") => {
            let gate = gate_config(config, &APPROVAL_NEEDS, cx)?;
            ApprovalGate::parse(&gate, cx).map(Kind::ApprovalGate)
        }
        Some("clarification") => {
            let gate = gate_config(config, &["questions"], cx)?;
            ClarificationGate::parse(&gate, cx).map(Kind::ClarificationGate)
        }
        _ => GenericInterrupt::parse(config, cx).map(Kind::GenericInterrupt),
    }
}

/// The configuration for the gate of this kind.
fn gate_config(config: &Object, needs: &[&str], cx: &mut ParseContext<'_>) -> Option<Object> {
    let Some(Value::Object(data)) = config.get("data") else {
        return cx.bad("data", "must be an object");
    };
    if let Some(missing) = needs.iter().find(|key| !data.contains_key(**key)) {
        return cx.bad(&format!("data/{missing}"), format!("{missing} is required"));
    }
    let mut gate = data.clone();
    // These settings are beside the data, and nowhere else.
    for key in ["resumeSchema", "tandem", "timeoutMs", "profile"] {
        gate.remove(key);
        if let Some(value) = config.get(key) {
            gate.insert(key.to_owned(), value.clone());
        }
    }
    Some(gate)
}
