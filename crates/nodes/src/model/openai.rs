//! Chat completions, the API of OpenAI and of many other providers.

use super::schema::{SchemaMode, is_strict, with_schema_message};
use serde_json::{Value, json};
use tandem_record::{ModelAnswer, ModelMessage, ModelRefusal, ModelRequest, ModelStop, ModelUsage};

pub(crate) const PATH: &str = "chat/completions";
/// The only server that no longer accepts the old name of the output limit.
const RENAMED_LIMIT_HOST: &str = "api.openai.com";

pub(super) fn body(request: &ModelRequest, mode: SchemaMode, host: &str) -> Value {
    let schema = request.schema.as_ref();
    let messages = match schema.filter(|_| mode == SchemaMode::Text) {
        Some(schema) => message_bodies(&with_schema_message(request, schema)),
        None => message_bodies(&request.messages),
    };
    let mut body = json!({"model": request.model, "messages": messages});
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(limit) = request.max_output_tokens {
        body[output_limit_name(host)] = json!(limit);
    }
    if let Some(schema) = schema.filter(|_| mode == SchemaMode::Native) {
        body["response_format"] = response_format(schema);
    }
    body
}

/// The member of a request that limits the output.
pub(crate) fn output_limit_name(host: &str) -> &'static str {
    match host {
        RENAMED_LIMIT_HOST => "max_completion_tokens",
        _ => "max_tokens",
    }
}

/// Asks for JSON of a schema.
pub(crate) fn response_format(schema: &Value) -> Value {
    json!({
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": is_strict(schema), "schema": schema},
    })
}

fn message_bodies(messages: &[ModelMessage]) -> Vec<Value> {
    let messages = messages.iter();
    messages
        .map(|m| json!({"role": m.role.as_str(), "content": m.content}))
        .collect()
}

/// `None` when the body is not a valid answer.
pub(super) fn answer(body: &Value) -> Option<ModelAnswer> {
    let choice = body.get("choices")?.get(0)?;
    let message = choice.get("message")?;
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    let finish = choice.get("finish_reason").and_then(Value::as_str);
    let refusal = text(message, "refusal").filter(|words| !words.is_empty());
    let filtered = finish == Some("content_filter");
    Some(ModelAnswer {
        text: text(message, "content"),
        data: None,
        stop: match finish {
            Some("stop" | "tool_calls" | "content_filter") => ModelStop::End,
            Some("length") => ModelStop::MaxTokens,
            _ => ModelStop::Unknown,
        },
        refusal: (filtered || refusal.is_some()).then(|| ModelRefusal {
            text: refusal,
            category: filtered.then(|| "content_filter".to_owned()),
        }),
        usage: usage(body.get("usage")),
    })
}

/// The tokens the provider counted.
pub(crate) fn usage(usage: Option<&Value>) -> Option<ModelUsage> {
    let usage = usage?;
    let details = usage.get("prompt_tokens_details");
    Some(ModelUsage {
        input_tokens: usage.get("prompt_tokens")?.as_u64()?,
        output_tokens: usage.get("completion_tokens")?.as_u64()?,
        cache_read_tokens: details.and_then(|d| d.get("cached_tokens")?.as_u64()),
        cache_write_tokens: None,
    })
}
