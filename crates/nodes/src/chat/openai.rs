//! Chat completions with tools, structured output and streaming.

use super::answer::{AnswerParts, CallParts, Finish};
use super::call::{ChatRequest, PieceSink};
use super::hosted::ModelParameters;
use crate::model::SchemaMode;
use crate::model::failure::{CallError, CallErrorReason as Reason};
use crate::model::openai::{output_limit_name, response_format, usage};
use crate::model::schema::schema_instruction;
use serde_json::{Value, json};
use tandem_record::conversation::{ChatMessage, ChatRole};

/// Ends a stream.
pub(super) const END_OF_STREAM: &[u8] = b"[DONE]";

pub(super) fn body(
    request: &ChatRequest,
    parameters: &ModelParameters,
    mode: SchemaMode,
    host: &str,
    is_streamed: bool,
) -> Value {
    let mut body = json!({"model": parameters.model, "messages": messages(request, mode)});
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(limit) = parameters.max_tokens {
        body[output_limit_name(host)] = json!(limit);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            }})
        });
        body["tools"] = tools.collect();
    }
    let schema = request.output_schema.as_ref();
    if let Some(schema) = schema.filter(|_| mode == SchemaMode::Native) {
        body["response_format"] = response_format(schema);
    }
    if is_streamed {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

fn messages(request: &ChatRequest, mode: SchemaMode) -> Vec<Value> {
    let schema = request.output_schema.as_ref();
    let schema = schema.filter(|_| mode == SchemaMode::Text);
    let instruction = schema.map(schema_instruction);
    let system = request.system.clone().filter(|text| !text.is_empty());
    let system = system.into_iter().chain(instruction);
    system
        .map(|text| json!({"role": "system", "content": text}))
        .chain(request.messages.iter().map(message))
        .collect()
}

fn message(message: &ChatMessage) -> Value {
    let role = match message.role {
        ChatRole::System => "system",
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Tool => "tool",
    };
    let mut body = json!({"role": role, "content": message.content});
    if !message.tool_calls.is_empty() {
        if message.content.is_empty() {
            body["content"] = Value::Null;
        }
        let calls = message.tool_calls.iter().map(|call| {
            // Arguments that were no JSON are shown as the model wrote them.
            let arguments = match &call.args {
                Value::String(text) => text.clone(),
                args => args.to_string(),
            };
            json!({"id": call.id, "type": "function", "function": {
                "name": call.name,
                "arguments": arguments,
            }})
        });
        body["tool_calls"] = calls.collect();
    }
    if let Some(id) = &message.tool_call_id {
        body["tool_call_id"] = json!(id);
    }
    body
}

/// Takes a whole response.
pub(super) fn absorb_response(parts: &mut AnswerParts, body: &Value) -> Result<(), CallError> {
    let choice = body.get("choices").and_then(|choices| choices.get(0));
    let choice = choice.ok_or(Reason::Unreadable)?;
    let message = choice.get("message").ok_or(Reason::Unreadable)?;
    absorb_message(parts, message, None)?;
    // A whole response without a reason is not one that was cut off.
    parts.finish.get_or_insert(Finish::Unknown);
    absorb_finish(parts, choice);
    parts.usage = usage(body.get("usage"));
    Ok(())
}

/// Takes one event of a stream.
pub(super) fn absorb_event(
    parts: &mut AnswerParts,
    event: &Value,
    pieces: Option<&PieceSink<'_>>,
) -> Result<(), CallError> {
    if event.get("error").is_some_and(|error| !error.is_null()) {
        return Err(Reason::Busy.into());
    }
    let counted = usage(event.get("usage"));
    let choices = event.get("choices").and_then(Value::as_array);
    if choices.is_none() && counted.is_none() {
        return Err(Reason::Unreadable.into());
    }
    parts.usage = counted.or(parts.usage);
    let Some(choice) = choices.and_then(|choices| choices.first()) else {
        return Ok(());
    };
    if let Some(delta) = choice.get("delta") {
        absorb_message(parts, delta, pieces)?;
    }
    absorb_finish(parts, choice);
    Ok(())
}

/// A message, or a piece of one.
fn absorb_message(
    parts: &mut AnswerParts,
    message: &Value,
    pieces: Option<&PieceSink<'_>>,
) -> Result<(), CallError> {
    match message.get("content") {
        Some(Value::String(text)) => parts.push_text(text, pieces),
        Some(Value::Array(blocks)) => {
            for text in blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str())
            {
                parts.push_text(text, pieces);
            }
        }
        _ => {}
    }
    let refusal = message.get("refusal").and_then(Value::as_str);
    if refusal.is_some_and(|words| !words.is_empty()) {
        parts.finish = Some(Finish::Refused);
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        absorb_call(parts, call)?;
    }
    Ok(())
}

/// A tool call, or a piece of one. Pieces of one call have the same index; a server without indexes
/// sends the id with the first piece only.
fn absorb_call(parts: &mut AnswerParts, call: &Value) -> Result<(), CallError> {
    let index = call.get("index").and_then(Value::as_u64);
    let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
    let function = call.get("function");
    let name = function.and_then(|f| f.get("name")?.as_str());
    let target = match index {
        Some(index) => parts.call_at(usize::try_from(index).unwrap_or(usize::MAX))?,
        None if id.is_empty() && name.is_none() && !parts.calls.is_empty() => {
            parts.calls.last_mut().expect("it is not empty")
        }
        None => parts.push_call(CallParts::default())?,
    };
    if !id.is_empty() {
        id.clone_into(&mut target.id);
    }
    if let Some(name) = name {
        target.name.push_str(name);
    }
    match function.and_then(|f| f.get("arguments")) {
        Some(Value::String(text)) => target.args.push_str(text),
        Some(Value::Null) | None => {}
        Some(value) => target.args.push_str(&value.to_string()),
    }
    Ok(())
}

/// A refusal stays one, whatever reason is given.
fn absorb_finish(parts: &mut AnswerParts, choice: &Value) {
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    let Some(reason) = reason.filter(|_| parts.finish != Some(Finish::Refused)) else {
        return;
    };
    parts.finish = Some(match reason {
        "stop" | "tool_calls" => Finish::Complete,
        "length" => Finish::OutputLimit,
        "content_filter" => Finish::Refused,
        _ => Finish::Unknown,
    });
}
