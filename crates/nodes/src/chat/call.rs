//! What a chat model is asked, and what it answers.

use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tandem_record::conversation::{ChatAnswer, ChatMessage, ChatRole, ModelPurpose};
use tandem_record::{AgentId, EffectId, SessionId, TraceContext};

/// One call of an agent's model.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The identity of the call: the same at every attempt.
    pub key: EffectId,
    pub agent: AgentId,
    /// `None` for a call outside a session.
    pub session: Option<SessionId>,
    pub purpose: ModelPurpose,
    /// The rendered system prompt.
    pub system: Option<String>,
    /// Oldest first. Messages of the role `system` are instructions too.
    pub messages: Vec<ChatMessage>,
    pub tools: Vec<ChatTool>,
    /// The answer has to be JSON of this schema; absent for plain text.
    pub output_schema: Option<Value>,
    /// Bounds the whole call, retries included.
    pub timeout: Duration,
    pub trace: Option<TraceContext>,
}

impl ChatRequest {
    /// Whether the answer is an object: text is read as JSON, and not streamed.
    pub(super) fn wants_object(&self) -> bool {
        self.output_schema.is_some() || self.purpose != ModelPurpose::Chat
    }

    /// The system prompt and the messages of the role `system`, in order.
    pub(super) fn instructions(&self) -> impl Iterator<Item = &str> {
        let messages = self.messages.iter();
        let messages = messages.filter(|m| m.role == ChatRole::System);
        self.system
            .as_deref()
            .into_iter()
            .chain(messages.map(|m| m.content.as_str()))
            .filter(|text| !text.is_empty())
    }

    /// The text of the user that is being answered.
    pub(super) fn user_text(&self) -> &str {
        let mut messages = self.messages.iter().rev();
        let last = messages.find(|m| m.role == ChatRole::User);
        last.map_or("", |message| message.content.as_str())
    }

    /// The tool whose result the call hands back last, and the result.
    pub(super) fn tool_result(&self) -> Option<(&str, &str)> {
        let last = self.messages.last().filter(|m| m.role == ChatRole::Tool)?;
        let mut calls = self.messages.iter().rev().flat_map(|m| &m.tool_calls);
        let call = calls.find(|call| last.tool_call_id.as_ref() == Some(&call.id))?;
        Some((&call.name, &last.content))
    }
}

/// A tool the model may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatTool {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatReply {
    /// Where an object was requested and the model wrote none, `structured` is absent and `text` is
    /// what it wrote.
    pub answer: ChatAnswer,
    /// The output limit ended the text.
    pub is_truncated: bool,
}

/// Receives the text of a streamed answer, piece by piece.
pub type ChatPieces<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Hands pieces on, and knows whether it did.
pub(super) struct PieceSink<'a> {
    pieces: ChatPieces<'a>,
    delivered: AtomicBool,
}

impl<'a> PieceSink<'a> {
    pub(super) fn new(pieces: ChatPieces<'a>) -> Self {
        Self {
            pieces,
            delivered: AtomicBool::new(false),
        }
    }

    pub(super) fn deliver(&self, piece: &str) {
        if !piece.is_empty() {
            self.delivered.store(true, Ordering::Relaxed);
            (self.pieces)(piece);
        }
    }

    pub(super) fn has_delivered(&self) -> bool {
        self.delivered.load(Ordering::Relaxed)
    }
}
