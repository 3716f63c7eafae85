//! Puts an answer together from what a provider sends, whole or piece by piece, and checks it.

use super::call::{ChatReply, ChatRequest, PieceSink};
use crate::model::failure::{CallError, CallErrorReason as Reason};
use serde_json::Value;
use tandem_record::conversation::{ChatAnswer, ChatToolCall};
use tandem_record::{MAX_NESTING, ModelUsage, nests_deeper};

/// Limit of tool calls in one answer.
const MAX_TOOL_CALLS: usize = 128;

/// Why the provider ended the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Complete,
    OutputLimit,
    Refused,
    Unknown,
}

/// The parts of an answer that have arrived.
#[derive(Default)]
pub(super) struct AnswerParts {
    pub(super) text: String,
    pub(super) calls: Vec<CallParts>,
    /// The object, if the provider returns it as one.
    pub(super) structured: Option<Value>,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Option<ModelUsage>,
}

/// The name of a tool call that gives none. No tool has it.
const UNNAMED: &str = "unnamed";

/// A tool call; its arguments are JSON as text.
#[derive(Default)]
pub(super) struct CallParts {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: String,
}

impl AnswerParts {
    pub(super) fn push_text(&mut self, text: &str, pieces: Option<&PieceSink<'_>>) {
        self.text.push_str(text);
        if let Some(pieces) = pieces {
            pieces.deliver(text);
        }
    }

    pub(super) fn push_call(&mut self, call: CallParts) -> Result<&mut CallParts, CallError> {
        if self.calls.len() >= MAX_TOOL_CALLS {
            return Err(Reason::Unreadable.into());
        }
        self.calls.push(call);
        Ok(self.calls.last_mut().expect("a call was pushed"))
    }

    /// The call at a place, which is created with those before it.
    pub(super) fn call_at(&mut self, at: usize) -> Result<&mut CallParts, CallError> {
        if at >= MAX_TOOL_CALLS {
            return Err(Reason::Unreadable.into());
        }
        if self.calls.len() <= at {
            self.calls.resize_with(at + 1, CallParts::default);
        }
        Ok(&mut self.calls[at])
    }

    /// About how much memory the parts take.
    pub(super) fn bytes(&self) -> usize {
        let calls = self.calls.iter();
        let calls: usize = calls
            .map(|call| call.id.len() + call.name.len() + call.args.len())
            .sum();
        self.text.len() + calls
    }

    /// The answer, if it is complete.
    pub(super) fn into_reply(self, request: &ChatRequest) -> Result<ChatReply, CallError> {
        let finish = self.finish.ok_or(Reason::CutOff)?;
        match finish {
            Finish::Complete | Finish::OutputLimit => {}
            Finish::Refused => return Err(Reason::Refused.into()),
            Finish::Unknown => return Err(Reason::UnknownFinish.into()),
        }
        let has_text = !self.text.trim().is_empty();
        let is_truncated = finish == Finish::OutputLimit;
        let is_plain_text = has_text && self.calls.is_empty() && !request.wants_object();
        if is_truncated && !is_plain_text {
            return Err(Reason::Truncated.into());
        }
        let tool_calls = tool_calls(self.calls, request)?;
        if !has_text && tool_calls.is_empty() && self.structured.is_none() {
            return Err(Reason::Empty.into());
        }
        let written = || parse_object(&self.text).filter(|_| request.wants_object());
        let structured = match tool_calls.is_empty() {
            true => self.structured.or_else(written),
            false => None,
        };
        Ok(ChatReply {
            answer: ChatAnswer {
                text: has_text.then_some(self.text),
                structured,
                tool_calls,
                usage: self.usage,
            },
            is_truncated,
        })
    }
}

/// The calls with their arguments parsed. A call without an id of its own gets one. Arguments that cannot be parsed
/// stay a text: no tool takes one, so the model is told (Z-38).
fn tool_calls(
    parts: Vec<CallParts>,
    request: &ChatRequest,
) -> Result<Vec<ChatToolCall>, CallError> {
    let mut calls: Vec<ChatToolCall> = Vec::with_capacity(parts.len());
    for (at, part) in parts.into_iter().enumerate() {
        let args = match part.args.trim() {
            "" => "{}",
            args => args,
        };
        if nests_deeper(args.as_bytes(), MAX_NESTING) {
            return Err(Reason::Unreadable.into());
        }
        let args = serde_json::from_str(args).unwrap_or_else(|_| Value::from(args));
        let is_taken = calls.iter().any(|call| call.id == part.id);
        let id = match part.id.is_empty() || is_taken {
            true => call_id(request, at),
            false => part.id,
        };
        // Providers refuse a history with a call that names no tool.
        let name = match part.name.trim() {
            "" => UNNAMED.to_owned(),
            _ => part.name,
        };
        calls.push(ChatToolCall { id, name, args });
    }
    Ok(calls)
}

/// The id of a tool call that got none: unique in its session.
pub(super) fn call_id(request: &ChatRequest, at: usize) -> String {
    format!("{}-{at}", request.key)
}

/// JSON that a model wrote, also between the fences of a code block.
pub(super) fn parse_object(text: &str) -> Option<Value> {
    let text = text.trim();
    let fenced = || {
        let (_, inner) = text.strip_prefix("```")?.split_once('\n')?;
        inner.trim_end().strip_suffix("```")
    };
    let json = fenced().unwrap_or(text);
    if nests_deeper(json.as_bytes(), MAX_NESTING) {
        return None;
    }
    serde_json::from_str(json).ok()
}
