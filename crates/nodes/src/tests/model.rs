//! Model calls: what is sent to each kind of provider, what is read from its answer, and what is
//! never disclosed.

use super::http::{caller, done, failed};
use super::server::{CannedResponse, Server};
use crate::{
    CallLimits, HostedProvider, MockEntry, MockProgram, ModelApi, ModelCaller, Performer,
    SchemaMode, Script, Secrets, UrlGuard,
};
use serde_json::{Value, json};
use tandem_record::{
    Effect, EffectId, EffectKind, EffectOutcome, MAX_NESTING, ModelAnswer, ModelMessage,
    ModelRequest, ModelRole, ModelStop, TraceContext,
};
use url::Url;

const KEY: &str = "sk-not-to-be-seen-anywhere";

fn model_request(schema: Option<Value>) -> ModelRequest {
    let message = |role, content: &str| ModelMessage {
        role,
        content: content.to_owned(),
    };
    ModelRequest {
        provider: "house".to_owned(),
        model: "large".to_owned(),
        messages: vec![
            message(ModelRole::System, "Be terse."),
            message(ModelRole::User, "Is it"),
            message(ModelRole::User, "fine?"),
        ],
        temperature: Some(0.5),
        max_output_tokens: Some(64),
        schema,
    }
}

fn effect(request: ModelRequest) -> Effect {
    Effect {
        id: "effect-1".into(),
        kind: EffectKind::Model {
            node: "n".into(),
            attempt: 0,
            request: Box::new(request),
            timeout_ms: 30_000,
        },
    }
}

fn hosted(model_api: ModelApi, url: &str, schema: SchemaMode) -> Performer {
    let mut models = ModelCaller::default();
    let guard = UrlGuard {
        allow_private: true,
        ..UrlGuard::default()
    };
    let hosted = HostedProvider {
        model_api,
        base_url: Url::parse(url).unwrap(),
        key: Some(KEY.to_owned()),
        schema,
        guard,
    };
    assert!(!format!("{hosted:?}").contains(KEY));
    models
        .add_hosted("house", hosted, CallLimits::default())
        .unwrap();
    Performer::new(caller(), Secrets::default()).with_models(models)
}

async fn perform(performer: &Performer, request: ModelRequest) -> EffectOutcome {
    let trace = TraceContext {
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
        tracestate: None,
    };
    performer
        .perform(&"run-1".into(), &effect(request), Some(&trace))
        .await
}

fn answer(outcome: EffectOutcome) -> ModelAnswer {
    serde_json::from_value(done(outcome)).unwrap()
}

fn object() -> Value {
    json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
           "additionalProperties": false})
}

#[tokio::test]
async fn openai_request_and_response_are_translated() {
    let reply = json!({
        "choices": [{"finish_reason": "stop", "message": {"content": "{\"ok\":true}"}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3,
                  "prompt_tokens_details": {"cached_tokens": 2}},
    });
    let server = Server::responding_with(CannedResponse::json("200 OK", &reply.to_string())).await;
    let url = format!("{}/v1", server.url);
    let performer = hosted(ModelApi::OpenAi, &url, SchemaMode::Native);
    let model_answer = answer(perform(&performer, model_request(Some(object()))).await);
    assert_eq!(
        (model_answer.text.as_deref(), model_answer.stop),
        (Some("{\"ok\":true}"), ModelStop::End)
    );
    let usage = model_answer.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (7, 3));
    assert_eq!(usage.cache_read_tokens, Some(2));

    let sent = server.only_request().await;
    assert!(
        sent.line.starts_with("POST /v1/chat/completions "),
        "{}",
        sent.line
    );
    assert_eq!(sent.header("authorization"), [format!("Bearer {KEY}")]);
    assert_eq!(sent.header("idempotency-key"), ["effect-1"]);
    assert!(sent.header("traceparent")[0].starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(
        body["messages"][0],
        json!({"role": "system", "content": "Be terse."})
    );
    assert_eq!(
        (&body["max_tokens"], &body["temperature"]),
        (&json!(64), &json!(0.5))
    );
    let format = &body["response_format"]["json_schema"];
    assert_eq!(
        (&format["strict"], &format["schema"]),
        (&json!(true), &object())
    );
}

#[tokio::test]
async fn schema_is_sent_as_text_when_unsupported_and_loose_schemas_are_not_strict() {
    let reply = json!({"choices": [{"finish_reason": "stop", "message": {"content": "{}"}}]});
    let server = Server::responding_with(CannedResponse::json("200 OK", &reply.to_string())).await;
    let performer = hosted(ModelApi::OpenAi, &server.url, SchemaMode::Text);
    let model_answer = answer(perform(&performer, model_request(Some(object()))).await);
    assert_eq!(model_answer.usage, None, "no numbers are invented");
    let body: Value = serde_json::from_str(&server.only_request().await.body).unwrap();
    assert_eq!(body.get("response_format"), None);
    assert!(
        body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("\"additionalProperties\"")
    );

    let server = Server::responding_with(CannedResponse::json("200 OK", &reply.to_string())).await;
    let performer = hosted(ModelApi::OpenAi, &server.url, SchemaMode::Native);
    let loose = json!({"type": "object", "properties": {"a": {"type": "object"}}});
    perform(&performer, model_request(Some(loose))).await;
    let body: Value = serde_json::from_str(&server.only_request().await.body).unwrap();
    assert_eq!(body["response_format"]["json_schema"]["strict"], false);
}

#[tokio::test]
async fn anthropic_request_and_response_are_translated() {
    let reply = json!({
        "content": [{"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "name": "answer", "input": {"ok": true}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 1,
                  "cache_creation_input_tokens": 5},
    });
    let server = Server::responding_with(CannedResponse::json("200 OK", &reply.to_string())).await;
    let performer = hosted(ModelApi::Anthropic, &server.url, SchemaMode::Native);
    let model_answer = answer(perform(&performer, model_request(Some(object()))).await);
    assert_eq!(
        (model_answer.data, model_answer.stop),
        (Some(json!({"ok": true})), ModelStop::End)
    );
    assert_eq!(model_answer.usage.unwrap().cache_write_tokens, Some(5));

    let sent = server.only_request().await;
    assert!(sent.line.starts_with("POST /v1/messages "), "{}", sent.line);
    assert_eq!(sent.header("x-api-key"), [KEY]);
    assert_eq!(sent.header("anthropic-version"), ["2023-06-01"]);
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(body["system"], "Be terse.");
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "Is it\n\nfine?"}])
    );
    assert_eq!(body["tools"][0]["input_schema"], object());
    assert_eq!(
        body["tool_choice"],
        json!({"type": "tool", "name": "answer"})
    );
    assert_eq!(body["max_tokens"], 64);
}

#[tokio::test]
async fn stop_reasons_and_refusals_are_distinguished() {
    let choice = |message: Value, finish: &str| json!({"choices": [{"finish_reason": finish, "message": message}]});
    let openai = [
        (
            choice(json!({"content": "x"}), "length"),
            ModelStop::MaxTokens,
            None,
        ),
        (
            choice(json!({"content": "x"}), "odd"),
            ModelStop::Unknown,
            None,
        ),
        (
            choice(json!({"content": null, "refusal": "No."}), "stop"),
            ModelStop::End,
            Some((Some("No."), None)),
        ),
        (
            choice(json!({"content": ""}), "content_filter"),
            ModelStop::End,
            Some((None, Some("content_filter"))),
        ),
    ];
    let block = |text: &str, stop: &str| json!({"content": [{"type": "text", "text": text}], "stop_reason": stop});
    let anthropic = [
        (block("x", "end_turn"), ModelStop::End, None),
        (block("x", "max_tokens"), ModelStop::MaxTokens, None),
        (block("x", "stop_sequence"), ModelStop::StopSequence, None),
        (
            block("No.", "refusal"),
            ModelStop::End,
            Some((Some("No."), Some("refusal"))),
        ),
    ];
    let all = openai.into_iter().map(|case| (ModelApi::OpenAi, case));
    let all = all.chain(
        anthropic
            .into_iter()
            .map(|case| (ModelApi::Anthropic, case)),
    );
    for (model_api, (reply, stop, refused)) in all {
        let server =
            Server::responding_with(CannedResponse::json("200 OK", &reply.to_string())).await;
        let performer = hosted(model_api, &server.url, SchemaMode::Native);
        let model_answer = answer(perform(&performer, model_request(None)).await);
        assert_eq!(model_answer.stop, stop, "{reply}");
        let reported = model_answer.refusal.map(|r| (r.text, r.category));
        let refused = refused.map(|(text, category): (Option<&str>, Option<&str>)| {
            (text.map(str::to_owned), category.map(str::to_owned))
        });
        assert_eq!(reported, refused, "{reply}");
    }
}

#[tokio::test]
async fn failures_have_protocol_codes_and_do_not_contain_address_key_or_prompt() {
    let long = r#"{"error": {"code": "context_length_exceeded", "message": "Is it fine?"}}"#;
    let shape = r#"{"error": {"param": "response_format", "message": "bad"}}"#;
    let huge = format!("{{\"x\": \"{}\"}}", "x".repeat(2_000_000));
    for (reply, code, retryable) in [
        (
            CannedResponse::json("429 Too Many", "{}"),
            "provider_quota_exhausted",
            true,
        ),
        (
            CannedResponse::json("503 Down", KEY),
            "provider_unavailable",
            true,
        ),
        (
            CannedResponse::json("529 Overloaded", "{}"),
            "provider_unavailable",
            true,
        ),
        (
            CannedResponse::json("401 No", KEY),
            "provider_unavailable",
            false,
        ),
        (
            CannedResponse::json("404 No", "{}"),
            "model_not_supported",
            false,
        ),
        (
            CannedResponse::json("400 Bad", long),
            "content_too_long",
            false,
        ),
        (
            CannedResponse::json("413 Large", "{}"),
            "content_too_long",
            false,
        ),
        (
            CannedResponse::json("400 Bad", shape),
            "response_schema_invalid",
            false,
        ),
        (
            CannedResponse::json("400 Bad", "Is it fine?"),
            "provider_unavailable",
            false,
        ),
        (
            CannedResponse::json("200 OK", "<html>"),
            "provider_unavailable",
            true,
        ),
        (
            CannedResponse::json("200 OK", "{}"),
            "provider_unavailable",
            true,
        ),
        (
            CannedResponse::json("200 OK", &huge),
            "provider_unavailable",
            false,
        ),
        (
            CannedResponse::json("302 Found", "{}"),
            "provider_unavailable",
            false,
        ),
        (CannedResponse::HangUp, "provider_unavailable", true),
    ] {
        let server = Server::responding_with(reply).await;
        let performer = hosted(ModelApi::OpenAi, &server.url, SchemaMode::Native);
        let error = failed(perform(&performer, model_request(None)).await);
        assert_eq!(
            (error.code.as_str(), error.retryable),
            (code, retryable),
            "{error:?}"
        );
        let reported = format!("{error:?}");
        for hidden in [KEY, "127.0.0.1", "fine"] {
            assert!(!reported.contains(hidden), "{reported}");
        }
    }
    let retry_later = CannedResponse::new("429 Too Many", &["retry-after: 7"], "");
    let server = Server::responding_with(retry_later).await;
    let performer = hosted(ModelApi::OpenAi, &server.url, SchemaMode::Native);
    let error = failed(perform(&performer, model_request(None)).await);
    assert_eq!(
        error.details,
        Some(json!({"status": 429, "retryAfterMs": 7000}))
    );
}

#[tokio::test]
async fn a_private_address_is_refused_unless_its_operator_allows_it() {
    let mut models = ModelCaller::default();
    let closed = HostedProvider {
        model_api: ModelApi::OpenAi,
        base_url: Url::parse("http://127.0.0.1:9/v1").unwrap(),
        key: None,
        schema: SchemaMode::Native,
        guard: UrlGuard::default(),
    };
    models
        .add_hosted("house", closed, CallLimits::default())
        .unwrap();
    let performer = Performer::new(caller(), Secrets::default()).with_models(models);
    let error = failed(perform(&performer, model_request(None)).await);
    assert_eq!(
        (error.code.as_str(), error.retryable),
        ("provider_unavailable", false)
    );
    assert!(!error.message.contains("127"), "{error:?}");

    let nobody = Performer::new(caller(), Secrets::default());
    let error = failed(perform(&nobody, model_request(None)).await);
    assert_eq!(error.code, "provider_not_supported");
}

fn scripted(script: Value) -> Performer {
    let mut models = ModelCaller::default();
    models.add_scripted(
        "house",
        Script::parse_for_nodes(&script.to_string()).unwrap(),
    );
    Performer::new(caller(), Secrets::default()).with_models(models)
}

#[tokio::test]
async fn script_gives_the_first_matching_unused_answer() {
    let performer = scripted(json!({
        "answers": [
            {"when": {"purpose": "extract"}, "structured": {"ok": true}, "times": 0},
            {"when": {"contains": "fine"}, "text": "Once."},
            {"fail": "overloaded"},
        ],
        "otherwise": {"text": "Always."},
    }));
    let call = async |id: &str, schema: Option<Value>| {
        let effect = Effect {
            id: EffectId::new(id),
            ..effect(model_request(schema))
        };
        performer.perform(&"run-1".into(), &effect, None).await
    };
    for _ in 0..2 {
        let model_answer = answer(call("e0", Some(object())).await);
        assert_eq!(model_answer.data, Some(json!({"ok": true})));
    }
    for _ in 0..2 {
        let model_answer = answer(call("e1", None).await);
        assert_eq!(
            model_answer.text.as_deref(),
            Some("Once."),
            "the same call, the same answer"
        );
    }
    let error = failed(call("e2", None).await);
    assert!(error.code == "provider_unavailable" && error.retryable);
    assert_eq!(
        answer(call("e2", None).await).text.as_deref(),
        Some("Always.")
    );
    let model_answer = answer(call("e3", None).await);
    assert_eq!(
        model_answer
            .usage
            .map(|u| (u.input_tokens, u.output_tokens)),
        Some((5, 1))
    );

    let silent = scripted(json!({"answers": []}));
    let error = failed(perform(&silent, model_request(None)).await);
    assert!(!error.retryable && error.message.contains("no answer left"));
}

#[test]
fn invalid_script_is_refused() {
    for (script, why) in [
        (json!({}), "answers"),
        (json!({"answers": [{}]}), "answer 0: needs one"),
        (json!({"answers": [{"text": "a", "fail": "b"}]}), "answer 0"),
        (
            json!({"answers": [{"text": "a", "toolCalls": []}]}),
            "toolCalls",
        ),
        (
            json!({"answers": [{"text": "a", "delayMs": 90_000}]}),
            "delayMs",
        ),
        (json!({"answers": [{"txt": "a"}]}), "txt"),
    ] {
        let refused = Script::parse_for_nodes(&script.to_string())
            .unwrap_err()
            .to_string();
        assert!(refused.contains(why), "{script}: {refused}");
    }
}

#[test]
fn mock_program_is_used_in_order_and_a_repeated_call_gets_the_same_answer() {
    let entry = |value: Value| serde_json::from_value::<MockEntry>(value).unwrap();
    let mut program = MockProgram::new(vec![
        entry(json!({"content": "a b"})),
        entry(json!({"stopReason": "safety", "refusalText": "No.", "extra": 1})),
        entry(json!({"content": {"ok": true}, "stopReason": "max_tokens"})),
    ]);
    let request = model_request(None);
    let mut take = |id: &str| program.take(&EffectId::new(id), &request);
    let first = take("e1").unwrap();
    assert_eq!(first.text.as_deref(), Some("a b"));
    assert_eq!(
        take("e2").unwrap().refusal.unwrap().text.as_deref(),
        Some("No.")
    );
    assert_eq!(take("e1").unwrap(), first);
    let third = take("e3").unwrap();
    assert_eq!(
        (third.text.as_deref(), third.stop),
        (Some("{\"ok\":true}"), ModelStop::MaxTokens)
    );
    assert_eq!(take("e4"), None);
}

#[tokio::test]
async fn too_deeply_nested_model_answer_is_unreadable() {
    let nested = (0..MAX_NESTING).fold(json!(1), |value, _| json!([value]));
    let reply = json!({"content": [{"type": "tool_use", "name": "answer", "input": nested}],
                       "stop_reason": "tool_use"});
    let server = Server::responding_with(CannedResponse::json("200 OK", &reply.to_string())).await;
    let performer = hosted(ModelApi::Anthropic, &server.url, SchemaMode::Native);
    let error = failed(perform(&performer, model_request(Some(object()))).await);
    assert_eq!(error.code, "provider_unavailable");
}
