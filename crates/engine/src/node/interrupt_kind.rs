//! The kinds of interrupts by name: the data each requires, the status of a run that waits for one,
//! and its allowed answers. A kind of this host's own is `x-host-<host>-<kind>`.

use serde_json::Value;
use tandem_record::{LowConfidence, RunStatus};

/// The run's status while it waits for an interrupt of this kind.
pub(crate) fn waiting_status(kind: &str) -> RunStatus {
    match kind {
        "approval"
        | "low-confidence"
        | "conversation.start"
        | "conversation.exchange"
        | "conversation.close" => RunStatus::WaitingApproval,
        "external-event" => RunStatus::WaitingExternal,
        // A person has to review a decision that the host did not carry out.
        vendor if is_vendor(vendor) => RunStatus::WaitingApproval,
        _ => RunStatus::WaitingInput,
    }
}

/// Why a node is suspended, where the kind does not define it.
pub(crate) fn suspend_reason(kind: &str) -> Option<&'static str> {
    match kind {
        "conversation.exchange" => Some("conversation-input"),
        "low-confidence" => Some("low-confidence"),
        _ => None,
    }
}

/// `x-host-<host>-<kind>`, both parts lowercase and beginning with a letter.
pub(crate) fn is_vendor(kind: &str) -> bool {
    let Some(rest) = kind.strip_prefix("x-host-") else {
        return false;
    };
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = |part: &str| part.starts_with(|c: char| c.is_ascii_lowercase());
    let mut cuts = rest.match_indices('-');
    rest.chars().all(word) && begins(rest) && cuts.any(|(at, _)| at > 0 && begins(&rest[at + 1..]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    Text,
    Number,
    Object,
}

impl FieldType {
    pub(crate) fn holds(self, data: &Value, key: &str) -> bool {
        let found = data.get(key);
        match self {
            Self::Text => found.is_some_and(Value::is_string),
            Self::Number => found.is_some_and(Value::is_number),
            Self::Object => found.is_some_and(Value::is_object),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Object => "an object",
        }
    }
}

/// The agent and its confidence, for a low-confidence interrupt.
pub(crate) fn low_confidence(kind: &str, data: &Value) -> Option<LowConfidence> {
    if kind != "low-confidence" {
        return None;
    }
    Some(LowConfidence {
        agent_id: data["agentId"].as_str()?.to_owned(),
        threshold: data["threshold"].as_f64()?,
        observed: data["observed"].as_f64()?,
    })
}

/// What `data` must contain for an interrupt that any node may open; `None` for kinds that have
/// their own gate or that this host does not know.
pub(crate) fn data_needs(kind: &str) -> Option<&'static [(&'static str, FieldType)]> {
    match kind {
        "external-event" => Some(&[
            ("eventType", FieldType::Text),
            ("correlation", FieldType::Object),
        ]),
        "custom" => Some(&[("customKind", FieldType::Text)]),
        "low-confidence" => Some(&[
            ("agentId", FieldType::Text),
            ("threshold", FieldType::Number),
            ("observed", FieldType::Number),
        ]),
        vendor if is_vendor(vendor) => Some(&[]),
        _ => None,
    }
}

/// Why a value is not an answer to an interrupt of this kind, checked before the interrupt's own
/// schema.
pub(crate) fn refusal_reason(kind: &str, value: &Value) -> Option<&'static str> {
    let ratifies = kind == "low-confidence";
    (ratifies && value.is_null()).then_some(
        "ratify with {\"ratified\": true}, decide with {\"decision\": …}, or refuse with {\"rejected\": true}",
    )
}

/// The outcome that an answer stands for.
pub(crate) fn outcome(kind: &str, value: &Value) -> &'static str {
    let is_true = |key: &str| value.get(key) == Some(&Value::Bool(true));
    match kind {
        "low-confidence" if is_true("rejected") => "rejected",
        "low-confidence" => "ratified",
        _ => "resolved",
    }
}
