//! Mock providers in forks: a replay tells what the source told, token by token; a branch goes on with
//! a sentence that was begun, and a mock provider it names answers the call its source was making.

use super::flow::{Flow, flow};
use super::mocks::says;
use super::models::structured;
use super::stage::Stage;
use serde_json::{Value, json};
use tandem_record::ForkMode::{Branch, Replay};
use tandem_record::{Event, RunStatus};

/// One that is asked three times in vain, one that is content, both at their pace.
fn two() -> Flow {
    let chat = json!({"provider": "acme", "userPrompt": "Well?"});
    let on = json!({"onError": "continue"});
    structured(flow("two"), "json", json!({}))
        .with("settings", on)
        .node("chat", "core.llm.chat", chat)
        .noops("z")
        .path("json z")
        .path("chat z")
}

fn told(stage: &Stage) -> Vec<Value> {
    let log = stage.log().iter().skip(1);
    log.filter(|r| {
        !matches!(
            r.event,
            Event::NodeStarted { .. } | Event::ModelAskedAgain(_)
        )
    })
    .map(|r| json!([r.seq, r.at, r.cause, r.event]))
    .collect()
}

fn content(stage: &Stage) -> Value {
    let outputs = stage.node("chat").outputs.clone();
    outputs.expect("it has answered")["content"].clone()
}

#[test]
fn a_replay_from_any_index_tells_the_same_tokens_and_waits_for_nothing() {
    for delay in [0, 10] {
        let mut run = says(two(), &["no", "pe"], delay);
        run.elapse(100);
        assert_eq!(run.status(), RunStatus::Completed);
        for from in 0..run.log().len() as u64 {
            let replay = run.fork(Replay, from);
            assert_eq!(told(&replay), told(&run), "from {from}");
            assert!(replay.timers().is_empty());
            assert_eq!(replay.outbox().count(), 0);
        }
    }
}

#[test]
fn a_branch_from_any_index_finishes_what_was_begun_and_repeats_no_token() {
    for delay in [0, 10] {
        let mut run = says(two(), &["so", " it", " is"], delay);
        run.elapse(200);
        for from in 1..run.log().len() as u64 {
            let mut branch = run.fork(Branch, from);
            branch.elapse(200);
            assert_eq!(branch.status(), RunStatus::Completed, "from {from}");
            assert_eq!(content(&branch), "so it is", "from {from}");
            assert_eq!(branch.outbox().count(), 0);
            let chunks = |stage: &Stage| {
                let log = stage.log().iter();
                log.filter(|r| matches!(&r.event, Event::OutputChunk(c) if c.node == "chat".into()))
                    .count()
            };
            assert_eq!(chunks(&branch), 3, "from {from}");
        }
    }
}

#[test]
fn a_branch_that_names_one_has_it_answer_the_open_call() {
    let chat = json!({"provider": "acme", "userPrompt": "Well?"});
    let mut run = Stage::started(flow("chat").node("chat", "core.llm.chat", chat));
    assert_eq!(run.outbox().count(), 1, "the source asks a provider");
    let mock = json!({"mockProvider": {"id": "stream-text", "config": {"tokens": ["hi"]}}});
    run.request.options.configurable = mock.as_object().cloned();
    let mut branch = run.fork(Branch, 2);
    assert_eq!(branch.outbox().count(), 0);
    branch.elapse(1);
    assert_eq!(content(&branch), "hi");
}
