//! The scripted chat model: no key, no network. Streams word by word.

use super::answer::{call_id, parse_object};
use super::call::{ChatReply, ChatRequest, PieceSink};
use super::failure::ProviderFailure;
use super::script_memory::{NotedCall, NotedMessage, ScriptMemory};
use crate::model::failure::UNAVAILABLE;
use crate::model::{Script, ScriptProgress, ScriptedAnswer, ScriptedCall, count_usage};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::conversation::{ChatAnswer, ChatRole, ChatToolCall};

pub(super) const PROVIDER: &str = "scripted";

pub(super) struct ScriptedChat {
    script: Script,
    memory: Arc<dyn ScriptMemory>,
}

impl ScriptedChat {
    pub(super) fn new(script: Script, memory: Arc<dyn ScriptMemory>) -> Self {
        Self { script, memory }
    }

    pub(super) async fn attempt(
        &self,
        request: &ChatRequest,
        pieces: Option<&PieceSink<'_>>,
    ) -> Result<ChatReply, ProviderFailure> {
        let mut chosen = None;
        let mut choose = |replacement: Option<&Script>, progress: &mut ScriptProgress| {
            let script = replacement.unwrap_or(&self.script);
            let asked = ScriptedCall {
                purpose: request.purpose,
                user_text: request.user_text(),
                after_tool: request.tool_result().map(|(tool, _)| tool),
            };
            let choice = progress.take(script, &request.key, &asked);
            chosen = script.answer(choice).cloned();
        };
        let taken = self
            .memory
            .take(&request.agent, self.note(request), &mut choose);
        taken
            .await
            .map_err(|error| ProviderFailure::new(&error.code, error.message))?;
        let Some(answer) = chosen else {
            let message = "The script of the agent's model has no answer left.";
            return Err(ProviderFailure::new(UNAVAILABLE, message));
        };
        if answer.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
        }
        if let Some(why) = &answer.fail {
            return Err(ProviderFailure::scripted(why));
        }
        let reply = reply(&answer, request);
        if let (Some(pieces), Some(text)) = (pieces, &reply.answer.text) {
            text.split_inclusive(' ')
                .for_each(|word| pieces.deliver(word));
        }
        Ok(reply)
    }

    fn note(&self, request: &ChatRequest) -> NotedCall {
        let note = |role, content: &str| NotedMessage {
            role,
            content: content.to_owned(),
        };
        let system = request.system.iter();
        let system = system.map(|text| note(ChatRole::System, text));
        let messages = request.messages.iter();
        let messages = messages.map(|message| note(message.role, &message.content));
        NotedCall {
            purpose: request.purpose,
            session_id: request.session.clone(),
            messages: system.chain(messages).collect(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            at: self.memory.now(),
        }
    }
}

fn reply(answer: &ScriptedAnswer, request: &ChatRequest) -> ChatReply {
    let written = answer.structured.as_ref().map(Value::to_string);
    let text = answer
        .text
        .as_ref()
        .map(|text| match request.tool_result() {
            Some((_, result)) => filled(text, result),
            None => text.clone(),
        });
    let text = text.or(written);
    let parsed = text.as_deref().filter(|_| request.wants_object());
    let parsed = parsed.and_then(parse_object);
    let calls = answer.tool_calls.iter().flatten().enumerate();
    let inputs = request.instructions();
    let spoken = request.messages.iter();
    let spoken = spoken.filter(|m| m.role != ChatRole::System);
    let inputs = inputs.chain(spoken.map(|m| m.content.as_str()));
    ChatReply {
        answer: ChatAnswer {
            usage: Some(count_usage(inputs, text.as_deref().unwrap_or_default())),
            text,
            structured: answer.structured.clone().or(parsed),
            tool_calls: calls
                .map(|(at, call)| ChatToolCall {
                    id: call_id(request, at),
                    name: call.name.clone(),
                    args: call.args.clone(),
                })
                .collect(),
        },
        is_truncated: false,
    }
}

/// Replaces `{{ result }}` and `{{ result.field }}` by what the tool answered. Other braces stay.
fn filled(text: &str, result: &str) -> String {
    let value = serde_json::from_str(result).unwrap_or_else(|_| Value::from(result));
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((path, tail)) = after.split_once("}}") else {
            break;
        };
        out.push_str(before);
        match found(&value, path.trim()) {
            Some(Value::String(text)) => out.push_str(text),
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(&format!("{{{{{path}}}}}")),
        }
        rest = tail;
    }
    out + rest
}

fn found<'a>(result: &'a Value, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let root = parts.next().filter(|name| *name == "result");
    root.and_then(|_| parts.try_fold(result, |value, part| value.get(part)))
}
