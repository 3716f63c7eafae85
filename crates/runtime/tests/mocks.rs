//! Mock providers: a crash in the middle of streamed output, and secrets in that output.

use serde_json::{Value, json};
use tandem_record::{Event, RunId, RunStatus};
use tandem_runtime::Redactor;
use tandem_testkit::test_host::{TestHost, TestHostBuilder, new_run};
use tandem_testkit::wf;
use tokio::test;

const SECRET: &str = "correct-horse-battery";

async fn started(host: &TestHost, config: Value) -> RunId {
    let chat = json!({"provider": "acme", "userPrompt": "Well?"});
    host.register(wf("chat").node("ai", "core.llm.chat", chat))
        .await;
    let mut new = new_run("chat", json!({}));
    let mock = json!({"mockProvider": {"id": "stream-text", "config": config}});
    new.request.options.configurable = mock.as_object().cloned();
    let created = host.runtime.create_run(new, None).await;
    created.expect("the run may start")
}

async fn output_texts(host: &TestHost, run: &RunId) -> Vec<String> {
    let log = host.log(run).await.into_iter();
    let chunks = log.filter_map(|recorded| match recorded.event {
        Event::OutputChunk(event) => Some(event.piece.text().to_owned()),
        _ => None,
    });
    chunks.collect()
}

#[test(start_paused = true)]
async fn streamed_output_continues_after_a_restart_without_duplicate_chunks() {
    let tokens = json!(["one", " two", " three", " four"]);
    let config = json!({"tokens": tokens, "delayMsPerToken": 1_000});
    let first = TestHost::new().await;
    let run = started(&first, config).await;
    first.elapse(1_500).await;
    assert_eq!(output_texts(&first, &run).await, ["one", " two"]);
    first.runtime.shutdown(std::time::Duration::ZERO).await;
    let second = TestHostBuilder {
        store: first.store.clone(),
        incarnation: 2,
        ..TestHostBuilder::default()
    };
    let second = second.build().await;
    assert_eq!(second.ended(&run).await, RunStatus::Completed);
    assert_eq!(
        output_texts(&second, &run).await,
        ["one", " two", " three", " four"]
    );
    let outputs = second.folded(&run).await.outputs().cloned();
    assert_eq!(
        outputs.expect("it has some")["content"],
        "one two three four"
    );
    assert!(second.performer.performed().is_empty(), "no call is made");
}

#[test(start_paused = true)]
async fn secret_is_not_streamed() {
    let plan = TestHostBuilder {
        redactor: Redactor::new([("db", SECRET)].into_iter()),
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    let (head, tail) = SECRET.split_at(9);
    for (tokens, delay, redacted_before_create) in [
        (json!(["it is ", SECRET]), 0, false),
        (json!(["it is ", SECRET]), 10, false),
        (json!(["it is ", head, tail]), 10, false),
        // Pieces of one decision are separate events, so the configuration is redacted before the
        // create.
        (json!([head, tail]), 0, true),
        (
            json!(["a task", "-list sk-abcdef", "ghijklmn", "opqrstuv."]),
            10,
            true,
        ),
        (json!(["AKIA", "ABCDEFGHIJKLMNOP"]), 0, false),
    ] {
        let mut config = json!({"tokens": tokens, "delayMsPerToken": delay});
        if redacted_before_create {
            host.runtime.redact_value(&mut config);
        }
        let run = started(&host, config).await;
        assert_eq!(host.ended(&run).await, RunStatus::Completed);
        let log = host.log(&run).await;
        let text = serde_json::to_string(&log).expect("plain data");
        assert!(!text.contains(SECRET) && !text.contains(tail), "{text}");
        let read = output_texts(&host, &run).await.concat();
        assert!(read.contains("[REDACTED"), "{read}");
        assert!(
            !read.contains(SECRET) && !read.contains("IJKL") && !read.contains("ijkl"),
            "{read}"
        );
    }
}
