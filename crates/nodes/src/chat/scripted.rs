//! The scripted chat model: no key, no network. Streams word by word.

use super::answer::{call_id, parse_object};
use super::call::{ChatReply, ChatRequest, PieceSink};
use super::failure::ProviderFailure;
use super::script_memory::{NotedCall, NotedMessage, ScriptMemory};
use crate::model::failure::UNAVAILABLE;
use crate::model::{Script, ScriptProgress, ScriptedAnswer, count_usage};
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
            let text = request.user_text();
            let choice = progress.take(script, &request.key, request.purpose, text);
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
    let text = answer.text.clone().or(written);
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
