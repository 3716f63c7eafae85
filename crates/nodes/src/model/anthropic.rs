//! Anthropic's messages API. JSON with a schema is requested as the arguments of a tool that the
//! model must use.

use super::schema::{SchemaMode, with_schema_message};
use serde_json::{Value, json};
use tandem_record::{
    ModelAnswer, ModelMessage, ModelRefusal, ModelRequest, ModelRole, ModelStop, ModelUsage,
};

pub(crate) const PATH: &str = "v1/messages";
pub(crate) const VERSION: &str = "2023-06-01";
/// The API requires a limit.
pub(crate) const DEFAULT_OUTPUT_TOKENS: u64 = 4_096;
const TOOL: &str = "answer";

pub(super) fn body(request: &ModelRequest, mode: SchemaMode) -> Value {
    let schema = request.schema.as_ref();
    let native = schema.filter(|s| mode == SchemaMode::Native && is_object_schema(s));
    let messages = match schema.filter(|_| native.is_none()) {
        Some(schema) => with_schema_message(request, schema),
        None => request.messages.clone(),
    };
    let limit = request.max_output_tokens.unwrap_or(DEFAULT_OUTPUT_TOKENS);
    let mut body = json!({
        "model": request.model,
        "max_tokens": limit,
        "messages": turns(&messages),
    });
    let system: Vec<&str> = messages
        .iter()
        .filter(|m| m.role == ModelRole::System)
        .map(|m| m.content.as_str())
        .collect();
    if !system.is_empty() {
        body["system"] = json!(system.join("\n\n"));
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(schema) = native {
        let description = "Gives the answer.";
        let tool = json!({"name": TOOL, "description": description, "input_schema": schema});
        body["tools"] = json!([tool]);
        body["tool_choice"] = json!({"type": "tool", "name": TOOL});
    }
    body
}

/// Whether the schema can be a tool's. A tool's arguments are an object, so any other schema is sent
/// as text.
pub(crate) fn is_object_schema(schema: &Value) -> bool {
    schema.get("type") == Some(&Value::from("object"))
}

/// Turns of user and model; adjacent messages of one role are one turn.
fn turns(messages: &[ModelMessage]) -> Vec<Value> {
    let mut turns: Vec<(ModelRole, String)> = Vec::new();
    for message in messages.iter().filter(|m| m.role != ModelRole::System) {
        match turns.last_mut().filter(|(role, _)| *role == message.role) {
            Some((_, text)) => {
                text.push_str("\n\n");
                text.push_str(&message.content);
            }
            None => turns.push((message.role, message.content.clone())),
        }
    }
    let turns = turns.into_iter();
    turns
        .map(|(role, content)| json!({"role": role.as_str(), "content": content}))
        .collect()
}

/// `None` when the body is not a valid answer.
pub(super) fn answer(body: &Value) -> Option<ModelAnswer> {
    let blocks = body.get("content")?.as_array()?;
    let kind = |block: &&Value, wanted: &str| block.get("type") == Some(&Value::from(wanted));
    let texts = blocks.iter().filter(|b| kind(b, "text"));
    let text: Vec<&str> = texts.filter_map(|b| b.get("text")?.as_str()).collect();
    let text = (!text.is_empty()).then(|| text.concat());
    let used = blocks.iter().find(|b| kind(b, "tool_use"));
    let stop = body.get("stop_reason").and_then(Value::as_str);
    let refused = stop == Some("refusal");
    Some(ModelAnswer {
        refusal: refused.then(|| ModelRefusal {
            text: text.clone(),
            category: Some("refusal".to_owned()),
        }),
        text,
        data: used.and_then(|b| b.get("input")).cloned(),
        stop: match stop {
            Some("end_turn" | "tool_use" | "refusal") => ModelStop::End,
            Some("max_tokens") => ModelStop::MaxTokens,
            Some("stop_sequence") => ModelStop::StopSequence,
            _ => ModelStop::Unknown,
        },
        usage: usage(body.get("usage")),
    })
}

/// The tokens the provider counted.
pub(crate) fn usage(usage: Option<&Value>) -> Option<ModelUsage> {
    let usage = usage?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    Some(ModelUsage {
        input_tokens: count("input_tokens")?,
        output_tokens: count("output_tokens")?,
        cache_read_tokens: count("cache_read_input_tokens"),
        cache_write_tokens: count("cache_creation_input_tokens"),
    })
}
