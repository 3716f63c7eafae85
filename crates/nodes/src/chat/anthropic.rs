//! Anthropic's messages API with tools, structured output and streaming. An object is requested as the
//! arguments of a tool that the model must use.

use super::answer::{AnswerParts, CallParts, Finish};
use super::call::{ChatRequest, PieceSink};
use super::hosted::ModelParameters;
use crate::model::SchemaMode;
use crate::model::anthropic::{DEFAULT_OUTPUT_TOKENS, is_object_schema, usage};
use crate::model::failure::{CallError, CallErrorReason as Reason};
use crate::model::schema::schema_instruction;
use serde_json::{Map, Value, json};
use tandem_record::conversation::{ChatMessage, ChatRole};

/// The API begins with a message of the user, also where earlier ones were left out.
const EARLIER_MESSAGES: &str = "(Earlier messages are not shown.)";

pub(super) fn body(
    request: &ChatRequest,
    parameters: &ModelParameters,
    mode: SchemaMode,
    is_streamed: bool,
) -> Value {
    let limit = parameters
        .max_tokens
        .map_or(DEFAULT_OUTPUT_TOKENS, u64::from);
    let mut body = json!({
        "model": parameters.model,
        "max_tokens": limit,
        "messages": turns(&request.messages),
    });
    let answer_tool = answer_tool(request, mode);
    let schema = request.output_schema.as_ref();
    let in_words = schema.filter(|_| answer_tool.is_none());
    let instruction = in_words.map(schema_instruction);
    let system: Vec<&str> = request
        .instructions()
        .chain(instruction.as_deref())
        .collect();
    if !system.is_empty() {
        body["system"] = json!(system.join("\n\n"));
    }
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = json!(temperature);
    }
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            })
        })
        .collect();
    if let Some(name) = answer_tool {
        let description = "Gives the answer.";
        tools.push(json!({"name": name, "description": description, "input_schema": schema}));
        body["tool_choice"] = json!({"type": "any"});
    }
    if !tools.is_empty() {
        body["tools"] = json!(tools);
    }
    if is_streamed {
        body["stream"] = json!(true);
    }
    body
}

/// The name of the tool whose arguments are the answer; `None` when the schema is sent as text or
/// there is none.
pub(super) fn answer_tool(request: &ChatRequest, mode: SchemaMode) -> Option<String> {
    let schema = request.output_schema.as_ref()?;
    if mode != SchemaMode::Native || !is_object_schema(schema) {
        return None;
    }
    let mut name = "answer".to_owned();
    while request.tools.iter().any(|tool| tool.name == name) {
        name.push('_');
    }
    Some(name)
}

/// Turns of user and model. Adjacent messages of one side are one turn, since the API wants them to
/// alternate; results of tools belong to the user's side.
fn turns(messages: &[ChatMessage]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message.role {
            ChatRole::System => continue,
            ChatRole::User => ("user", text_block(&message.content)),
            ChatRole::Assistant => ("assistant", assistant_blocks(message)),
            ChatRole::Tool => ("user", vec![tool_result(message)]),
        };
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut().filter(|(last, _)| *last == role) {
            Some((_, turn)) => turn.extend(blocks),
            None => turns.push((role, blocks)),
        }
    }
    if turns.first().is_none_or(|(role, _)| *role == "assistant") {
        turns.insert(0, ("user", text_block(EARLIER_MESSAGES)));
    }
    turns
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect()
}

/// Blocks without text are refused by the API.
fn text_block(text: &str) -> Vec<Value> {
    match text.trim() {
        "" => Vec::new(),
        _ => vec![json!({"type": "text", "text": text})],
    }
}

fn assistant_blocks(message: &ChatMessage) -> Vec<Value> {
    let mut blocks = text_block(&message.content);
    blocks.extend(message.tool_calls.iter().map(|call| {
        let input = match &call.args {
            args @ Value::Object(_) => args.clone(),
            other => json!({"value": other}),
        };
        let id = block_id(&call.id);
        json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
    }));
    blocks
}

fn tool_result(message: &ChatMessage) -> Value {
    let id = block_id(message.tool_call_id.as_deref().unwrap_or_default());
    json!({"type": "tool_result", "tool_use_id": id, "content": message.content})
}

/// Ids of other providers may have characters that the API refuses.
fn block_id(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    id.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Takes a whole response.
pub(super) fn absorb_response(parts: &mut AnswerParts, body: &Value) -> Result<(), CallError> {
    let blocks = body.get("content").and_then(Value::as_array);
    for block in blocks.ok_or(Reason::Unreadable)? {
        absorb_block(parts, block, None)?;
    }
    parts.finish.get_or_insert(Finish::Unknown);
    absorb_finish(parts, body);
    parts.usage = usage(body.get("usage"));
    Ok(())
}

/// What a stream has told so far besides the answer's parts.
#[derive(Default)]
pub(super) struct StreamProgress {
    /// Usage is told in two events.
    usage: Map<String, Value>,
    pub(super) has_ended: bool,
}

/// Takes one event of a stream. Kinds of events that are not known are ignored, as the API requires.
pub(super) fn absorb_event(
    parts: &mut AnswerParts,
    progress: &mut StreamProgress,
    event: &Value,
    pieces: Option<&PieceSink<'_>>,
) -> Result<(), CallError> {
    let kind = event.get("type").and_then(Value::as_str);
    match kind.ok_or(Reason::Unreadable)? {
        "message_start" => absorb_usage(parts, progress, event.get("message")),
        "content_block_start" => {
            let block = event.get("content_block").ok_or(Reason::Unreadable)?;
            absorb_block(parts, block, pieces)?;
        }
        "content_block_delta" => {
            let delta = event.get("delta").ok_or(Reason::Unreadable)?;
            absorb_delta(parts, delta, pieces)?;
        }
        "message_delta" => {
            absorb_finish(parts, event.get("delta").unwrap_or(&Value::Null));
            absorb_usage(parts, progress, Some(event));
        }
        "message_stop" => progress.has_ended = true,
        "error" => return Err(Reason::Busy.into()),
        _ => {}
    }
    Ok(())
}

fn absorb_usage(parts: &mut AnswerParts, progress: &mut StreamProgress, event: Option<&Value>) {
    let told = event.and_then(|event| event.get("usage")?.as_object());
    for (name, count) in told.into_iter().flatten().filter(|(_, c)| c.is_u64()) {
        progress.usage.insert(name.clone(), count.clone());
    }
    parts.usage = usage(Some(&Value::Object(progress.usage.clone())));
}

/// A block of a whole response, or the beginning of one in a stream.
fn absorb_block(
    parts: &mut AnswerParts,
    block: &Value,
    pieces: Option<&PieceSink<'_>>,
) -> Result<(), CallError> {
    let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => parts.push_text(text("text"), pieces),
        "tool_use" => {
            let input = block.get("input").filter(|input| match input {
                // In a stream the input follows as text.
                Value::Object(members) => !members.is_empty(),
                Value::Null => false,
                _ => true,
            });
            parts.push_call(CallParts {
                id: text("id").to_owned(),
                name: text("name").to_owned(),
                args: input.map(Value::to_string).unwrap_or_default(),
            })?;
        }
        _ => {}
    }
    Ok(())
}

/// Blocks come one after the other, so that a piece of input belongs to the last call.
fn absorb_delta(
    parts: &mut AnswerParts,
    delta: &Value,
    pieces: Option<&PieceSink<'_>>,
) -> Result<(), CallError> {
    let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text_delta" => parts.push_text(text("text"), pieces),
        "input_json_delta" => {
            let call = parts.calls.last_mut().ok_or(Reason::Unreadable)?;
            call.args.push_str(text("partial_json"));
        }
        _ => {}
    }
    Ok(())
}

fn absorb_finish(parts: &mut AnswerParts, holder: &Value) {
    let Some(reason) = holder.get("stop_reason").and_then(Value::as_str) else {
        return;
    };
    parts.finish = Some(match reason {
        "end_turn" | "tool_use" | "stop_sequence" => Finish::Complete,
        "max_tokens" | "model_context_window_exceeded" => Finish::OutputLimit,
        "refusal" => Finish::Refused,
        _ => Finish::Unknown,
    });
}

/// Takes the answer out of the calls, if it was given as one.
pub(super) fn take_answer(parts: &mut AnswerParts, tool: &str) -> Result<(), CallError> {
    let Some(at) = parts.calls.iter().position(|call| call.name == tool) else {
        return Ok(());
    };
    let call = parts.calls.remove(at);
    let object = super::answer::parse_object(&call.args);
    parts.structured = Some(object.ok_or(Reason::Unreadable)?);
    Ok(())
}
