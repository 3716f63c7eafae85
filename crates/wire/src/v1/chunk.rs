//! A chunk of a model answer, as readers of the log and of `messages` streams see it.

use super::mask::mask_text;
use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::{ChunkPiece, OutputChunk, RunId, Sensitivity};

pub(super) fn chunk_payload(
    run: &RunId,
    event: &OutputChunk,
    sensitivity: &Sensitivity,
    out: &mut impl WriteFields,
) {
    // Chunks of a port are as sensitive as its whole value.
    let hidden = sensitivity.outputs.contains_key(&event.node);
    let shown = |text: &str| match hidden {
        true => mask_text(text, sensitivity.mode),
        false => json!(text),
    };
    out.node(&event.node);
    out.set("runId", run);
    out.set("chunk", shown(event.piece.text()));
    out.set("isLast", event.end.is_some());
    let mut meta = Fields::default();
    meta.set("model", &event.model);
    if let ChunkPiece::ToolCall {
        id,
        name,
        arguments,
    } = &event.piece
    {
        let call = json!({"id": id, "name": name, "arguments": shown(arguments)});
        meta.set("toolCalls", [call]);
    }
    if let Some(end) = event.end {
        meta.set("finishReason", end.finish.as_str());
        meta.set(
            "usage",
            json!({
                "promptTokens": end.usage.prompt_tokens,
                "completionTokens": end.usage.completion_tokens,
                "totalTokens": end.usage.total_tokens,
            }),
        );
    }
    out.set("meta", Value::Object(meta.0));
}
