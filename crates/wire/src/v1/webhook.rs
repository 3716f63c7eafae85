//! The body and headers of a webhook delivery.

use super::payload::type_name;
use super::project;
use serde_json::{Value, json};
use tandem_record::{RecordedEvent, RunId, Sensitivity};

/// The body of one event. `type` is repeated at the top level, where receivers route by it.
/// `workspace` is the run's workspace, else its tenant.
pub fn body(
    run: &RunId,
    workspace: &str,
    recorded: &RecordedEvent,
    sensitivity: &Sensitivity,
) -> Value {
    json!({
        "runId": run,
        "workspaceId": workspace,
        "type": type_name(&recorded.event),
        "event": project::event(run, recorded, sensitivity),
    })
}

/// The values that identify and sign a delivery.
pub struct DeliveryHeaders<'a> {
    pub webhook: &'a str,
    pub event_type: &'a str,
    pub timestamp: &'a str,
    pub signature: &'a str,
}

/// Every header under its current name and under its future name, with the same value.
pub fn headers(stamp: &DeliveryHeaders<'_>) -> Vec<(&'static str, String)> {
    [
        ("X-openwop-Webhook-Id", stamp.webhook),
        ("X-openwop-Event-Type", stamp.event_type),
        ("X-openwop-Timestamp", stamp.timestamp),
        ("X-openwop-Signature", stamp.signature),
        ("X-openwop-Signature-Algorithm", SIGNATURE_ALGORITHM),
        ("OpenWOP-Webhook-Id", stamp.webhook),
        ("OpenWOP-Event-Type", stamp.event_type),
        ("OpenWOP-Timestamp", stamp.timestamp),
        ("OpenWOP-Signature", stamp.signature),
        ("OpenWOP-Signature-Algorithm", SIGNATURE_ALGORITHM),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

pub const SIGNATURE_ALGORITHM: &str = "v1";

/// The signatures with the secrets to come, oldest first, while secrets are being rotated.
pub const NEXT_SIGNATURE: &str = "OpenWOP-Signature-Next";

/// Whether a text has the shape of an event name: words joined by dots. The protocol may add names,
/// so a subscription may contain a name this host never emits.
pub fn is_event_name(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    text.len() <= MAX_EVENT_NAME_BYTES && text.contains('.') && text.split('.').all(word)
}

const MAX_EVENT_NAME_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_are_segments_joined_by_dots() {
        for name in ["run.completed", "node.retry.scheduled", "x.my-host.thing_1"] {
            assert!(is_event_name(name), "{name}");
        }
        for text in ["", "run", "run.", ".run", "run..x", "*", "run.*", "a b.c"] {
            assert!(!is_event_name(text), "{text}");
        }
        assert!(!is_event_name(&format!("a.{}", "b".repeat(127))));
    }
}
