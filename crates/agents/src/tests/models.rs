//! Calls of an agent's model: prompt, tools, schemas, streaming, providers.

use super::fixtures::*;
use super::tools::server;
use crate::OperatorModel;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_nodes::{ModelApi, NotedCall, SchemaMode, UrlGuard};
use tandem_record::conversation::AgentStatus;
use tandem_record::conversation::{ChatAnswer, ChatMessage, ChatRole, CodeError, ModelPurpose};
use tandem_runtime::conversation::{AgentHost, CallContext, ChatModelRequest};

fn scripted(script: &Value) -> String {
    format!("model: {{ provider: 'scripted', script: {script} }},")
}

fn says(text: &str) -> String {
    scripted(&json!({"answers": [], "otherwise": {"text": text}}))
}

fn request(purpose: ModelPurpose, tools: &[&str]) -> ChatModelRequest {
    ChatModelRequest {
        purpose,
        messages: vec![ChatMessage::new(ChatRole::User, "how much is it?")],
        tools: tools.iter().map(ToString::to_string).collect(),
        streams: true,
    }
}

async fn ask_with(
    desk: &Desk,
    request: &ChatModelRequest,
    context: &CallContext,
) -> Result<ChatAnswer, CodeError> {
    desk.agents.call_model(request, context, &|_| {}).await
}

async fn ask(desk: &Desk) -> Result<ChatAnswer, CodeError> {
    ask_with(desk, &request(ModelPurpose::Chat, &[]), &context()).await
}

fn last_call(desk: &Desk) -> NotedCall {
    let calls = desk.scripts.calls(&demo_id());
    calls.into_iter().last().expect("a call")
}

/// The system prompt of the last call.
fn system(desk: &Desk) -> String {
    let first = last_call(desk)
        .messages
        .into_iter()
        .next()
        .expect("a message");
    assert_eq!(first.role, ChatRole::System);
    first.content
}

/// Z-36 (half: the template sees the user, the session, the state and what `context` returned)
#[tokio::test]
async fn prompt_is_rendered_with_its_variables() {
    let source = format!(
        "export default {{ prompt: '{{{{ user.displayName }}}} {{{{ session.id }}}} {{{{ state.cart | length }}}} {{{{ hours }}}} {{{{ nothing.at.all }}}}.',
           context: async (ctx) => ({{ hours: 'of ' + ctx.agentId }}), {} }};",
        says("Hi")
    );
    let desk = desk(&[("demo/agent.ts", &source)]);
    let context = CallContext {
        kv: BTreeMap::from([("cart".to_owned(), json!([1, 2]))]),
        ..context()
    };
    let answer = ask_with(&desk, &request(ModelPurpose::Chat, &[]), &context)
        .await
        .expect("an answer");
    assert_eq!(answer.text.as_deref(), Some("Hi"));
    assert_eq!(system(&desk), "Ann s_1 2 of demo .");
    let call = last_call(&desk);
    assert_eq!(
        (call.session_id, call.purpose),
        (context.session, ModelPurpose::Chat)
    );
    assert_eq!(call.messages[1].content, "how much is it?");
}

/// Z-36 (half: the template sees the summaries of earlier sessions)
#[tokio::test]
async fn prompt_sees_what_earlier_sessions_were_about() {
    let source = format!(
        "export default {{ prompt: 'Before:{{% for s in session.earlier %}} {{{{ s.summary }}}};{{% endfor %}}', {} }};",
        says("Hi")
    );
    let desk = desk(&[("demo/agent.ts", &source)]);
    let mut context = context();
    for (earlier, expected) in [
        (json!([]), "Before:"),
        (
            json!([{"summary": "a table"}, {"summary": "a bill"}]),
            "Before: a table; a bill;",
        ),
    ] {
        context.data["session"]["earlier"] = earlier;
        let request = request(ModelPurpose::Chat, &[]);
        ask_with(&desk, &request, &context)
            .await
            .expect("an answer");
        assert_eq!(system(&desk), expected);
    }
}

#[tokio::test]
async fn prompt_may_be_a_function() {
    let source = |prompt: &str| format!("export default {{ prompt: {prompt}, {} }};", says("Hi"));
    let desk = desk(&[(
        "demo/agent.ts",
        &source("async (ctx) => 'For ' + ctx.user.displayName"),
    )]);
    ask(&desk).await.expect("an answer");
    assert_eq!(system(&desk), "For Ann");
    for bad in [
        "() => 7",
        "() => ' '",
        "() => { throw new Error('no prompt'); }",
    ] {
        desk.write("demo/agent.ts", &source(bad));
        desk.registry.reload();
        let failed = ask(&desk).await.expect_err("no prompt");
        assert!(failed.message.contains("prompt"), "{failed:?}");
    }
    assert_eq!(
        desk.scripts.calls(&demo_id()).len(),
        1,
        "the model is not called"
    );
}

#[tokio::test]
async fn failing_context_function_fails_the_call() {
    for bad in ["() => 7", "() => { throw new Error('down'); }"] {
        let desk = demo(&format!("context: {bad}, {}", says("Hi")));
        let failed = ask(&desk).await.expect_err("no variables");
        assert!(failed.message.contains("context"), "{failed:?}");
    }
    let desk = demo(&format!("context: () => undefined, {}", says("Hi")));
    assert!(ask(&desk).await.is_ok());
}

/// Z-36 (half: language, length and modality add their instructions), Z-3 (half: without settings nothing is added)
#[tokio::test]
async fn settings_add_instructions() {
    let table = [
        ("", json!({}), ""),
        ("language: 'de',", json!({}), "German"),
        (
            "language: 'auto',",
            json!({}),
            "language of the user's message",
        ),
        ("modality: 'voice',", json!({}), "read aloud"),
        ("", json!({"preferredReplyFormat": "voice"}), "read aloud"),
        (
            "modality: 'text',",
            json!({"preferredReplyFormat": "voice"}),
            "",
        ),
        (
            "",
            json!({"preferredReplyLength": "short"}),
            "short replies",
        ),
        ("", json!({"preferredReplyFormat": "dynamic"}), ""),
        (
            "outputSchema: { type: 'object' },",
            json!({"preferredReplyFormat": "dynamic"}),
            "`modality`",
        ),
    ];
    for (fields, preferences, expected) in table {
        let desk = demo(&format!("{fields} {}", says("{}")));
        let mut context = context();
        context.data["user"]["preferences"] = preferences.clone();
        ask_with(&desk, &request(ModelPurpose::Chat, &[]), &context)
            .await
            .expect("an answer");
        let system = system(&desk);
        let added = system
            .strip_prefix("You are the desk.")
            .expect("the prompt first");
        assert!(
            added.contains(expected),
            "{fields} {preferences}: {added:?}"
        );
        assert_eq!(
            added.is_empty(),
            expected.is_empty(),
            "{fields} {preferences}: {added:?}"
        );
    }
}

/// Z-112 (half: the description and the schema of a flow)
#[tokio::test]
async fn tools_and_flows_are_offered() {
    let server = server(|_| {
        Some((
            200,
            json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
                .to_string(),
        ))
    })
    .await;
    let fields = format!(
        "model: {{ provider: 'openai', model: 'm', baseUrl: '{}/v1' }},
         tools: [{{ name: 'price', description: 'Price', parameters: {{ type: 'object', required: ['s'] }}, handler: () => 1 }},
           {{ name: 'standard', handler: () => 1, parameters: {{ '~standard': {{ version: 1, vendor: 'x', validate: (value) => ({{ value }}),
             jsonSchema: {{ input: () => ({{ type: 'object', title: 'S' }}) }} }} }} }},
           {{ name: 'bare', kind: 'record' }}],
         flows: {{ quote: {{ run: async function* () {{}}, description: 'A quote', inputSchema: {{ type: 'object', title: 'Q' }}, asTool: {{ alias: 'make_quote' }} }} }}",
        server.url
    );
    let desk = demo(&fields);
    let request = request(
        ModelPurpose::Chat,
        &["price", "standard", "bare", "make_quote", "quote", "none"],
    );
    let answer = ask_with(&desk, &request, &context())
        .await
        .expect("an answer");
    assert_eq!(answer.text.as_deref(), Some("Hi"));
    let requests = server.requests.lock();
    let offered = requests[0].1["tools"].as_array().expect("tools");
    let offered: Vec<_> = offered.iter().map(|tool| &tool["function"]).collect();
    let names: Vec<_> = offered
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["price", "standard", "bare", "make_quote"]);
    // The server compares in lower case.
    assert_eq!(offered[0]["description"], "price");
    assert_eq!(offered[0]["parameters"]["required"], json!(["s"]));
    assert_eq!(offered[1]["parameters"]["title"], "s");
    assert_eq!(offered[2]["parameters"]["type"], "object");
    assert_eq!(offered[3]["description"], "a quote");
    assert_eq!(offered[3]["parameters"]["title"], "q");
}

#[tokio::test]
async fn router_and_extraction_use_the_messages_as_given() {
    let script = json!({"answers": [{"when": {"purpose": "router"}, "structured": {"flow": "f"}}, {"when": {"purpose": "chat"}, "text": "no"}]});
    let extraction = json!({"answers": [], "otherwise": {"structured": {"date": "Monday"}}});
    let fields = format!(
        "{} extractionModel: {{ provider: 'scripted', script: {extraction} }},
         flows: {{ f: async function* () {{}} }}, flowRouter: {{ mode: 'detector', prompt: 'Which?', outputSchema: {{ type: 'object' }} }}",
        scripted(&script)
    );
    let desk = demo(&fields);
    let routed = ask_with(&desk, &request(ModelPurpose::Router, &[]), &context())
        .await
        .expect("an answer");
    assert_eq!(routed.structured, Some(json!({"flow": "f"})));
    assert_eq!(last_call(&desk).messages.len(), 1, "no system prompt");
    let read = ask_with(&desk, &request(ModelPurpose::Extract, &[]), &context())
        .await
        .expect("an answer");
    assert_eq!(read.structured, Some(json!({"date": "Monday"})));
}

/// Z-135 (half: an author's own schema decides about the structured answer and may change it)
#[tokio::test]
async fn standard_schema_validates_the_answer() {
    let schema = "outputSchema: { '~standard': { version: 1, vendor: 'x',
        validate: (v) => typeof v.reply === 'string' ? { value: { reply: v.reply.trim() } } : { issues: [{ message: 'is text', path: ['reply'] }] } } },";
    let script = json!({"answers": [{"structured": {"reply": " hi "}}, {"text": "{\"reply\": 7}"}, {"text": "no JSON"}]});
    let desk = demo(&format!("{schema} {}", scripted(&script)));
    assert_eq!(
        ask(&desk).await.expect("an answer").structured,
        Some(json!({"reply": "hi"}))
    );
    let mut second = context();
    second.key = "k2".into();
    let failed = ask_with(&desk, &request(ModelPurpose::Chat, &[]), &second)
        .await
        .expect_err("it does not fit");
    assert!(failed.message.contains("reply: is text"), "{failed:?}");
    second.key = "k3".into();
    let third = ask_with(&desk, &request(ModelPurpose::Chat, &[]), &second)
        .await
        .expect("an answer");
    assert_eq!(
        (third.structured, third.text.as_deref()),
        (None, Some("no JSON"))
    );
}

/// Z-41 (half: a text is streamed if the agent wants it and the session allows it)
#[tokio::test]
async fn text_is_streamed_where_nobody_has_to_see_it_first() {
    let table = [
        ("finalizationStrategy: 'streaming',", true, true),
        ("", true, false),
        ("finalizationStrategy: 'streaming',", false, false),
    ];
    for (fields, streams, is_streamed) in table {
        let desk = demo(&format!("{fields} {}", says("Hello you")));
        let pieces = Mutex::new(String::new());
        let keep = |piece: &str| pieces.lock().push_str(piece);
        let request = ChatModelRequest {
            streams,
            ..request(ModelPurpose::Chat, &[])
        };
        desk.agents
            .call_model(&request, &context(), &keep)
            .await
            .expect("an answer");
        let expected = if is_streamed { "Hello you" } else { "" };
        assert_eq!(pieces.into_inner(), expected, "{fields}");
    }
}

#[tokio::test]
async fn script_comes_from_a_file_and_is_watched_with_it() {
    let fields = "model: { provider: 'scripted', script: 'models/script.json' }";
    let desk = desk(&[
        ("demo/agent.ts", &agent(fields)),
        (
            "demo/models/script.json",
            r#"{"answers": [], "otherwise": {"text": "one"}}"#,
        ),
    ]);
    assert_eq!(
        ask(&desk).await.expect("an answer").text.as_deref(),
        Some("one")
    );
    desk.write(
        "demo/models/script.json",
        r#"{"answers": [], "otherwise": {"text": "two"}}"#,
    );
    desk.registry.reload();
    assert_eq!(
        ask(&desk).await.expect("an answer").text.as_deref(),
        Some("two")
    );
    for broken in ["{", r#"{"answers": 7}"#, r#"{"answers": [{"txt": "x"}]}"#] {
        desk.write("demo/models/script.json", broken);
        desk.registry.reload();
        let errors = desk.error_texts();
        assert!(
            errors.len() == 1 && errors[0].starts_with("models/script.json: "),
            "{errors:?}"
        );
        assert_eq!(
            ask(&desk).await.expect("an answer").text.as_deref(),
            Some("two"),
            "the last good one"
        );
    }
}

#[test]
fn agent_with_an_unusable_script_is_invalid() {
    for script in [
        "'none.json'",
        "'../outside.json'",
        "'.'",
        "{ answers: [{ when: { purpose: 'x' } }] }",
    ] {
        let desk = demo(&format!(
            "model: {{ provider: 'scripted', script: {script} }}"
        ));
        assert_eq!(desk.summary().status, AgentStatus::Invalid, "{script}");
        assert_eq!(desk.summary().errors.len(), 1, "{script}");
    }
}

#[tokio::test]
async fn models_that_cannot_be_called_say_why() {
    let table = [
        ("", "has no model"),
        (
            "model: { provider: 'pigeon', model: 'm' }",
            "no model provider \"pigeon\"",
        ),
        ("model: { provider: 'openai' }", "names no model"),
        (
            "model: { provider: 'openai', model: 'm', apiKeyEnv: 'NOT_SET' }",
            "NOT_SET",
        ),
        (
            "model: { provider: 'openai', model: 'm', apiKeyEnv: 'TANDEM_SECRET' }",
            "TANDEM_SECRET",
        ),
    ];
    for (fields, message) in table {
        let failed = ask(&demo(fields)).await.expect_err("no model");
        assert!(failed.message.contains(message), "{fields}: {failed:?}");
    }
}

fn operator(base_url: &str) -> BTreeMap<String, OperatorModel> {
    let model = OperatorModel::Hosted {
        model_api: ModelApi::OpenAi,
        base_url: base_url.parse().expect("a URL"),
        key: Some("operators-key".to_owned()),
        schema: SchemaMode::default(),
        guard: UrlGuard {
            allow_private: true,
            ..UrlGuard::default()
        },
        default_model: Some("house-model".to_owned()),
    };
    BTreeMap::from([("house".to_owned(), model)])
}

/// The operator's key goes to the operator's address and to no other.
#[tokio::test]
async fn key_of_the_operator_stays_with_its_address() {
    let server = server(|_| {
        Some((
            200,
            json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
                .to_string(),
        ))
    })
    .await;
    let url = format!("{}/v1", server.url);
    let table = [
        (
            "model: { provider: 'house' }".to_owned(),
            Some("operators-key"),
        ),
        (
            "model: { provider: 'house', apiKeyEnv: 'CLINIC_KEY' }".to_owned(),
            Some("agents-own-key"),
        ),
        (
            format!("model: {{ provider: 'house', baseUrl: '{url}' }}"),
            None,
        ),
        (
            format!("model: {{ provider: 'house', baseUrl: '{url}', apiKeyEnv: 'CLINIC_KEY' }}"),
            Some("agents-own-key"),
        ),
    ];
    for (fields, key) in table {
        let desk = desk_with(&[("demo/agent.ts", &agent(&fields))], operator(&url));
        ask(&desk).await.expect("an answer");
        let (head, body) = server.requests.lock().pop().expect("a request");
        assert_eq!(body["model"], "house-model", "{fields}");
        match key {
            Some(key) => assert!(
                head.contains(&format!("authorization: bearer {key}")),
                "{fields}: {head}"
            ),
            None => assert!(!head.contains("authorization"), "{fields}: {head}"),
        }
    }
}
