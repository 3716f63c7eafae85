//! Models through the runtime: a call is recorded before it is made, made once, and replayed from
//! the record. Programs of the conformance suite survive a restart.

use serde_json::{Value, json};
use tandem_record::{Event, ForkMode, NodeId, RunId, RunStatus, Seq, Work};
use tandem_runtime::{MockEntry, MockProgram, Permissions, Redactor, RegisterError};
use tandem_store::memory::MemoryStore;
use tandem_testkit::test_host::{TestHost, TestHostBuilder, tenant};
use tandem_testkit::{WorkflowBuilder, wf};
use tokio::test;

const SECRET: &str = "correct-horse-battery";

fn asking(id: &str, provider: &str, port: Value) -> WorkflowBuilder {
    let schema = json!({"type": "object", "required": ["ok"]});
    let config = json!({"provider": provider, "model": "m", "outputSchema": schema});
    wf(id)
        .node("ask", "core.ai.structuredOutput", config)
        .port("messages", port)
        .noop("z")
        .path("ask z")
}

fn user_question() -> Value {
    json!({"type": "static", "value": [{"role": "user", "content": "Is it fine?"}]})
}

async fn replay(host: &TestHost, run: &RunId, from: u64) -> RunId {
    let made = host.fork(run, ForkMode::Replay, Seq(from)).await;
    made.expect("it can be made")
}

#[test(start_paused = true)]
async fn model_is_called_once_and_not_by_a_replay() {
    let host = TestHost::new().await;
    host.register(asking("w", "acme", user_question())).await;
    let run = host.create("w", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let calls = host.performer.performed();
    assert_eq!(calls.len(), 1);
    assert!(
        calls[0].recorded,
        "the call was recorded before it was made"
    );
    let log = host.log(&run).await;
    for from in 0..log.len() as u64 {
        let copies = [
            replay(&host, &run, from).await,
            replay(&host, &run, from).await,
        ];
        for copy in &copies {
            assert_eq!(host.status(copy).await, RunStatus::Completed, "from {from}");
            assert_eq!(host.log(copy).await.len(), log.len(), "from {from}");
        }
    }
    assert_eq!(host.performer.performed().len(), 1, "no second call");
}

#[test(start_paused = true)]
async fn secret_in_a_prompt_reaches_neither_log_nor_model_nor_idempotency_key() {
    let plan = TestHostBuilder {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    let bound = json!({"type": "variable", "variableName": "said"});
    let flow = asking("leaky", "acme", bound).variable("said", json!([]));
    host.register(flow).await;
    let said = json!([{"role": "user", "content": format!("Is {SECRET} a good one?")}]);
    let run = host.create("leaky", json!({"said": said})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    let log = host.log(&run).await;
    assert!(!format!("{log:?}").contains(SECRET));
    let called = log.iter().find_map(|r| match &r.event {
        Event::NodeStarted {
            work: Some(Work::Model { key, request, .. }),
            ..
        } => Some((key.clone(), request.clone())),
        _ => None,
    });
    let (key, request) = called.expect("it called");
    assert_eq!(request.messages[0].content, "Is [REDACTED:db] a good one?");
    assert_eq!(key, tandem_runtime::content_key(&request));
    let copy = replay(&host, &run, 0).await;
    assert_eq!(host.status(&copy).await, RunStatus::Completed);
    assert_eq!(
        host.log(&copy).await.len(),
        log.len(),
        "redaction is not a divergence"
    );
}

fn entry(entry: Value) -> MockEntry {
    serde_json::from_value(entry).expect("an entry")
}

async fn program(host: &TestHost, entries: &[Value]) {
    let entries = entries.iter().cloned().map(entry).collect();
    let programmed = host
        .runtime
        .program_mock(&NodeId::new("ask"), MockProgram::new(entries))
        .await;
    programmed.expect("the store answers");
}

#[test(start_paused = true)]
async fn mock_program_continues_after_restart_and_replay_is_checked_against_it() {
    let store = MemoryStore::new();
    let host = TestHostBuilder {
        store: store.reopen(),
        ..TestHostBuilder::default()
    };
    let host = host.build().await;
    host.register(asking("conformance-m", "mock", user_question()))
        .await;
    let refusal = json!({"stopReason": "safety", "refusalText": "I must not."});
    program(&host, &[json!({"content": "{\"ok\":true}"}), refusal]).await;
    let run = host.create("conformance-m", json!({})).await;
    assert_eq!(host.ended(&run).await, RunStatus::Completed);
    host.runtime.shutdown(std::time::Duration::ZERO).await;

    let host = TestHostBuilder {
        store,
        incarnation: 2,
        ..TestHostBuilder::default()
    };
    let host = host.build().await;
    let copy = replay(&host, &run, 0).await;
    let folded = host.folded(&copy).await;
    let error = folded.error().expect("it failed");
    assert_eq!(error.code, "replay_diverged_at_refusal");
    // The program has no more answers: the recorded answer is used.
    let again = replay(&host, &run, 0).await;
    assert_eq!(host.status(&again).await, RunStatus::Completed);
    let late = host.create("conformance-m", json!({})).await;
    assert_eq!(host.ended(&late).await, RunStatus::Failed);
    let folded = host.folded(&late).await;
    assert_eq!(
        folded.error().expect("it failed").code,
        "provider_unavailable"
    );
    assert!(host.performer.performed().is_empty(), "no call was made");
}

#[test(start_paused = true)]
async fn workflow_with_unconfigured_provider_is_refused_at_registration() {
    let host = TestHost::new().await;
    let document = asking("w", "elsewhere", user_question()).document();
    let refused = host
        .runtime
        .register(Some(&tenant().into()), &document, Permissions::default())
        .await;
    let Err(RegisterError::Invalid(problems)) = refused else {
        panic!("it is refused");
    };
    assert_eq!(problems[0].path, "/nodes/0/config/provider");
    assert!(problems[0].message.contains("acme"), "{problems:?}");
}
