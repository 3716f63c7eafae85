//! Mock providers in forks. A replay emits the same tokens as the source. A branch continues an
//! answer that was started, and a mock provider that the branch names answers the source's open
//! call.

use super::harness::RunHarness;
use super::mocks::mock_tokens;
use super::models::structured;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::ForkMode::{Branch, Replay};
use tandem_record::{Event, RunStatus};

/// One node with three failed attempts and one that succeeds, both with delays.
fn two() -> WorkflowBuilder {
    let chat = json!({"provider": "acme", "userPrompt": "Well?"});
    let on = json!({"onError": "continue"});
    structured(workflow("two"), "json", json!({}))
        .with("settings", on)
        .node("chat", "core.llm.chat", chat)
        .noops("z")
        .path("json z")
        .path("chat z")
}

fn chunks(harness: &RunHarness) -> Vec<Value> {
    let log = harness.log().iter().skip(1);
    log.filter(|r| !matches!(r.event, Event::NodeStarted { .. } | Event::ModelRetried(_)))
        .map(|r| json!([r.seq, r.at, r.cause, r.event]))
        .collect()
}

fn content(harness: &RunHarness) -> Value {
    let outputs = harness.node("chat").outputs.clone();
    outputs.expect("it has answered")["content"].clone()
}

#[test]
fn replay_from_any_event_emits_the_same_tokens_without_waiting() {
    for delay in [0, 10] {
        let mut run = mock_tokens(two(), &["no", "pe"], delay);
        run.elapse(100);
        assert_eq!(run.status(), RunStatus::Completed);
        for from in 0..run.log().len() as u64 {
            let replay = run.fork(Replay, from);
            assert_eq!(chunks(&replay), chunks(&run), "from {from}");
            assert!(replay.timers().is_empty());
            assert_eq!(replay.outbox().count(), 0);
        }
    }
}

#[test]
fn branch_from_any_event_finishes_the_answer_without_repeating_tokens() {
    for delay in [0, 10] {
        let mut run = mock_tokens(two(), &["so", " it", " is"], delay);
        run.elapse(200);
        for from in 1..run.log().len() as u64 {
            let mut branch = run.fork(Branch, from);
            branch.elapse(200);
            assert_eq!(branch.status(), RunStatus::Completed, "from {from}");
            assert_eq!(content(&branch), "so it is", "from {from}");
            assert_eq!(branch.outbox().count(), 0);
            let chunks = |harness: &RunHarness| {
                let log = harness.log().iter();
                log.filter(|r| matches!(&r.event, Event::OutputChunk(c) if c.node == "chat".into()))
                    .count()
            };
            assert_eq!(chunks(&branch), 3, "from {from}");
        }
    }
}

#[test]
fn branch_with_a_mock_provider_uses_it_for_the_open_call() {
    let chat = json!({"provider": "acme", "userPrompt": "Well?"});
    let mut run = RunHarness::started(workflow("chat").node("chat", "core.llm.chat", chat));
    assert_eq!(run.outbox().count(), 1, "the source asks a provider");
    let mock = json!({"mockProvider": {"id": "stream-text", "config": {"tokens": ["hi"]}}});
    run.request.options.configurable = mock.as_object().cloned();
    let mut branch = run.fork(Branch, 2);
    assert_eq!(branch.outbox().count(), 0);
    branch.elapse(1);
    assert_eq!(content(&branch), "hi");
}
