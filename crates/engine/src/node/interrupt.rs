//! `core.interrupt`: a question of any kind, with its data written out. The kinds that have a gate of
//! their own are asked by that gate, so that there is one way of deciding each.

use super::gate::{
    APPROVAL_DATA, ApprovalGate, CLARIFICATION_DATA, ClarificationGate, GenericInterrupt,
};
use super::interrupt_settings::TANDEM;
use super::settings::{Setting, object, value};
use super::{Kind, ParseContext};
use serde_json::Value;
use tandem_record::Object;

/// What a question of this kind may be configured with.
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

/// What `data` of an approval must say; a gate would make it up.
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

/// What the gate of this kind would be configured with.
fn gate_config(config: &Object, needs: &[&str], cx: &mut ParseContext<'_>) -> Option<Object> {
    let Some(Value::Object(data)) = config.get("data") else {
        return cx.bad("data", "must be an object");
    };
    if let Some(missing) = needs.iter().find(|key| !data.contains_key(**key)) {
        return cx.bad(&format!("data/{missing}"), format!("{missing} is required"));
    }
    let mut gate = data.clone();
    // How the question is put is said beside its data, and nowhere else.
    for key in ["resumeSchema", "tandem", "timeoutMs", "profile"] {
        gate.remove(key);
        if let Some(value) = config.get(key) {
            gate.insert(key.to_owned(), value.clone());
        }
    }
    Some(gate)
}
