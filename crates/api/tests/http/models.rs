//! Model nodes over HTTP: the conformance suite's mock model, the events clients see, and a replay
//! when the model now answers differently.

use crate::test_server::{TestServer, chain, noop};
use serde_json::{Value, json};

const PROGRAM: &str = "/v1/host/sample/test/mock-ai/program";

fn asking(id: &str, provider: &str) -> Value {
    let schema = json!({"type": "object", "required": ["valid"],
                        "properties": {"valid": {"type": "boolean"}}});
    let config = json!({"provider": provider, "model": "mini", "maxTokens": 50,
                        "outputSchema": schema});
    let ask = json!({"id": "ask", "typeId": "core.ai.structuredOutput", "config": config});
    let mut document = chain(id, &[ask, noop("z")]);
    let messages = json!([{"role": "user", "content": "Please emit a valid envelope."}]);
    document["nodes"][0]["inputs"]["messages"] = json!({"type": "static", "value": messages});
    document
}

async fn run_with_program(program: Value) -> (TestServer, String) {
    let server = TestServer::new().await;
    let entries = program.as_array().unwrap().len();
    let body = json!({"nodeId": "ask", "program": program});
    let reply = server.post(PROGRAM, body).await.ok(200);
    assert_eq!(reply, json!({"nodeId": "ask", "entries": entries}));
    let path = "/v1/host/tandem/workflows/conformance-m";
    server
        .put(path, asking("conformance-m", "mock"))
        .await
        .ok(201);
    let run = server.create("conformance-m").await;
    server.advance(0).await;
    (server, run)
}

/// Types and payloads of the node's events.
async fn events(server: &TestServer, run: &str) -> Vec<(String, Value)> {
    let log = server.log(run).await;
    let events = log["events"].as_array().unwrap().iter();
    events
        .map(|e| (e["type"].as_str().unwrap().to_owned(), e["payload"].clone()))
        .collect()
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn model_events_report_usage_and_retries_without_content() {
    let (server, run) = run_with_program(json!([
        {"content": "prose-7f3a"},
        {"content": "{\"valid\": tr", "stopReason": "max_tokens"},
        {"content": "```json\n{\"valid\": true}\n```"},
    ]))
    .await;
    let events = events(&server, &run).await;
    assert_eq!(
        names(&events),
        [
            "run.started",
            "node.started",
            "provider.usage",
            "envelope.retry.attempted",
            "provider.usage",
            "envelope.truncated",
            "envelope.retry.attempted",
            "provider.usage",
            "envelope.recovery.applied",
            "node.completed",
            "node.started",
            "node.completed",
            "run.completed",
        ]
    );
    let usage = json!({"nodeId": "ask", "provider": "mock", "model": "mini", "inputTokens": 5,
                       "outputTokens": 1, "totalTokens": 6});
    assert_eq!(events[2].1, usage);
    let retry = json!({"nodeId": "ask", "attempt": 2, "reason": "parse-error",
                       "previousError": "the answer is not JSON"});
    assert_eq!(events[3].1, retry);
    let cut = json!({"nodeId": "ask", "provider": "mock", "model": "mini",
                     "stopReason": "max_tokens", "outputTokenCount": 2,
                     "partialPayloadAvailable": false});
    assert_eq!(events[5].1, cut);
    let found = json!({"nodeId": "ask", "path": "markdown-fence", "byteOffset": 8});
    assert_eq!(events[8].1, found);
    assert_eq!(events[9].1["outputs"], json!({"output": {"valid": true}}));
    let log = server.log(&run).await.to_string();
    for hidden in ["prose-7f3a", "Please emit"] {
        assert!(!log.contains(hidden), "{log}");
    }
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    let cost = &snapshot["metrics"]["openwopCost"];
    assert_eq!(cost["tokens"]["output"], 1 + 2 + 4);
}

/// The answer of the mock model to a node with this schema, without a program.
async fn default_answer(schema: &Value) -> Value {
    let server = TestServer::new().await;
    let mut document = asking("conformance-m", "mock");
    document["nodes"][0]["config"]["outputSchema"] = schema.clone();
    let path = "/v1/host/tandem/workflows/conformance-m";
    server.put(path, document).await.ok(201);
    let run = server.create("conformance-m").await;
    server.advance(0).await;
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["status"], "completed", "{schema}: {snapshot}");
    let events = events(&server, &run).await;
    let named = names(&events);
    assert!(
        !named.contains(&"envelope.retry.attempted"),
        "{schema}: {named:?}"
    );
    let answered = events.iter().find(|(name, _)| name == "node.completed");
    answered.unwrap().1["outputs"]["output"].clone()
}

#[tokio::test]
async fn default_answer_of_the_mock_model_fits_the_schema_of_its_node() {
    let of = |property: Value| {
        json!({"type": "object", "required": ["v"], "properties": {"v": property},
               "additionalProperties": false})
    };
    for (property, expected) in [
        (json!({"type": "boolean"}), json!(false)),
        (json!({"enum": ["red", "blue"]}), json!("red")),
        (json!({"const": {"x": 1}}), json!({"x": 1})),
        (json!({"type": "integer", "minimum": 18}), json!(18)),
        (
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
            json!(0.5),
        ),
        (json!({"type": "string", "minLength": 3}), json!("xxx")),
        (
            json!({"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"}),
            json!("AAA-00"),
        ),
        (
            json!({"type": "array", "minItems": 2, "items": {"type": "integer", "minimum": 4}}),
            json!([4, 4]),
        ),
        (
            json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "integer"}}),
            json!([0, 1]),
        ),
        (
            json!({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}, {"enum": ["b"]}]}),
            json!("b"),
        ),
        (
            json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}},
                   "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"id": "x", "a": null}),
        ),
        (
            json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}}},
                             {"type": "object", "properties": {"kind": {"const": "b"}}}]}),
            json!({"kind": "a"}),
        ),
        (
            json!({"type": "object", "required": ["deep"], "properties": {"deep": {
                "type": "object", "required": ["n"], "properties": {"n": {"const": 7}}}}}),
            json!({"deep": {"n": 7}}),
        ),
    ] {
        assert_eq!(default_answer(&of(property)).await, json!({"v": expected}));
    }
    let referring = json!({"$defs": {"p": {"type": "object", "properties": {"q": {"type": "string"}}}},
        "$ref": "#/$defs/p", "required": ["q"], "properties": {"q": {"minLength": 2}}});
    assert_eq!(default_answer(&referring).await, json!({"q": "xx"}));
    // A text is an answer too.
    assert_eq!(default_answer(&json!({"enum": ["yes", "no"]})).await, "yes");
    assert_eq!(default_answer(&json!({"type": "string"})).await, "x");
}

#[tokio::test]
async fn model_refusal_text_is_in_the_log_but_not_in_errors() {
    let refusal = json!({"stopReason": "safety", "refusalText": "I must not say.",
                         "safetyCategory": "policy"});
    let (server, run) = run_with_program(json!([refusal])).await;
    let events = events(&server, &run).await;
    let refusal_event = events.iter().find(|(name, _)| name == "envelope.refusal");
    let expected = json!({"nodeId": "ask", "provider": "mock", "model": "mini",
                          "refusalText": "I must not say.", "safetyCategory": "policy"});
    assert_eq!(refusal_event.unwrap().1, expected);
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(snapshot["error"]["code"], "envelope_refusal");
    assert!(
        !snapshot["error"].to_string().contains("must not"),
        "{snapshot}"
    );
}

#[tokio::test]
async fn schema_retries_end_at_the_attempt_limit() {
    let wrong = json!({"content": "{\"valid\": 1}"});
    let (server, run) = run_with_program(json!([wrong, wrong, wrong, wrong])).await;
    let events = events(&server, &run).await;
    let end = &events[events.len() - 4..];
    assert_eq!(
        names(end),
        [
            "envelope.retry.exhausted",
            "cap.breached",
            "node.failed",
            "run.failed"
        ]
    );
    assert_eq!(end[0].1["totalAttempts"], 3);
    assert_eq!(end[0].1["finalReason"], "schema-violation");
    let discovery = server.get("/.well-known/openwop").await.ok(200);
    let rounds = &discovery["limits"]["schemaRounds"];
    let breach = json!({"kind": "schema", "limit": rounds, "observed": 3, "nodeId": "ask"});
    assert_eq!((&end[1].1, rounds), (&breach, &json!(2)));
    assert_eq!(end[2].1["error"]["code"], "envelope_invalid");
    let calls = names(&events)
        .into_iter()
        .filter(|n| *n == "provider.usage");
    assert_eq!(calls.count(), 3);
}

#[tokio::test]
async fn replay_fails_when_the_model_now_refuses() {
    let refusal = json!({"stopReason": "safety", "refusalText": "Not now."});
    let (server, run) = run_with_program(json!([{"content": "{\"valid\": true}"}, refusal])).await;
    let before = server.log(&run).await;
    let body = json!({"mode": "replay", "fromSeq": 0});
    let path = format!("/v1/runs/{run}:fork");
    let fork = server.post(&path, body.clone()).await.ok(201);
    let fork = fork["runId"].as_str().unwrap();
    let snapshot = server.get(&format!("/v1/runs/{fork}")).await.ok(200);
    assert_eq!(snapshot["status"], "failed");
    assert_eq!(snapshot["error"]["code"], "replay_diverged_at_refusal");
    let details = json!({"atSequence": 2, "nodeId": "ask", "originalEnvelopeKind": "valid",
                         "replayEnvelopeKind": "refusal"});
    assert_eq!(snapshot["error"]["details"], details);
    let events = events(&server, fork).await;
    assert_eq!(
        names(&events),
        [
            "run.started",
            "node.started",
            "provider.usage",
            "envelope.refusal",
            "replay.divergedAtRefusal",
            "node.failed",
            "run.failed",
        ]
    );
    let expected = json!({
        "sourceRunId": run, "atSequence": 2,
        "originalEventId": before["events"][2]["eventId"], "nodeId": "ask",
        "originalEnvelopeKind": "valid", "replayEnvelopeKind": "refusal",
        "refusalReason": "Not now.",
    });
    assert_eq!(events[4].1, expected);
    assert_eq!(server.log(&run).await, before, "the source is only read");
    // No answer is programmed now, so the replay uses the record, with the same result twice.
    let again = server.post(&path, body).await.ok(201);
    let again = again["runId"].as_str().unwrap();
    let diff = server
        .get(&format!("/v1/runs/{run}:diff?against={again}"))
        .await
        .ok(200);
    assert_eq!(
        (&diff["divergedAtSeq"], &diff["eventDiffs"]),
        (&Value::Null, &json!([]))
    );
}

#[tokio::test]
async fn providers_are_advertised_and_unknown_ones_refused() {
    let server = TestServer::new().await;
    let document = server.get("/.well-known/openwop").await.ok(200);
    assert_eq!(
        document["aiProviders"],
        json!({"supported": ["acme"], "byok": []})
    );
    assert_eq!(document["envelopes"]["reliability"]["maxRetryAttempts"], 3);
    let model = &document["multiAgent"]["executionModel"];
    assert_eq!(
        model["replayDeterminism"]["llmCacheKeyRecipe"],
        "spec-rfc-0041"
    );
    let types = document["extensions"]["nodeTypes"].as_array().unwrap();
    assert!(types.contains(&json!("core.llm.chat")));

    for (id, provider, says) in [
        ("w", "elsewhere", "it has acme"),
        ("w", "mock", "for conformance workflows only"),
    ] {
        let path = format!("/v1/host/tandem/workflows/{id}");
        let refused = server.put(&path, asking(id, provider)).await;
        let details = refused.refused(400, "validation_error");
        let error = &details["errors"][0];
        assert_eq!(error["path"], "/nodes/0/config/provider");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    for bad in [
        json!({"nodeId": "", "program": []}),
        json!({"nodeId": "a"}),
        json!({"nodeId": "a", "program": [{}], "more": 1}),
        json!({"nodeId": "a", "program": vec![json!({}); 101]}),
    ] {
        server
            .post(PROGRAM, bad)
            .await
            .refused(400, "validation_error");
    }
}
