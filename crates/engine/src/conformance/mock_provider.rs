//! The mock providers a run may name under `configurable.mockProvider`. Each is a function of its
//! configuration alone: it gives the script of a call, and a script runs without a provider.
//!
//! This module only parses the configuration; who may name a mock provider is checked elsewhere.
//! The catalogue is what discovery advertises and what refusals list.

use crate::definition::Problem;
use crate::definition::schema::problems;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::LazyLock;
use tandem_record::{
    ChunkEnd, ChunkPiece, ChunkUsage, ErrorInfo, FinishReason, MockEnding, MockScript,
};
use tandem_schema::{Meter, Schema};

/// The provider of the conformance workflows. It answers by program.
pub const MOCK_PROVIDER: &str = "mock";

/// All mock providers.
pub const MOCK_PROVIDERS: [&str; 4] = [STREAM_TEXT, TOOL_CALLS, ERROR, USAGE_ONLY];

const STREAM_TEXT: &str = "stream-text";
const TOOL_CALLS: &str = "tool-calls";
const ERROR: &str = "error";
const USAGE_ONLY: &str = "usage-only";

/// The option in which a run names its mock provider.
pub const KEY: &str = "mockProvider";
const MOCK_PATH: &str = "/configurable/mockProvider";

const MAX_ID_CHARS: usize = 128;
/// Maximum number of chunks of one answer. Each is an event, and one node gets up to three answers.
const MAX_PIECES: usize = 1_000;
/// Maximum text of all chunks together.
const MAX_BYTES: usize = 64 * 1024;
const MAX_DELAY_MS: u64 = 5_000;
const MAX_FAIL_AFTER_MS: u64 = 60_000;
/// The largest integer that every JSON reader reads exactly.
const MAX_TOKENS: u64 = (1 << 53) - 1;

/// A provider with its parsed configuration.
#[derive(Debug)]
pub(crate) struct Mock {
    pub(crate) model: String,
    pub(crate) script: MockScript,
}

/// Parses the value a run has under [`KEY`].
pub(crate) fn read(value: &Value) -> Result<Mock, Vec<Problem>> {
    let known = value["id"].as_str().and_then(|id| CHECKS.get_key_value(id));
    let Some((id, check)) = known else {
        return Err(problems(&ANY, value, MOCK_PATH, &Meter::unlimited()));
    };
    let found = problems(check, value, MOCK_PATH, &Meter::unlimited());
    if !found.is_empty() {
        return Err(found);
    }
    let config = value.get("config").cloned().unwrap_or_else(|| json!({}));
    let mock = match *id {
        STREAM_TEXT => stream_text(parse(config)?),
        TOOL_CALLS => tool_calls(parse(config)?),
        ERROR => error(parse(config)?),
        USAGE_ONLY => usage_only(parse(config)?),
        other => unreachable!("{other} is not in the catalogue"),
    };
    let bytes: usize = mock.script.pieces.iter().map(bytes).sum();
    if bytes > MAX_BYTES {
        let message = format!("say more than {MAX_BYTES} bytes together");
        let key = if *id == TOOL_CALLS {
            "toolCalls"
        } else {
            "tokens"
        };
        return Err(vec![Problem::new(
            format!("{MOCK_PATH}/config/{key}"),
            message,
        )]);
    }
    Ok(mock)
}

/// A value that a schema accepts as a whole number may still be written as a fraction.
fn parse<T: DeserializeOwned>(config: Value) -> Result<T, Vec<Problem>> {
    serde_json::from_value(config)
        .map_err(|e| vec![Problem::new(format!("{MOCK_PATH}/config"), e.to_string())])
}

fn bytes(piece: &ChunkPiece) -> usize {
    match piece {
        ChunkPiece::Text(text) => text.len(),
        ChunkPiece::ToolCall {
            id,
            name,
            arguments,
        } => id.len() + name.len() + arguments.len(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamText {
    #[serde(default = "default_tokens")]
    tokens: Vec<String>,
    #[serde(default)]
    delay_ms_per_token: u64,
    #[serde(default)]
    finish_reason: FinishReason,
    #[serde(default)]
    usage: Usage,
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCalls {
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    delay_ms_per_token: u64,
}

#[derive(Deserialize)]
struct ToolCall {
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    code: String,
    message: String,
    #[serde(default)]
    retryable: bool,
    #[serde(default)]
    fail_after_ms: u64,
}

#[derive(Deserialize)]
struct UsageOnly {
    usage: Usage,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

impl Usage {
    /// Fills in absent values.
    fn or(&self, prompt: u64, completion: u64) -> ChunkUsage {
        let prompt_tokens = self.prompt_tokens.unwrap_or(prompt);
        let completion_tokens = self.completion_tokens.unwrap_or(completion);
        ChunkUsage {
            prompt_tokens,
            completion_tokens,
            total_tokens: self
                .total_tokens
                .unwrap_or(prompt_tokens + completion_tokens),
        }
    }
}

fn default_tokens() -> Vec<String> {
    vec!["mock".to_owned(), " response".to_owned()]
}

/// One answer made of these chunks.
fn mock_answer(id: &str, pieces: Vec<ChunkPiece>, delay_ms: u64, end: ChunkEnd) -> Mock {
    Mock {
        model: format!("mock-{id}-v1"),
        script: MockScript {
            pieces,
            wait_ms: 0,
            delay_ms,
            ending: MockEnding::Answer(end),
        },
    }
}

fn stream_text(config: StreamText) -> Mock {
    let end = ChunkEnd {
        finish: config.finish_reason,
        usage: config.usage.or(1, config.tokens.len() as u64),
    };
    let pieces = config.tokens.into_iter().map(ChunkPiece::Text).collect();
    let mut mock = mock_answer(STREAM_TEXT, pieces, config.delay_ms_per_token, end);
    if let Some(model) = config.model {
        mock.model = model;
    }
    mock
}

fn tool_calls(config: ToolCalls) -> Mock {
    let end = ChunkEnd {
        finish: FinishReason::ToolCalls,
        usage: Usage::default().or(1, config.tool_calls.len() as u64),
    };
    let pieces = config
        .tool_calls
        .into_iter()
        .map(|call| ChunkPiece::ToolCall {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
        });
    mock_answer(TOOL_CALLS, pieces.collect(), config.delay_ms_per_token, end)
}

fn usage_only(config: UsageOnly) -> Mock {
    let end = ChunkEnd {
        finish: FinishReason::Stop,
        usage: config.usage.or(0, 0),
    };
    let nothing = ChunkPiece::Text(String::new());
    mock_answer(USAGE_ONLY, vec![nothing], 0, end)
}

fn error(config: Failure) -> Mock {
    let mut error = ErrorInfo::new(config.code, config.message);
    error.retryable = config.retryable;
    Mock {
        model: format!("mock-{ERROR}-v1"),
        script: MockScript {
            pieces: Vec::new(),
            wait_ms: config.fail_after_ms,
            delay_ms: 0,
            ending: MockEnding::Failure(error),
        },
    }
}

/// The schema of the value under [`KEY`], by the id of the provider.
static CHECKS: LazyLock<HashMap<&str, Schema>> = LazyLock::new(|| {
    let checks = MOCK_PROVIDERS.iter().map(|id| {
        let (config, needed) = config(id);
        let id_schema = json!({"const": id});
        (*id, validator(&id_schema, &config, needed))
    });
    checks.collect()
});

/// The schema that every such value has to match.
static ANY: LazyLock<Schema> = LazyLock::new(|| {
    let id = json!({
        "type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS, "enum": MOCK_PROVIDERS,
    });
    validator(&id, &json!({"type": "object"}), false)
});

fn validator(id: &Value, config: &Value, needed: bool) -> Schema {
    let required: &[&str] = if needed { &["id", "config"] } else { &["id"] };
    let schema = json!({
        "type": "object", "required": required, "additionalProperties": false,
        "properties": {"id": id, "config": config},
    });
    Schema::builtin(&schema)
}

/// The configuration schema of a provider, and whether a configuration is required.
fn config(id: &str) -> (Value, bool) {
    let count = json!({"type": "integer", "minimum": 0, "maximum": MAX_TOKENS});
    let usage = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"promptTokens": count, "completionTokens": count, "totalTokens": count},
    });
    let text = |longest: usize| json!({"type": "string", "minLength": 1, "maxLength": longest});
    let delay = json!({"type": "integer", "minimum": 0, "maximum": MAX_DELAY_MS});
    let (required, properties) = match id {
        STREAM_TEXT => {
            let finish = json!({"enum": ["stop", "length", "tool_calls", "content_filter"]});
            let tokens = json!({
                "type": "array", "minItems": 1, "maxItems": MAX_PIECES, "items": {"type": "string"},
            });
            let properties = json!({
                "tokens": tokens, "delayMsPerToken": delay, "finishReason": finish,
                "usage": usage, "model": text(256),
            });
            (json!([]), properties)
        }
        TOOL_CALLS => {
            let call = json!({
                "type": "object", "additionalProperties": false,
                "required": ["id", "name", "arguments"],
                "properties": {"id": text(256), "name": text(256), "arguments": {"type": "string"}},
            });
            let calls = json!({
                "type": "array", "minItems": 1, "maxItems": MAX_PIECES, "items": call,
            });
            let properties = json!({"toolCalls": calls, "delayMsPerToken": delay});
            (json!(["toolCalls"]), properties)
        }
        ERROR => {
            let wait = json!({"type": "integer", "minimum": 0, "maximum": MAX_FAIL_AFTER_MS});
            let code = json!({"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,128}$"});
            let properties = json!({
                "code": code, "message": text(1_024), "retryable": {"type": "boolean"},
                "failAfterMs": wait,
            });
            (json!(["code", "message"]), properties)
        }
        USAGE_ONLY => (json!(["usage"]), json!({"usage": usage})),
        other => unreachable!("{other} is not in the catalogue"),
    };
    let needed = required != json!([]);
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "required": required, "properties": properties,
    });
    (schema, needed)
}
