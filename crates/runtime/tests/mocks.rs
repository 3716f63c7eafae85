//! Mock providers and what surrounds them: a process that dies in the middle of a sentence, and
//! secrets among what they are asked to say.

use serde_json::{Value, json};
use tandem_record::{Event, RunId, RunStatus};
use tandem_runtime::Redactor;
use tandem_testkit::house::{House, Plan, new_run};
use tandem_testkit::wf;
use tokio::test;

const SECRET: &str = "correct-horse-battery";

async fn started(house: &House, config: Value) -> RunId {
    let chat = json!({"provider": "acme", "userPrompt": "Well?"});
    house
        .register(wf("chat").node("ai", "core.llm.chat", chat))
        .await;
    let mut new = new_run("chat", json!({}));
    let mock = json!({"mockProvider": {"id": "stream-text", "config": config}});
    new.request.options.configurable = mock.as_object().cloned();
    let created = house.runtime.create_run(new, None).await;
    created.expect("the run may start")
}

async fn said(house: &House, run: &RunId) -> Vec<String> {
    let log = house.log(run).await.into_iter();
    let chunks = log.filter_map(|recorded| match recorded.event {
        Event::OutputChunk(told) => Some(told.piece.text().to_owned()),
        _ => None,
    });
    chunks.collect()
}

#[test(start_paused = true)]
async fn a_sentence_is_finished_by_the_next_process_without_a_word_twice() {
    let tokens = json!(["one", " two", " three", " four"]);
    let config = json!({"tokens": tokens, "delayMsPerToken": 1_000});
    let first = House::new().await;
    let run = started(&first, config).await;
    first.elapse(1_500).await;
    assert_eq!(said(&first, &run).await, ["one", " two"]);
    first.runtime.shutdown(std::time::Duration::ZERO).await;
    let second = Plan {
        store: first.store.clone(),
        life: 2,
        ..Plan::default()
    };
    let second = second.build().await;
    assert_eq!(second.ended(&run).await, RunStatus::Completed);
    assert_eq!(
        said(&second, &run).await,
        ["one", " two", " three", " four"]
    );
    let outputs = second.folded(&run).await.outputs().cloned();
    assert_eq!(
        outputs.expect("it has some")["content"],
        "one two three four"
    );
    assert!(second.world.performed().is_empty(), "nobody is called");
}

#[test(start_paused = true)]
async fn a_secret_is_not_said() {
    let plan = Plan {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        ..Plan::default()
    };
    let house = plan.build().await;
    let (head, tail) = SECRET.split_at(9);
    for (tokens, delay, at_the_door) in [
        (json!(["it is ", SECRET]), 0, false),
        (json!(["it is ", SECRET]), 10, false),
        (json!(["it is ", head, tail]), 10, false),
        // Pieces told in one decision are events of their own; who takes the wish takes it clean.
        (json!([head, tail]), 0, true),
    ] {
        let mut config = json!({"tokens": tokens, "delayMsPerToken": delay});
        if at_the_door {
            house.runtime.clean(&mut config);
        }
        let run = started(&house, config).await;
        assert_eq!(house.ended(&run).await, RunStatus::Completed);
        let log = house.log(&run).await;
        let text = serde_json::to_string(&log).expect("plain data");
        assert!(!text.contains(SECRET) && !text.contains(tail), "{text}");
        assert!(
            said(&house, &run)
                .await
                .contains(&"[REDACTED:db]".to_owned())
        );
    }
}
