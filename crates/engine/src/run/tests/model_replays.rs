//! Models in forks: a replay uses the recorded answers by content key and fails without one; a
//! provider that answers by program is called again and compared; a branch calls the model again.

use super::harness::RunHarness;
use super::models::{cut_off, model_text, refused, structured};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::ReplayedModelAnswer;
use serde_json::{Value, json};
use tandem_record::ForkMode::{Branch, Replay};
use tandem_record::{EffectKind, Event, ModelAnswer, RecordedEvent, RunStatus, Work};

/// Two parallel models, and a variable with the answer of one of them.
fn two() -> WorkflowBuilder {
    let kept = json!({"type": "connection", "nodeId": "a", "outputKey": "output"});
    let workflow = structured(
        workflow("two").variable("kept", json!({"type": "object"})),
        "a",
        json!({}),
    );
    structured(workflow, "b", json!({"temperature": 1}))
        .node("keep", "core.setVariable", json!({"name": "kept"}))
        .port("value", kept)
        .noops("z")
        .path("a keep z")
        .path("b z")
}

/// Interleaved answers of the two: one needs three attempts, one answer is in a code fence.
fn answered() -> RunHarness {
    let mut run = RunHarness::started(two());
    run.elapse(5);
    run.done("a", model_text("prose"));
    run.done("b", model_text("```\n{\"ok\":true}\n```"));
    run.elapse(3);
    run.done("a", cut_off("{"));
    run.done("a", model_text("{\"ok\":false}"));
    assert_eq!(run.status(), RunStatus::Completed);
    run
}

#[test]
fn replay_from_any_event_repeats_what_followed_recorded_answers() {
    let run = answered();
    for from in 0..run.log().len() as u64 {
        let (one, two) = (run.fork(Replay, from), run.fork(Replay, from));
        assert_eq!(one.log(), two.log(), "from {from}");
        assert_same_events(&run, &one);
        assert_eq!(at_every_index(&one), at_every_index(&run), "from {from}");
        // A fork of a fork gives the same.
        assert_same_events(&one, &one.fork(Replay, 0));
    }
}

#[test]
fn replay_of_a_branch_that_called_again_has_its_events() {
    let flow = structured(workflow("one"), "a", json!({}))
        .noops("z")
        .path("a z");
    let mut run = RunHarness::started(flow);
    run.done("a", model_text("{\"ok\":true}"));
    let answer = |r: &RecordedEvent| matches!(r.event, Event::ModelAnswered(_));
    let answered = run.log().iter().position(answer);
    // The branch has the answer, but not what followed from it.
    let point = answered.expect("the model was called") as u64 + 1;
    let mut branch = run.fork(Branch, point);
    branch.done("a", model_text("{\"ok\":false}"));
    assert_eq!(branch.status(), RunStatus::Completed);
    for from in 0..branch.log().len() as u64 {
        assert_same_events(&branch, &branch.fork(Replay, from));
    }
}

/// The replay has the source's events, calls no provider and waits for nothing.
#[track_caller]
fn assert_same_events(source: &RunHarness, replay: &RunHarness) {
    let events = |harness: &RunHarness| -> Vec<Value> {
        let log = harness.log().iter().skip(1);
        log.map(|r| json!([r.cause, shape(&r.event)])).collect()
    };
    assert_eq!(events(replay), events(source));
    assert_eq!(replay.outbox().count(), 0, "no provider is called");
    assert!(replay.timers().is_empty(), "nothing is waited for");
    assert_eq!(replay.status(), source.status());
}

/// Variables, channels and status after each event.
fn at_every_index(harness: &RunHarness) -> Vec<(Value, String)> {
    let mut run = crate::run::Run::new(
        harness.run().id().clone(),
        harness.run().definition().clone(),
    );
    let log = harness.log().iter();
    log.map(|recorded| {
        run.evolve(recorded);
        let view = run.view();
        let seen = json!([view.variables, view.channels]);
        (seen, run.status().as_str().to_owned())
    })
    .collect()
}

/// An event without the id of its call, which differs between runs.
fn shape(event: &Event) -> Value {
    let mut shape = serde_json::to_value(event).expect("events are plain data");
    if let Some(work) = shape.get_mut("work").and_then(Value::as_object_mut) {
        work.remove("effect");
    }
    shape
}

#[test]
fn a_request_without_a_recorded_answer_ends_the_replay_visibly() {
    let mut run = answered();
    // The source's recorded request was changed.
    run.tamper(|event| match event {
        Event::NodeStarted {
            work: Some(Work::Model { request, .. }),
            node,
            ..
        } if node.as_str() == "a" => request.messages[0].content = "Something else?".to_owned(),
        _ => {}
    });
    let mut replay = run.fork(Replay, 0);
    assert_eq!(replay.status(), RunStatus::Failed);
    assert_eq!(
        replay.run().error().expect("it failed").code,
        "replay_source_missing"
    );
    let lines = replay.lines();
    assert!(
        lines.iter().any(|l| l.starts_with("replay.diverged ")),
        "{lines:?}"
    );
    assert!(
        !lines.iter().any(|l| l.contains("started keep")),
        "{lines:?}"
    );
    assert_eq!(replay.outbox().count(), 0);

    // A run that still waits has no answer either.
    let waiting = RunHarness::started(two()).fork(Replay, 0);
    assert_eq!(
        waiting.run().error().expect("it failed").code,
        "replay_source_missing"
    );
}

#[test]
fn replay_does_not_need_the_providers_of_the_source() {
    let chat = workflow("chat").node(
        "m",
        "core.llm.chat",
        json!({"provider": "acme", "userPrompt": "Why?"}),
    );
    let mut run = RunHarness::started(chat);
    run.done("m", model_text("Because."));
    run.providers = Default::default();
    assert_same_events(&run, &run.fork(Replay, 0));
}

#[test]
fn failed_model_call_is_replayed_as_failed() {
    let mut run = RunHarness::started(two());
    run.failed(
        "a",
        tandem_record::ErrorInfo::new("provider_unavailable", "gone"),
    );
    assert_eq!(run.status(), RunStatus::Failed);
    let replay = run.fork(Replay, 0);
    assert_eq!(replay.run().error(), run.run().error());
    assert_eq!(replay.log().len(), run.log().len());
}

fn mocked() -> WorkflowBuilder {
    mocked_with(json!({}))
}

fn mocked_with(settings: Value) -> WorkflowBuilder {
    let config = json!({"provider": "mock", "model": "mini"});
    structured(workflow("conformance-m"), "m", config)
        .with("settings", settings)
        .noops("z")
        .path("m z")
}

fn replayed_answer(answer: Value) -> ReplayedModelAnswer {
    let answer: ModelAnswer = serde_json::from_value(answer).expect("an answer");
    ReplayedModelAnswer::Answer(answer)
}

fn source(answer: Value) -> RunHarness {
    let mut run = RunHarness::started(mocked());
    run.done("m", answer);
    assert!(run.status().is_terminal());
    run
}

#[test]
fn a_refusal_on_one_side_only_ends_the_replay_there() {
    for (was, is, kinds) in [
        (
            model_text("{\"ok\":true}"),
            refused("no"),
            ("valid", "refusal"),
        ),
        (
            refused("no"),
            model_text("{\"ok\":true}"),
            ("refusal", "valid"),
        ),
    ] {
        let mut run = source(was);
        run.replayed_answer = replayed_answer(is);
        let mut replay = run.fork(Replay, 0);
        let error = replay.run().error().expect("it failed").clone();
        assert_eq!(error.code, "replay_diverged_at_refusal");
        let details = json!({"atSequence": 2, "nodeId": "m",
            "originalEnvelopeKind": kinds.0, "replayEnvelopeKind": kinds.1});
        assert_eq!(error.details, Some(details));
        let lines = replay.lines();
        let expected = format!("replay.diverged-at-refusal m {kinds:?}");
        let place = lines
            .iter()
            .position(|l| *l == expected)
            .expect("the line exists");
        assert_eq!(
            &lines[place + 1..],
            [
                "node.failed m replay_diverged_at_refusal",
                "run.failed replay_diverged_at_refusal m"
            ]
        );
        assert!(
            !lines.iter().any(|l| l.starts_with("replay.diverged ")),
            "{lines:?}"
        );
        // Before the fork point the events are copied, whatever the answer would be today.
        let late = run.fork(Replay, run.log().len() as u64 - 1);
        assert_eq!(late.status(), run.status());
    }
}

#[test]
fn last_answer_of_the_source_decides_refusal_divergence() {
    let mut run = RunHarness::started(mocked());
    run.done("m", model_text("prose"));
    run.done("m", model_text("{\"ok\":true}"));
    run.replayed_answer = replayed_answer(refused("no"));
    let replay = run.fork(Replay, 0);
    let error = replay.run().error().expect("it failed").clone();
    assert_eq!(error.code, "replay_diverged_at_refusal");

    // A source that failed was neither refused nor answered.
    let lenient = mocked_with(json!({"onError": "continue"}));
    let mut run = RunHarness::started(lenient);
    for _ in 0..3 {
        run.done("m", model_text("prose"));
    }
    assert_eq!(run.status(), RunStatus::Completed);
    run.replayed_answer = replayed_answer(refused("no"));
    let replay = run.fork(Replay, 0);
    let error = replay.run().error().expect("it failed").clone();
    assert_eq!(error.code, "replay_source_missing");
}

#[test]
fn programmed_answer_may_differ_but_another_path_ends_the_replay() {
    let mut run = source(model_text("{\"ok\":true}"));
    run.replayed_answer = ReplayedModelAnswer::Exhausted;
    assert_same_events(&run, &run.fork(Replay, 0));
    run.replayed_answer = replayed_answer(model_text("{\"ok\":true}"));
    assert_same_events(&run, &run.fork(Replay, 0));

    run.replayed_answer = replayed_answer(model_text("{\"ok\":false}"));
    let mut other = run.fork(Replay, 0);
    assert_eq!(other.status(), RunStatus::Completed);
    assert!(
        other
            .lines()
            .iter()
            .any(|l| l.starts_with("replay.diverged "))
    );

    run.replayed_answer = replayed_answer(model_text("prose"));
    let astray = run.fork(Replay, 0);
    assert_eq!(
        astray.run().error().expect("it failed").code,
        "replay_source_missing"
    );

    let twice = refused("no");
    let mut run = source(twice.clone());
    run.replayed_answer = replayed_answer(twice);
    assert_same_events(&run, &run.fork(Replay, 0));
}

#[test]
fn programmed_provider_is_called_before_a_replay_is_decided() {
    let mut run = source(model_text("{\"ok\":true}"));
    run.replayed_answer = ReplayedModelAnswer::NotCalled;
    let need = run.fork_needs(Replay, 0);
    let need = format!("{need:?}");
    assert!(
        need.starts_with("Model(") && need.contains("Is it fine?"),
        "{need}"
    );
}

#[test]
fn nondeterministic_model_node_is_copied_from_the_log() {
    let config = json!({"provider": "mock", "model": "mini", "nondeterministic": true});
    let mut run = RunHarness::started(structured(workflow("conformance-m"), "m", config));
    run.done("m", model_text("{\"ok\":true}"));
    run.replayed_answer = replayed_answer(refused("no"));
    let replay = run.fork(Replay, 0);
    assert_eq!(replay.status(), RunStatus::Completed);
    assert_eq!(replay.log().len(), run.log().len());
}

#[test]
fn branch_calls_the_model_again_with_its_own_effect_id() {
    let mut run = RunHarness::started(two());
    run.done("a", model_text("prose"));
    let theirs = run.effect_of("a");
    let at = run.log().len() as u64;
    run.done("a", model_text("{\"ok\":true}"));
    let branch = run.fork(Branch, at);
    assert_ne!(branch.effect_of("a"), theirs);
    let rounds = branch.outbox().filter_map(|e| match &e.kind {
        EffectKind::Model { node, request, .. } => Some((node.to_string(), request.messages.len())),
        _ => None,
    });
    let mut rounds: Vec<_> = rounds.collect();
    rounds.sort();
    assert_eq!(rounds, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
}
