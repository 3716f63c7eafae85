//! Which ids a fork has in place of its source's, and that its data is the source's data.

use super::flow::{Flow, flow};
use super::gates::answer;
use super::stage::Stage;
use serde_json::{Value, json};
use tandem_record::ForkMode::{Branch, Replay};
use tandem_record::{EffectKind, Event, Recorded, RunStatus, UserData};

/// Text of a user that happens to hold the source's id, in every form the engine makes ids of it.
const ABOUT: &str = "see run-1, evt-run-1-3, run-1:gate:1 and run-1:gate";

fn about() -> Flow {
    let read = json!({"type": "variable", "variableName": "note"});
    flow("about")
        .variable("note", json!({}))
        .node("first", "core.identity", json!({}))
        .port("note", read)
        .node("gate", "core.approvalGate", json!({"title": ABOUT}))
        .http("call", json!({"output": "said"}))
        .path("first gate call")
}

fn decided() -> Stage {
    let mut run = Stage::new(about());
    run.create(json!({"note": ABOUT, "run-1": ["run-1"]}));
    run.when(answer(
        "gate",
        json!({"action": "accept", "feedback": ABOUT}),
    ));
    run.done("call", json!({"body": {"runId": "run-1", "said": ABOUT}}));
    assert_eq!(run.status(), RunStatus::Completed);
    run
}

/// The data of an event as text; what the engine asks about its own artifact aside.
fn data(recorded: &Recorded) -> Vec<Value> {
    let mut recorded = recorded.clone();
    let places = recorded.user_data();
    let read = |place: UserData<'_>| match place {
        UserData::Text(text) => json!(text),
        UserData::Value(value) => {
            let mut value = value.clone();
            if let Some(id) = value.get_mut("artifactId") {
                *id = Value::Null;
            }
            value
        }
        UserData::Object(object) => json!(object),
    };
    places.into_iter().map(read).collect()
}

#[test]
fn data_that_holds_the_sources_id_is_copied_as_it_is() {
    let run = decided();
    for from in 0..run.log().len() as u64 {
        let replay = run.fork(Replay, from);
        assert_eq!(replay.log().len(), run.log().len(), "from {from}");
        for (was, is) in run.log().iter().zip(replay.log()) {
            assert_eq!(data(was), data(is), "from {from}: {:?}", is.event);
        }
        assert_eq!(replay.run().view().inputs, run.run().view().inputs);
    }
    for from in 1..run.log().len() as u64 {
        let branch = run.fork(Branch, from);
        let copied = run.log().iter().zip(branch.log()).take(from as usize);
        for (was, is) in copied {
            assert_eq!(data(was), data(is), "from {from}: {:?}", is.event);
        }
        assert_eq!(branch.run().view().variables["note"], ABOUT);
    }
}

#[test]
fn what_the_engine_named_after_the_source_is_named_after_the_fork() {
    let replay = decided().fork(Replay, 0);
    let mut seen = 0;
    for recorded in replay.log() {
        match &recorded.event {
            Event::InterruptRequested { interrupt, .. } => {
                assert_eq!(interrupt.key, "run-fork:gate:1");
                assert_eq!(interrupt.data["artifactId"], "run-fork:gate");
                seen += 1;
            }
            Event::NodeSuspended { key, .. } => {
                assert_eq!(key, "run-fork:gate:1");
                seen += 1;
            }
            Event::ApprovalRequested { artifact_id, .. } => {
                assert_eq!(artifact_id, "run-fork:gate");
                seen += 1;
            }
            _ => {}
        }
    }
    assert_eq!(seen, 3);
    let talk = flow("talk")
        .node("talk", "core.conversationGate", json!({"prompt": ABOUT}))
        .channel("conversation", json!({"reducer": "message"}));
    let branch = Stage::started(talk).fork(Branch, 6);
    let opened = branch.log().iter().find_map(|r| match &r.event {
        Event::ConversationOpened {
            conversation, turn, ..
        } => Some((conversation.as_str(), turn)),
        _ => None,
    });
    let (conversation, turn) = opened.expect("it was opened");
    assert_eq!(conversation, "run-fork:talk:1");
    assert_eq!(turn["messageId"], "run-fork:talk:1:0:system");
    assert_eq!(turn["content"], ABOUT);
    let question = &branch.run().open_questions()[0];
    assert_eq!(question.interrupt.data["conversationId"], conversation);
}

#[test]
fn what_a_conversation_gives_is_named_after_the_fork() {
    let talk = flow("conformance-talk")
        .node(
            "talk",
            "core.conversationGate",
            json!({"lifecycle": "open-exchange-close", "mockAutoResume": true}),
        )
        .channel("conversation", json!({"reducer": "message"}));
    let run = Stage::started(talk);
    assert_eq!(run.status(), RunStatus::Completed);
    let replay = run.fork(Replay, 0);
    let told = serde_json::to_string(&replay.log()[1..]).unwrap();
    assert!(told.contains("run-fork:talk:1"), "{told}");
    assert!(!told.contains("run-1:talk"), "{told}");
}

#[test]
fn a_supervisor_that_is_asked_again_is_told_of_the_fork() {
    let endpoint = json!({"endpoint": {"url": "http://brain.test/"}, "prompt": ABOUT});
    let lead = flow("lead")
        .variable("note", json!({"defaultValue": ABOUT}))
        .node("lead", "core.orchestrator.supervisor", endpoint);
    let run = Stage::started(lead);
    let branch = run.fork(Branch, run.log().len() as u64 - 1);
    let bodies: Vec<&Value> = branch
        .outbox()
        .filter_map(|effect| match &effect.kind {
            EffectKind::Http { request, .. } => request.body.as_ref(),
            _ => None,
        })
        .collect();
    assert_eq!(bodies.len(), 1);
    assert_eq!(bodies[0]["runId"], "run-fork");
    assert_eq!(bodies[0]["prompt"], ABOUT);
}

#[test]
fn artifacts_keep_their_ids_wherever_they_were_passed_on() {
    let made = json!({"artifactType": "report", "content": {"a": 1}});
    let passed = json!({"type": "connection", "nodeId": "made", "outputKey": "artifactId"});
    let flow = flow("conformance-artifacts")
        .node("made", "conformance.artifact.emit", made)
        .node("read", "core.identity", json!({}))
        .port("id", passed)
        .path("made read");
    let run = Stage::started(flow);
    assert_eq!(run.status(), RunStatus::Completed);
    let lasts = 0..run.log().len() as u64;
    let mut replays: Vec<Stage> = lasts.map(|from| run.fork(Replay, from)).collect();
    replays.push(replays[0].fork(Replay, 0));
    for replay in &replays {
        assert_eq!(replay.log().len(), run.log().len(), "nothing diverged");
        for (was, is) in run.log().iter().zip(replay.log()).skip(1) {
            assert_eq!(was.event, is.event);
        }
    }
}
