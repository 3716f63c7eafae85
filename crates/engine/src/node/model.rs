//! `core.ai.structuredOutput`, `core.llm.chat` and prompts by their ids: a call of a language
//! model. This module only parses the configuration; which providers exist is decided by the host.

use super::ParseContext;
use super::settings::{Setting, value};
use crate::model::{MAX_OUTPUT_TOKENS, MOCK_PROVIDER};
use serde_json::Value;
use tandem_record::{ErrorInfo, ModelMessage, ModelRole, Object};
use tandem_schema::Schema;

pub(super) const STRUCTURED: &[Setting] = &[
    value("provider"),
    value("model"),
    value("outputSchema"),
    value("maxTokens"),
    value("temperature"),
    value("retryOnInvalidJson"),
    value("nondeterministic"),
];
pub(super) const CHAT: &[Setting] = &[
    value("provider"),
    value("model"),
    value("systemPrompt"),
    value("userPrompt"),
    value("maxTokens"),
    value("temperature"),
    value("nondeterministic"),
];
pub(super) const PROMPT: &[Setting] = &[value("promptId"), value("expectsStreaming")];
const MAX_PROMPT_ID_CHARS: usize = 256;

/// Maximum number of messages of one request, and of bytes of their text.
const MAX_MESSAGES: usize = 1_000;
const MAX_PROMPT_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct ModelNode {
    /// Absent for a prompt by its id, which only a mock provider of the run can answer.
    pub(crate) provider: Option<String>,
    /// Absent: the provider's default.
    pub(crate) model: Option<String>,
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    /// Absent for a node that returns text.
    pub(crate) shape: Option<Shape>,
    system: Option<String>,
    user: Option<String>,
}

/// The JSON that a node requires.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) schema: Value,
    pub(crate) check: Schema,
}

impl ModelNode {
    pub(super) fn structured(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let schema = match config.get("outputSchema") {
            Some(schema @ Value::Object(_)) => schema.clone(),
            _ => return cx.bad("outputSchema", "must be a JSON Schema"),
        };
        let check = cx.schema("outputSchema", &schema)?;
        // Retries follow the host's rule, whatever a document says; the key is only parsed.
        match config.get("retryOnInvalidJson") {
            None | Some(Value::Null | Value::Bool(_)) => {}
            Some(value) if value.is_u64() => {}
            Some(_) => {
                return cx.bad(
                    "retryOnInvalidJson",
                    "must be a whole number, true or false",
                );
            }
        }
        let shape = Some(Shape { schema, check });
        Some(Self {
            shape,
            ..Self::common(config, cx)?
        })
    }

    pub(super) fn chat(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let (system, user) = (
            cx.text(config, "systemPrompt")?,
            cx.text(config, "userPrompt")?,
        );
        Some(Self {
            system,
            user,
            ..Self::common(config, cx)?
        })
    }

    /// A prompt that is named by its id. There is no library of prompts, so only the id is read,
    /// and the flag that the author expects a streamed answer.
    pub(super) fn prompt(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let id = cx.required_text(config, "promptId")?;
        if id.chars().count() > MAX_PROMPT_ID_CHARS {
            let message = format!("must have at most {MAX_PROMPT_ID_CHARS} characters");
            return cx.bad("promptId", message);
        }
        cx.flag(config, "expectsStreaming", false)?;
        Some(Self {
            provider: None,
            model: None,
            temperature: None,
            max_tokens: None,
            shape: None,
            system: None,
            user: None,
        })
    }

    fn common(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let provider = cx.required_text(config, "provider")?;
        if provider == MOCK_PROVIDER && !cx.test_hook() {
            return cx.bad(
                "provider",
                "the provider \"mock\" is for conformance workflows only: the workflow id must \
                 start with \"conformance-\", or the key must have the role \"conformance\"",
            );
        }
        let temperature = match config.get("temperature") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_f64().filter(|t| (0.0..=2.0).contains(t)) {
                Some(temperature) => Some(temperature),
                None => return cx.bad("temperature", "must be a number from 0 to 2"),
            },
        };
        let max_tokens = cx.whole(config, "maxTokens", 1)?;
        if max_tokens.is_some_and(|n| n > MAX_OUTPUT_TOKENS) {
            return cx.bad("maxTokens", format!("must be at most {MAX_OUTPUT_TOKENS}"));
        }
        cx.flag(config, "nondeterministic", false)?;
        Some(Self {
            provider: Some(provider),
            model: cx.text(config, "model")?.filter(|m| !m.is_empty()),
            temperature,
            max_tokens,
            shape: None,
            system: None,
            user: None,
        })
    }

    /// The messages to the model: the system prompt, the messages from the port `messages`, the
    /// user prompt. Ports of the same name replace absent prompts.
    pub(crate) fn messages(&self, inputs: &Object) -> Result<Vec<ModelMessage>, ErrorInfo> {
        let prompt = |role: ModelRole, configured: &Option<String>, port: &str| {
            let arrived = inputs.get(port).and_then(Value::as_str);
            let content = configured
                .as_deref()
                .or(arrived.filter(|_| self.shape.is_none()));
            content.map(|content| ModelMessage {
                role,
                content: content.to_owned(),
            })
        };
        let mut messages: Vec<ModelMessage> = Vec::new();
        messages.extend(prompt(ModelRole::System, &self.system, "systemPrompt"));
        match inputs.get("messages") {
            None | Some(Value::Null) => {}
            Some(Value::Array(given)) if given.len() <= MAX_MESSAGES => {
                for (at, message) in given.iter().enumerate() {
                    messages.push(read_message(message).ok_or_else(|| unreadable(at))?);
                }
            }
            Some(Value::Array(_)) => return Err(too_long(format!("{MAX_MESSAGES} messages"))),
            Some(_) => {
                let message = "the port \"messages\" must bring a list of messages";
                return Err(ErrorInfo::new("validation_error", message));
            }
        }
        messages.extend(prompt(ModelRole::User, &self.user, "userPrompt"));
        // The content of a prompt named by its id is not known here.
        let by_id = self.provider.is_none();
        if !by_id && !messages.iter().any(|m| m.role == ModelRole::User) {
            let message = "there is nothing to ask: no message of a user, in config or inputs";
            return Err(ErrorInfo::new("validation_error", message));
        }
        let bytes: usize = messages.iter().map(|m| m.content.len()).sum();
        if bytes > MAX_PROMPT_BYTES {
            return Err(too_long(format!("{MAX_PROMPT_BYTES} bytes of prompt")));
        }
        Ok(messages)
    }
}

/// `{role, content}` with a text. Other content would be lost, so such a message is refused.
fn read_message(message: &Value) -> Option<ModelMessage> {
    let members = message.as_object()?;
    let role = match members.get("role")?.as_str()? {
        "system" => ModelRole::System,
        "user" => ModelRole::User,
        "assistant" => ModelRole::Assistant,
        _ => return None,
    };
    let content = members.get("content")?.as_str()?.to_owned();
    (members.len() == 2).then_some(ModelMessage { role, content })
}

fn unreadable(at: usize) -> ErrorInfo {
    let message = format!(
        "message {at} is not understood: it has a role (system, user or assistant), a text as its \
         content, and nothing else"
    );
    ErrorInfo::new("validation_error", message)
}

fn too_long(limit: String) -> ErrorInfo {
    ErrorInfo::new(
        "content_too_long",
        format!("a request holds at most {limit}"),
    )
}
