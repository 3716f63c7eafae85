//! Models through the runtime: recorded before they are called, called once, repeated from the
//! record; programs of the conformance suite that outlive a restart.

use serde_json::{Value, json};
use tandem_record::{Event, ForkMode, NodeId, RunId, RunStatus, Seq, Work};
use tandem_runtime::{MockEntry, MockProgram, Permissions, Redactor, RegisterError};
use tandem_store::memory::MemoryStore;
use tandem_testkit::house::{House, Plan, tenant};
use tandem_testkit::{Flow, wf};
use tokio::test;

const SECRET: &str = "correct-horse-battery";

fn asking(id: &str, provider: &str, port: Value) -> Flow {
    let schema = json!({"type": "object", "required": ["ok"]});
    let config = json!({"provider": provider, "model": "m", "outputSchema": schema});
    wf(id)
        .node("ask", "core.ai.structuredOutput", config)
        .port("messages", port)
        .noop("z")
        .path("ask z")
}

fn is_it_fine() -> Value {
    json!({"type": "static", "value": [{"role": "user", "content": "Is it fine?"}]})
}

async fn replay(house: &House, run: &RunId, from: u64) -> RunId {
    let made = house.fork(run, ForkMode::Replay, Seq(from)).await;
    made.expect("it can be made")
}

#[test(start_paused = true)]
async fn a_model_is_called_once_and_a_replay_calls_nobody() {
    let house = House::new().await;
    house.register(asking("w", "acme", is_it_fine())).await;
    let run = house.create("w", json!({})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let calls = house.world.performed();
    assert_eq!(calls.len(), 1);
    assert!(
        calls[0].recorded,
        "the call was recorded before it was made"
    );
    let log = house.log(&run).await;
    for from in 0..log.len() as u64 {
        let copies = [
            replay(&house, &run, from).await,
            replay(&house, &run, from).await,
        ];
        for copy in &copies {
            assert_eq!(
                house.status(copy).await,
                RunStatus::Completed,
                "from {from}"
            );
            assert_eq!(house.log(copy).await.len(), log.len(), "from {from}");
        }
    }
    assert_eq!(house.world.performed().len(), 1, "nobody was called again");
}

#[test(start_paused = true)]
async fn a_secret_in_a_prompt_reaches_neither_log_nor_model_nor_key() {
    let plan = Plan {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        ..Plan::default()
    };
    let house = plan.build().await;
    let bound = json!({"type": "variable", "variableName": "said"});
    let flow = asking("leaky", "acme", bound).variable("said", json!([]));
    house.register(flow).await;
    let said = json!([{"role": "user", "content": format!("Is {SECRET} a good one?")}]);
    let run = house.create("leaky", json!({"said": said})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    let log = house.log(&run).await;
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
    let copy = replay(&house, &run, 0).await;
    assert_eq!(house.status(&copy).await, RunStatus::Completed);
    assert_eq!(
        house.log(&copy).await.len(),
        log.len(),
        "cleaning is no divergence"
    );
}

fn entry(entry: Value) -> MockEntry {
    serde_json::from_value(entry).expect("an entry")
}

async fn program(house: &House, entries: &[Value]) {
    let entries = entries.iter().cloned().map(entry).collect();
    let told = house
        .runtime
        .program_mock(&NodeId::new("ask"), MockProgram::new(entries))
        .await;
    told.expect("the store answers");
}

#[test(start_paused = true)]
async fn a_program_goes_on_after_a_restart_and_a_replay_is_compared_with_it() {
    let store = MemoryStore::new();
    let house = Plan {
        store: store.reopen(),
        ..Plan::default()
    };
    let house = house.build().await;
    house
        .register(asking("conformance-m", "mock", is_it_fine()))
        .await;
    let refusal = json!({"stopReason": "safety", "refusalText": "I must not."});
    program(&house, &[json!({"content": "{\"ok\":true}"}), refusal]).await;
    let run = house.create("conformance-m", json!({})).await;
    assert_eq!(house.ended(&run).await, RunStatus::Completed);
    house.runtime.shutdown(std::time::Duration::ZERO).await;

    let house = Plan {
        store,
        life: 2,
        ..Plan::default()
    };
    let house = house.build().await;
    let copy = replay(&house, &run, 0).await;
    let folded = house.folded(&copy).await;
    let error = folded.error().expect("it failed");
    assert_eq!(error.code, "replay_diverged_at_refusal");
    // The program is over: what was recorded stands.
    let again = replay(&house, &run, 0).await;
    assert_eq!(house.status(&again).await, RunStatus::Completed);
    let late = house.create("conformance-m", json!({})).await;
    assert_eq!(house.ended(&late).await, RunStatus::Failed);
    let folded = house.folded(&late).await;
    assert_eq!(
        folded.error().expect("it failed").code,
        "provider_unavailable"
    );
    assert!(
        house.world.performed().is_empty(),
        "the world was not asked"
    );
}

#[test(start_paused = true)]
async fn a_provider_nobody_configured_is_refused_at_the_door() {
    let house = House::new().await;
    let document = asking("w", "elsewhere", is_it_fine()).document();
    let refused = house
        .runtime
        .register(Some(&tenant().into()), &document, Permissions::default())
        .await;
    let Err(RegisterError::Invalid(problems)) = refused else {
        panic!("it is refused");
    };
    assert_eq!(problems[0].path, "/nodes/0/config/provider");
    assert!(problems[0].message.contains("acme"), "{problems:?}");
}
