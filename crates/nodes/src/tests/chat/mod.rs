//! Chat models: what is sent to each kind of provider, what is read from its answers and streams, and
//! what happens when a provider misbehaves.

mod anthropic;
mod breaker;
mod failures;
mod openai;
mod scripted;
mod speech;
mod streams;

use super::server::CannedResponse;
use crate::{
    CallLimits, ChatModel, ChatReply, ChatRequest, ChatSettings, ChatTool, HostedProvider,
    ModelApi, ProviderFailure, RetrySettings, SchemaMode, UrlGuard,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::conversation::{ChatMessage, ChatRole, ChatToolCall, ModelPurpose};
use url::Url;

const KEY: &str = "sk-not-to-be-seen-anywhere";

/// Two attempts without delay.
const ONE_RETRY: RetrySettings = RetrySettings {
    max_retries: 1,
    ..RetrySettings::NEVER
};

fn settings(model_api: ModelApi, url: &str) -> ChatSettings {
    ChatSettings {
        provider: "house".to_owned(),
        hosted: HostedProvider {
            model_api,
            base_url: Url::parse(url).unwrap(),
            key: Some(KEY.to_owned()),
            schema: SchemaMode::Native,
            guard: UrlGuard {
                allow_private: true,
                ..UrlGuard::default()
            },
        },
        model: "large".to_owned(),
        temperature: Some(0.5),
        max_tokens: Some(64),
    }
}

fn hosted(model_api: ModelApi, url: &str) -> ChatModel {
    ChatModel::hosted(settings(model_api, url), CallLimits::default()).unwrap()
}

fn request() -> ChatRequest {
    ChatRequest {
        key: "call-1".into(),
        agent: "desk".into(),
        session: Some("s-1".into()),
        purpose: ModelPurpose::Chat,
        system: Some("Be terse.".to_owned()),
        messages: vec![ChatMessage::new(ChatRole::User, "how much?")],
        tools: Vec::new(),
        output_schema: None,
        timeout: Duration::from_secs(30),
        trace: None,
    }
}

fn price_tool() -> ChatTool {
    ChatTool {
        name: "price".to_owned(),
        description: "Price of a service".to_owned(),
        parameters: json!({"type": "object", "properties": {"service": {"type": "string"}}}),
    }
}

/// A request whose history has a tool call and its result.
fn request_after_tool() -> ChatRequest {
    let asked = ChatMessage {
        tool_calls: vec![ChatToolCall {
            id: "c 1".to_owned(),
            name: "price".to_owned(),
            args: json!({"service": "cleaning"}),
        }],
        ..ChatMessage::new(ChatRole::Assistant, "")
    };
    let result = ChatMessage {
        tool_call_id: Some("c 1".to_owned()),
        ..ChatMessage::new(ChatRole::Tool, "40")
    };
    let mut request = request();
    request.messages.extend([asked, result]);
    request.tools.push(price_tool());
    request
}

fn reply_schema() -> Value {
    json!({"type": "object", "properties": {"reply": {"type": "string"}}, "required": ["reply"],
           "additionalProperties": false})
}

async fn call(model: &ChatModel, request: &ChatRequest) -> Result<ChatReply, ProviderFailure> {
    model.call(request, &RetrySettings::NEVER, None).await
}

/// Calls with streaming; returns the pieces too.
async fn stream(
    model: &ChatModel,
    request: &ChatRequest,
    retry: &RetrySettings,
) -> (Result<ChatReply, ProviderFailure>, Vec<String>) {
    let pieces = Mutex::new(Vec::new());
    let result = model
        .call(
            request,
            retry,
            Some(&|piece| pieces.lock().push(piece.to_owned())),
        )
        .await;
    (result, pieces.into_inner())
}

fn ok(body: &Value) -> CannedResponse {
    CannedResponse::json("200 OK", &body.to_string())
}

const STREAM_HEADER: &str = "content-type: text/event-stream; charset=utf-8";

/// The events of a complete stream.
fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

fn streamed(body: &str) -> CannedResponse {
    CannedResponse::new("200 OK", &[STREAM_HEADER], body)
}
