//! Effects of flows: what is accepted, what is refused, what a replay compares.

mod accepted;
mod fingerprints;
mod refused;

use super::FlowEffect;
use serde_json::{Value, json};

fn parsed(effect: &Value) -> FlowEffect {
    FlowEffect::parse(effect).unwrap_or_else(|bad| panic!("{effect} is refused: {bad}"))
}

fn problems(effect: &Value) -> Vec<String> {
    match FlowEffect::parse(effect) {
        Ok(effect) => panic!("accepted: {effect:?}"),
        Err(bad) => bad.problems,
    }
}

/// §4.2: one effect of each type with its required fields alone, and whether it pauses.
fn minimal() -> [(Value, bool); 13] {
    [
        (json!({"type": "say", "text": "Hello"}), false),
        (json!({"type": "ask", "key": "k", "text": "When?"}), true),
        (json!({"type": "tool", "name": "t", "args": {}}), false),
        (json!({"type": "handoff", "to": "other"}), false),
        (json!({"type": "end"}), false),
        (
            json!({"type": "interrupt.confirm", "question": "Sure?"}),
            true,
        ),
        (
            json!({"type": "interrupt.escalate", "mode": "live_takeover", "reason": "r"}),
            false,
        ),
        (
            json!({"type": "interrupt.wait", "waitFor": "admin_resolution"}),
            true,
        ),
        (
            json!({"type": "interrupt.proxy.start", "target": "t"}),
            false,
        ),
        (json!({"type": "interrupt.proxy.wait"}), true),
        (json!({"type": "interrupt.proxy.stop"}), false),
        (json!({"type": "workflow.run", "workflowId": "w"}), true),
        (
            json!({"type": "workflow.run", "workflowId": "w", "wait": false}),
            false,
        ),
    ]
}
