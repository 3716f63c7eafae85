//! Conversations with people.

use super::gates::answer;
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use serde_json::{Value, json};
use tandem_record::{Cause, Command, Event, RunStatus};

fn talk(config: Value) -> WorkflowBuilder {
    workflow("talk")
        .node("talk", "core.conversationGate", config)
        .channel("conversation", json!({"reducer": "message"}))
}

fn exchange(text: Value) -> Command {
    let turn = json!({"content": text});
    answer("talk", json!({"operation": "exchange", "turn": turn}))
}

#[test]
fn turns_are_exchanged_until_the_conversation_is_closed() {
    let mut run = RunHarness::started(talk(json!({"prompt": "Which colour?"})));
    run.then(
        r#"
        run.started
        node.started talk
        interrupt.requested talk
        node.suspended talk waiting-approval
        conversation.opened talk "Which colour?"
        channel.written conversation message {"content":"Which colour?","from":"system","messageId":"talk:1:0:system","role":"system","ts":1000000,"turnIndex":0}
        "#,
    );
    let opened = run.log().iter().find_map(|r| match &r.event {
        Event::ConversationOpened { .. } => r.cause.clone(),
        _ => None,
    });
    assert_eq!(
        opened,
        Some(Cause::Event(run.log()[3].seq)),
        "the suspension"
    );
    let suspended = &run.log()[3].event;
    assert!(
        matches!(suspended, Event::NodeSuspended { reason: Some(why), .. } if why == "conversation-input")
    );
    let mut run = run.given();
    run.when(exchange(json!("red")));
    run.when(exchange(json!("no, blue")));
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    let close = json!({"operation": "close", "outcome": {"colour": "blue"}});
    run.when(answer("talk", close));
    assert_eq!(run.status(), RunStatus::Completed);
    let outputs = run.node("talk").outputs.clone().expect("it completed");
    assert_eq!(outputs["conversationId"], "run-1:talk:1");
    assert_eq!(outputs["outcome"], json!({"colour": "blue"}));
    let turns = outputs["turns"].as_array().expect("turns are listed");
    let indices: Vec<&Value> = turns.iter().map(|t| &t["turnIndex"]).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    let late = run.try_when(exchange(json!("wait")));
    assert!(matches!(late, Err(Refusal::Invalid(_))), "{late:?}");
    let again = run.try_when(answer("talk", json!({"operation": "close"})));
    assert!(
        matches!(again, Err(Refusal::AlreadyResolved(_))),
        "{again:?}"
    );
}

#[test]
fn turn_must_match_the_gate_schema() {
    let config = json!({"schema": {"type": "string"}, "participants": [{"agentId": "host:cfo"}]});
    let mut run = RunHarness::started(talk(config)).given();
    let exchange_turn =
        |turn: Value| answer("talk", json!({"operation": "exchange", "turn": turn}));
    for bad in [
        exchange_turn(json!({"content": 1})),
        exchange_turn(json!({})),
        exchange_turn(json!({"content": "x", "role": "system"})),
        exchange_turn(json!({"content": "x", "role": "agent"})),
        exchange_turn(json!({"content": "x", "role": "agent", "speakerId": "host:cto"})),
        exchange_turn(json!({"content": "x".repeat(17 * 1024)})),
        answer("talk", json!({"operation": "exchange"})),
        answer("talk", json!({"operation": "shout"})),
        answer("talk", json!("yes")),
    ] {
        let refused = run.try_when(bad);
        assert!(matches!(refused, Err(Refusal::Invalid(_))), "{refused:?}");
    }
    run.then("");
    run.when(exchange_turn(
        json!({"content": "no", "role": "agent", "speakerId": "host:cfo"}),
    ));
}

#[test]
fn conversation_times_out_without_an_answer() {
    let mut run = RunHarness::started(workflow("talk").node(
        "talk",
        "core.conversationGate",
        json!({"timeoutMs": 10}),
    ))
    .given();
    run.when(exchange(json!("hello")));
    run.elapse(10);
    run.then(
        r#"
        conversation.exchanged talk 1 "hello"
        conversation.closed talk 2 null
        interrupt.resolved talk
        node.resumed talk
        node.failed talk interrupt_timeout
        run.failed interrupt_timeout talk
        "#,
    );
}

#[test]
fn mock_conversation_runs_without_input_and_is_deterministic() {
    let config =
        json!({"lifecycle": "open-exchange-close", "mockAutoResume": true, "turnCount": 2});
    let build = |id: &str| {
        workflow(id)
            .node("talk", "core.conversationGate", config.clone())
            .channel("conversation", json!({"reducer": "message"}))
    };
    let held = |at: u64| {
        let mut run = RunHarness::new(build("conformance-talk"));
        run.now = run.now.plus_ms(at);
        run.create(json!({}));
        assert_eq!(run.status(), RunStatus::Completed);
        run.run().view().channels.expect("it is declared")["conversation"].clone()
    };
    let entries = held(0);
    assert_eq!(entries.as_array().map(Vec::len), Some(4));
    assert_eq!(entries, held(5_000), "whenever it runs");
    assert!(!entries.to_string().contains("run-1"));
    let faults = build("ordinary").faults();
    assert_eq!(faults[0].path, "/nodes/0/config/mockAutoResume");
}

#[test]
fn branch_inside_a_conversation_opening_repeats_it_completely() {
    let config = json!({"prompt": "Hi?", "mockAutoResume": true});
    let alone = workflow("conformance-talk").node("talk", "core.conversationGate", config);
    for (workflow, ends) in [
        (talk(json!({"prompt": "Hi?"})), RunStatus::WaitingApproval),
        (alone, RunStatus::Completed),
    ] {
        let run = RunHarness::started(workflow);
        assert_eq!(run.status(), ends);
        for from in 2..run.log().len() as u64 {
            let branch = run.fork(tandem_record::ForkMode::Branch, from);
            assert_eq!(branch.status(), ends, "from {from}");
            let kinds = |run: &RunHarness| -> Vec<_> {
                let log = run.log().iter();
                log.map(|r| std::mem::discriminant(&r.event)).collect()
            };
            assert_eq!(kinds(&branch), kinds(&run), "from {from}");
        }
    }
}
