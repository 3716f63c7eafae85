//! Secrets never reach the store, and the state in memory agrees with the redacted log.

use serde_json::json;
use std::sync::Arc;
use tandem_engine::logical_invocation_id;
use tandem_record::{
    Command, DeciderSnapshot, MemoryEntry, MemoryOrigin, NodeId, RunId, RunStatus, StreamId,
    Timestamp,
};
use tandem_runtime::{
    CommandOutcome, IdempotencyKey, IdempotencyRequest, Permissions, Redactor, StoredResponse,
};
use tandem_store::battery::sample::lanes_due;
use tandem_store::{
    LeaseId, LeaseRequest, MemoryQuery, MemoryView, Outbox, ReadIdempotency, ReadLog, ReadMemory,
    ReadRuns, WorkClass,
};
use tandem_testkit::test_host::{PACK_TYPE, TestHost, TestHostBuilder, children, new_run, tenant};
use tandem_testkit::{CallFaults, wf};
use tokio::test;

const SECRET: &str = "correct-horse-battery";
const TOKEN: &str = "sk-abcdefghijklmnopqrstuvwx";

async fn host() -> TestHost {
    let plan = TestHostBuilder {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        ..TestHostBuilder::default()
    };
    plan.build().await
}

/// Everything the store holds of a run, as text.
async fn stored(host: &TestHost, run: &RunId) -> String {
    let stream = StreamId::of_run(run);
    let slice = host.store.events(&stream, None, usize::MAX).await;
    let snapshot = host.store.snapshot(&stream).await;
    let row = host.store.run(&tenant(), run).await;
    let bodies: Vec<String> = slice
        .expect("the store answers")
        .events
        .into_iter()
        .map(|event| event.body)
        .collect();
    format!("{} {snapshot:?} {row:?}", bodies.join("\n"))
}

#[test(start_paused = true)]
async fn secret_in_inputs_and_outputs_is_redacted_before_it_is_stored() {
    let host = host().await;
    let flow = wf("echo")
        .node("echo", "core.identity", json!({}))
        .delay("nap", 1_000)
        .path("echo nap");
    host.register(flow).await;
    let inputs = json!({"deep": [{"password": SECRET}], "header": format!("x {TOKEN}")});
    let run = host.create("echo", inputs).await;
    let text = stored(&host, &run).await;
    assert!(!text.contains(SECRET) && !text.contains(TOKEN), "{text}");
    assert!(text.contains("[REDACTED:db]"));
    // From the cache, where the run was decided with the secret in it.
    let shown = host.runtime.observe(&tenant(), &run).await;
    let shown = shown.expect("the store answers").expect("the run exists");
    assert_eq!(shown.view, host.folded(&run).await.view());
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let ended = host.runtime.observe(&tenant(), &run).await;
    let ended = ended.expect("the store answers").expect("the run exists");
    assert_eq!(ended.view, host.folded(&run).await.view());
}

#[test(start_paused = true)]
async fn a_secret_reaches_neither_the_outbox_nor_a_child() {
    let plan = TestHostBuilder {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        call_faults: CallFaults {
            retryable_percent: 0,
            permanent_percent: 0,
            max_latency_ms: 60_000,
        },
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    let bound = json!({"type": "variable", "variableName": "v"});
    let child = wf("child").variable("v", json!("")).delay("nap", 10);
    host.register(child).await;
    let flow = wf("calls")
        .variable("v", json!(""))
        .http("call", 1)
        .port("body", bound)
        .call("sub", "child", json!({"inputMapping": {"v": "v"}}));
    host.register(flow).await;
    let parent = host.create("calls", json!({"v": SECRET})).await;
    let child = &children(&host.log(&parent).await)[0];
    let inputs = host.folded(child).await.view().inputs;
    assert_eq!(inputs["v"], "[REDACTED:db]");
    let now = Timestamp(i64::MAX);
    let mut entries = Vec::new();
    for class in WorkClass::ALL {
        let lanes = host.store.due_lanes(lanes_due(class, now)).await;
        let lanes = lanes.expect("the store answers");
        let request = LeaseRequest {
            lease: LeaseId::new("test", 1),
            now,
            until: now,
            lane_limits: lanes.into_iter().map(|due| (due.lane, 10)).collect(),
        };
        entries.extend(host.store.lease(request).await.expect("the store answers"));
    }
    assert!(entries.iter().all(|entry| !entry.body.contains(SECRET)));
    let masked = entries.iter().filter(|e| e.body.contains("[REDACTED:db]"));
    assert_eq!(
        masked.count(),
        1,
        "the call, and not the child's first step"
    );
}

#[test(start_paused = true)]
async fn names_and_ids_that_look_like_secrets_are_left_alone() {
    // The id of the first run is predictable, and so is the id of its effect.
    let run = RunId::new("run-00000000-0000-7000-8000-000000000001");
    let node = NodeId::new("node-of-that-name");
    let effect = logical_invocation_id(&tenant(), &run, &node, 0, "tandem:http");
    let secrets = [("node", node.as_str()), ("effect", effect.as_str())];
    let plan = TestHostBuilder {
        redactor: Redactor::new(secrets.into_iter()),
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    host.register_before_secrets(wf("call").http(node.as_str(), 1))
        .await;
    let inputs = json!({"a": node, node.as_str(): {"node": [effect]}});
    assert_eq!(host.create("call", inputs).await, run);
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    assert_eq!(host.performer.performed()[0].effect, effect);
    let shown = host.folded(&run).await.view();
    let clean = json!({"a": "[REDACTED:node]", "[REDACTED:node]": {"node": ["[REDACTED:effect]"]}});
    assert_eq!(serde_json::Value::Object(shown.inputs), clean);
}

#[test(start_paused = true)]
async fn credentials_in_headers_are_not_in_the_log() {
    let host = host().await;
    let config = json!({"url": "http://api.test/", "headers": {"x-key": "hunter2"}});
    host.register(wf("call").node("call", "vendor.tandem.http", config))
        .await;
    let run = host.create("call", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    assert!(!stored(&host, &run).await.contains("hunter2"));
}

#[test(start_paused = true)]
async fn tool_is_called_with_the_redacted_arguments_of_the_log() {
    let host = host().await;
    let config = json!({"serverId": "docs", "toolName": "echo", "arguments": {"text": SECRET}});
    host.register_before_secrets(wf("call").node("call", "core.mcp.toolCall", config))
        .await;
    let run = host.create("call", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let log = stored(&host, &run).await;
    assert!(
        !log.contains(SECRET) && log.contains("[REDACTED:db]"),
        "{log}"
    );
}

#[test(start_paused = true)]
async fn secret_split_into_pieces_is_not_stored() {
    let host = host().await;
    let (head, tail) = SECRET.split_at(9);
    let put = json!({"action": "put", "key": "k", "valueFrom": "v", "tags": [tail, "crm"]});
    // Not declared, so it may have any type.
    let flow = wf("pieces").node("w", "vendor.tandem.memory", put);
    host.register(flow).await;
    // Nested, under keys in another order, and split between a value and its tags.
    for v in [
        json!([[{"a": [head]}], {"b": tail}]),
        json!({"z": head, "a": tail}),
        json!(format!("it begins with {head}")),
        json!(SECRET.chars().map(String::from).collect::<Vec<_>>()),
    ] {
        let run = host.create("pieces", json!({"v": v})).await;
        assert_eq!(host.ended(&run).await, RunStatus::Completed);
        let view = MemoryView {
            tenant: tenant(),
            scope: MemoryOrigin::SHARED.to_owned(),
            start: u64::MAX,
            segments: Vec::new(),
        };
        let rows = host
            .store
            .memory_entries(&view, &MemoryQuery::default())
            .await;
        let body = rows.expect("the store answers")[0].body.clone();
        let entry: MemoryEntry =
            serde_json::from_str(&body.expect("there is one")).expect("an entry");
        let text = entry.value.to_string();
        assert!(!text.contains(head) || !text.contains(tail), "{v}: {text}");
        assert!(text.contains("[REDACTED:db]"), "{v}: {text}");
        assert_eq!(entry.tags.last().map(String::as_str), Some("crm"), "{v}");
        let in_one_go: String = text
            .chars()
            .filter(|c| c.is_alphabetic() || *c == '-')
            .collect();
        assert!(!in_one_go.contains(SECRET), "{v}: {text}");
        let log = stored(&host, &run).await;
        assert!(!log.contains(head) || v.is_string(), "{v}: {log}");
        let folded = host.folded(&run).await.view();
        let shown = host.runtime.observe(&tenant(), &run).await;
        let shown = shown.expect("the store answers").expect("the run exists");
        assert_eq!(shown.view, folded, "{v}: cached and folded state agree");
    }
}

/// `HIDDEN`: texts with a secret that is recognized only by what precedes it. `HARMLESS`: texts
/// without a secret that would look like one if JSON were searched as text.
const HIDDEN: [&str; 5] = [
    "config:\nsk-abcdefghijklmnopqrstuvwx",
    "\tsk-abcdefghijklmnopqrstuvwx",
    "OPENAI_sk-abcdefghijklmnopqrstuvwx",
    "{\"k\":\"\\nsk-abcdefghijklmnopqrstuvwx\"}",
    "\"sk-abcdefghijklmnopqrstuvwx",
];
const HARMLESS: [&str; 3] = [
    "\u{8}earer AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "\u{8}Bearerless \u{c}eyJ",
    "\\\u{0}\u{1f}\"",
];

#[test(start_paused = true)]
async fn no_text_makes_create_decide_or_call_fail() {
    let host = host().await;
    let flow = wf("ask")
        .variable("v", json!(""))
        .node("gate", "core.approvalGate", json!({"title": "ok?"}))
        .http("call", 1)
        .port("body", json!({"type": "variable", "variableName": "v"}))
        .path("gate call");
    host.register(flow).await;
    for text in HIDDEN.into_iter().chain(HARMLESS) {
        let run = host.create("ask", json!({"v": text, text: text})).await;
        let value = json!({"action": "accept", "feedback": text, "decisionBy": text});
        let command = Command::ResolveInterrupt {
            node: NodeId::new("gate"),
            interrupt: None,
            value,
            by: None,
            by_link: true,
            decider: DeciderSnapshot::default(),
        };
        host.submit(&run, command).await.expect("it is decided");
        assert_eq!(host.ended(&run).await, RunStatus::Completed, "{text:?}");
        let log = stored(&host, &run).await;
        assert!(!log.contains(TOKEN), "{text:?}: {log}");
        let stored_value = serde_json::Value::Object(host.folded(&run).await.view().inputs);
        if HARMLESS.contains(&text) {
            assert_eq!(
                stored_value,
                json!({"v": text, text: text}),
                "stored unchanged"
            );
        } else {
            assert!(
                stored_value.to_string().contains("[REDACTED]"),
                "{stored_value}"
            );
        }
    }
}

#[test(start_paused = true)]
async fn result_with_a_secret_or_escapes_is_accepted() {
    let host = host().await;
    let flow = wf("pack").node("act", PACK_TYPE, json!({}));
    let flow = flow.port("v", json!({"type": "variable", "variableName": "v"}));
    host.register(flow.variable("v", json!(""))).await;
    for text in HIDDEN.into_iter().chain(HARMLESS) {
        let run = host.create("pack", json!({"v": text})).await;
        assert!(host.ended(&run).await.is_terminal(), "{text:?}");
        let log = stored(&host, &run).await;
        assert!(!log.contains(TOKEN), "{text:?}: {log}");
    }
}

#[test(start_paused = true)]
async fn refusal_and_its_stored_response_quote_no_secret() {
    let host = host().await;
    let mut document = wf("typed").noop("n").document();
    document["configurableSchema"] =
        json!({"type": "object", "properties": {"mode": {"enum": ["a", "b"]}}});
    let tenant = tenant();
    let owner = tenant.clone().into();
    let registered = host
        .runtime
        .register(Some(&owner), &document, Permissions::default());
    registered.await.expect("the workflow is sound");
    let mut new = new_run("typed", json!({}));
    let mode = [("mode".to_owned(), json!(format!("_{TOKEN}")))];
    new.request.options.configurable = Some(mode.into_iter().collect());
    let key = IdempotencyKey("typed".to_owned());
    let idempotency = IdempotencyRequest {
        key: key.clone(),
        digest: String::new(),
        render: Arc::new(|answer| match answer {
            CommandOutcome::Refused(refusal) => Some(StoredResponse {
                status: 400,
                body: refusal.to_string(),
            }),
            _ => None,
        }),
    };
    let refused = host.runtime.create_run(new, Some(idempotency)).await;
    let refused = refused.expect_err("it does not fit").to_string();
    assert!(!refused.contains(TOKEN), "{refused}");
    let stored_value = host
        .store
        .idempotency_record(&key)
        .await
        .expect("the store answers");
    let stored_value = stored_value.expect("a refusal is stored").response.body;
    assert!(
        !stored_value.contains(TOKEN) && stored_value.contains("mode"),
        "{stored_value}"
    );
}

#[test(start_paused = true)]
async fn scope_name_is_redacted_everywhere() {
    let host = host().await;
    host.register(wf("nap").delay("nap", 60_000)).await;
    let mut new = new_run("nap", json!({}));
    new.request.scope_id = Some(format!("team_{TOKEN}"));
    let run = host.runtime.create_run(new, None).await.expect("it runs");
    let text = stored(&host, &run).await;
    assert!(!text.contains(TOKEN), "{text}");
    assert!(text.contains("scope:team_[REDACTED]"), "{text}");
}
