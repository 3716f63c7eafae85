//! Which ids a fork replaces, and that its data is the source's data.

use super::gates::answer;
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::ForkMode::{Branch, Replay};
use tandem_record::{EffectKind, Event, RecordedEvent, RunStatus, UserData};

/// Text of a user that contains the source's id, in every form of id that the engine derives from
/// it.
const ABOUT: &str = "see run-1, evt-run-1-3, run-1:gate:1 and run-1:gate";

fn about() -> WorkflowBuilder {
    let read = json!({"type": "variable", "variableName": "note"});
    workflow("about")
        .variable("note", json!({}))
        .node("first", "core.identity", json!({}))
        .port("note", read)
        .node("gate", "core.approvalGate", json!({"title": ABOUT}))
        .http("call", json!({"output": "said"}))
        .path("first gate call")
}

fn decided() -> RunHarness {
    let mut run = RunHarness::new(about());
    run.create(json!({"note": ABOUT, "run-1": ["run-1"]}));
    run.when(answer(
        "gate",
        json!({"action": "accept", "feedback": ABOUT}),
    ));
    run.done("call", json!({"body": {"runId": "run-1", "said": ABOUT}}));
    assert_eq!(run.status(), RunStatus::Completed);
    run
}

/// The data of an event as text, except the interrupt about the engine's own artifact.
fn data(recorded: &RecordedEvent) -> Vec<Value> {
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
fn data_with_the_source_id_is_copied_unchanged() {
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
fn engine_made_ids_are_renamed_for_the_fork() {
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
    let talk = workflow("talk")
        .node("talk", "core.conversationGate", json!({"prompt": ABOUT}))
        .channel("conversation", json!({"reducer": "message"}));
    let branch = RunHarness::started(talk).fork(Branch, 6);
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
fn conversation_outputs_use_the_fork_id() {
    let talk = workflow("conformance-talk")
        .node(
            "talk",
            "core.conversationGate",
            json!({"lifecycle": "open-exchange-close", "mockAutoResume": true}),
        )
        .channel("conversation", json!({"reducer": "message"}));
    let run = RunHarness::started(talk);
    assert_eq!(run.status(), RunStatus::Completed);
    let replay = run.fork(Replay, 0);
    let text = serde_json::to_string(&replay.log()[1..]).unwrap();
    assert!(text.contains("run-fork:talk:1"), "{text}");
    assert!(!text.contains("run-1:talk"), "{text}");
}

#[test]
fn supervisor_request_of_a_fork_has_the_fork_id() {
    let endpoint = json!({"endpoint": {"url": "http://brain.test/"}, "prompt": ABOUT});
    let lead = workflow("lead")
        .variable("note", json!({"defaultValue": ABOUT}))
        .node("lead", "core.orchestrator.supervisor", endpoint);
    let run = RunHarness::started(lead);
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
fn artifact_ids_are_unchanged_in_a_fork() {
    let made = json!({"artifactType": "report", "content": {"a": 1}});
    let passed = json!({"type": "connection", "nodeId": "made", "outputKey": "artifactId"});
    let workflow = workflow("conformance-artifacts")
        .node("made", "conformance.artifact.emit", made)
        .node("read", "core.identity", json!({}))
        .port("id", passed)
        .path("made read");
    let run = RunHarness::started(workflow);
    assert_eq!(run.status(), RunStatus::Completed);
    let lasts = 0..run.log().len() as u64;
    let mut replays: Vec<RunHarness> = lasts.map(|from| run.fork(Replay, from)).collect();
    replays.push(replays[0].fork(Replay, 0));
    for replay in &replays {
        assert_eq!(replay.log().len(), run.log().len(), "nothing diverged");
        for (was, is) in run.log().iter().zip(replay.log()).skip(1) {
            assert_eq!(was.event, is.event);
        }
    }
}
