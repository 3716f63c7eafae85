//! Runs with a mock provider, and the invariants of its output: each call emits its tokens in
//! order, none twice, and all of them if it was answered, whatever crashed in between. Only the
//! mock provider answers calls of such a run or of its children.

use super::check::ensure;
use crate::workflow_builder::wf;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use std::collections::HashMap;
use tandem_record::{Event, MockCall, NodeId, RecordedEvent, RunId, Work};

pub(super) const MOCK_CHAT: &str = "talking";

/// Two concurrent models, slow enough to be interrupted, and one after them.
pub(super) fn chat_workflow(rng: &mut SmallRng) -> Value {
    let chat = || json!({"provider": "acme", "userPrompt": "Well?"});
    let mut flow = wf(MOCK_CHAT)
        .variable("v", json!("default"))
        .settings(json!({"maxRetries": rng.random_range(0..3)}));
    for name in ["one", "other", "after"] {
        flow = flow.node(name, "core.llm.chat", chat());
        if rng.random_bool(0.3) {
            let settings = json!({"timeoutMs": rng.random_range(100..3_000)});
            flow = flow.with("settings", settings);
        }
    }
    flow.path("one after").path("other after").document()
}

/// JSON that fits the schema of the simulation's nodes, or does not, at a random speed.
pub(super) fn provider(rng: &mut SmallRng) -> Value {
    let tokens = match rng.random_range(0..3) {
        0 => json!(["not", " JSON"]),
        1 => json!(["{}"]),
        _ => json!(["{", "\"a\":", "1", "}"]),
    };
    let delay = [0, rng.random_range(1..700)][rng.random_range(0..2)];
    json!({"id": "stream-text", "config": {"tokens": tokens, "delayMsPerToken": delay}})
}

pub(super) fn check_streamed_output(run: &RunId, log: &[RecordedEvent]) -> Result<(), String> {
    let mut mocked = false;
    // The call of each node, and its recorded chunks.
    let mut calls: HashMap<&NodeId, (&MockCall, Vec<&str>)> = HashMap::new();
    for recorded in log {
        let (node, work) = match &recorded.event {
            Event::RunStarted { request, .. } => {
                let configurable = request.options.configurable.as_ref();
                mocked = configurable.is_some_and(|c| c.contains_key("mockProvider"));
                continue;
            }
            Event::NodeStarted {
                node,
                work: Some(work),
                ..
            } => (node, work),
            Event::ModelRetried(again) => (&again.node, &again.work),
            Event::OutputChunk(event) => {
                let (call, texts) = calls.get_mut(&event.node).ok_or_else(|| {
                    format!("{run}: {} emitted output without a call", event.node)
                })?;
                texts.push(event.piece.text());
                let next = call.script.pieces.get(texts.len() - 1);
                let last = texts.len() == call.script.pieces.len();
                ensure(
                    next == Some(&event.piece) && last == event.end.is_some(),
                    || format!("{run}: {} says {texts:?}", event.node),
                )?;
                continue;
            }
            Event::ModelAnswered(event) => {
                let Some((call, texts)) = calls.get(&event.node) else {
                    continue;
                };
                ensure(texts.len() == call.script.pieces.len(), || {
                    format!("{run}: {} was answered after {texts:?}", event.node)
                })?;
                ensure(event.answer.text == Some(texts.concat()), || {
                    format!("{run}: {} was answered {:?}", event.node, event.answer)
                })?;
                continue;
            }
            _ => continue,
        };
        let Work::Model { mock, .. } = work else {
            continue;
        };
        ensure(mock.is_some() == mocked, || {
            format!("{run}: {node} calls a provider other than the mock")
        })?;
        calls.remove(node);
        calls.extend(mock.as_ref().map(|call| (node, (&**call, Vec::new()))));
    }
    Ok(())
}
