//! Models in forks: a replay answers from the record by content key and refuses what is not there;
//! a provider that answers by program is asked again and compared; a branch asks anew.

use super::flow::{Flow, flow};
use super::models::{cut_off, refused, said, structured};
use super::stage::Stage;
use crate::run::Reheard;
use serde_json::{Value, json};
use tandem_record::ForkMode::{Branch, Replay};
use tandem_record::{EffectKind, Event, ModelAnswer, RunStatus, Work};

/// Two models side by side, and a variable that keeps what one of them said.
fn two() -> Flow {
    let kept = json!({"type": "connection", "nodeId": "a", "outputKey": "output"});
    let flow = structured(
        flow("two").variable("kept", json!({"type": "object"})),
        "a",
        json!({}),
    );
    structured(flow, "b", json!({"temperature": 1}))
        .node("keep", "core.setVariable", json!({"name": "kept"}))
        .port("value", kept)
        .noops("z")
        .path("a keep z")
        .path("b z")
}

/// Answers of the two mixed, one asked three times, one found in a fence.
fn answered() -> Stage {
    let mut run = Stage::started(two());
    run.elapse(5);
    run.done("a", said("prose"));
    run.done("b", said("```\n{\"ok\":true}\n```"));
    run.elapse(3);
    run.done("a", cut_off("{"));
    run.done("a", said("{\"ok\":false}"));
    assert_eq!(run.status(), RunStatus::Completed);
    run
}

#[test]
fn a_replay_from_any_index_does_again_what_followed_from_the_recorded_answers() {
    let run = answered();
    for from in 0..run.log().len() as u64 {
        let (one, two) = (run.fork(Replay, from), run.fork(Replay, from));
        assert_eq!(one.log(), two.log(), "from {from}");
        assert_told_alike(&run, &one);
        assert_eq!(at_every_index(&one), at_every_index(&run), "from {from}");
        // A fork of a fork is as good.
        assert_told_alike(&one, &one.fork(Replay, 0));
    }
}

/// The replay tells what the source told, asks nobody and waits for nothing.
#[track_caller]
fn assert_told_alike(source: &Stage, replay: &Stage) {
    let told = |stage: &Stage| -> Vec<Value> {
        let log = stage.log().iter().skip(1);
        log.map(|r| json!([r.cause, shape(&r.event)])).collect()
    };
    assert_eq!(told(replay), told(source));
    assert_eq!(replay.outbox().count(), 0, "nobody is asked");
    assert!(replay.timers().is_empty(), "nothing is waited for");
    assert_eq!(replay.status(), source.status());
}

/// Variables, channels and status after each event.
fn at_every_index(stage: &Stage) -> Vec<(Value, String)> {
    let mut run = crate::run::Run::new(stage.run().id().clone(), stage.run().definition().clone());
    let log = stage.log().iter();
    log.map(|recorded| {
        run.evolve(recorded);
        let view = run.view();
        let seen = json!([view.variables, view.channels]);
        (seen, run.status().as_str().to_owned())
    })
    .collect()
}

/// An event without the identity of its call, which is the run's own.
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
    // Somebody changed what the source is said to have asked.
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
    let waiting = Stage::started(two()).fork(Replay, 0);
    assert_eq!(
        waiting.run().error().expect("it failed").code,
        "replay_source_missing"
    );
}

#[test]
fn a_replay_does_not_care_who_could_be_asked_today() {
    let chat = flow("chat").node(
        "m",
        "core.llm.chat",
        json!({"provider": "acme", "userPrompt": "Why?"}),
    );
    let mut run = Stage::started(chat);
    run.done("m", said("Because."));
    run.providers = Default::default();
    assert_told_alike(&run, &run.fork(Replay, 0));
}

#[test]
fn a_failed_call_is_repeated_as_it_failed() {
    let mut run = Stage::started(two());
    run.failed(
        "a",
        tandem_record::ErrorInfo::new("provider_unavailable", "gone"),
    );
    assert_eq!(run.status(), RunStatus::Failed);
    let replay = run.fork(Replay, 0);
    assert_eq!(replay.run().error(), run.run().error());
    assert_eq!(replay.log().len(), run.log().len());
}

fn mocked() -> Flow {
    mocked_with(json!({}))
}

fn mocked_with(settings: Value) -> Flow {
    let config = json!({"provider": "mock", "model": "mini"});
    structured(flow("conformance-m"), "m", config)
        .with("settings", settings)
        .noops("z")
        .path("m z")
}

fn reheard(answer: Value) -> Reheard {
    let answer: ModelAnswer = serde_json::from_value(answer).expect("an answer");
    Reheard::Answer(answer)
}

fn source(answer: Value) -> Stage {
    let mut run = Stage::started(mocked());
    run.done("m", answer);
    assert!(run.status().is_terminal());
    run
}

#[test]
fn a_refusal_on_one_side_only_ends_the_replay_there() {
    for (was, is, kinds) in [
        (said("{\"ok\":true}"), refused("no"), ("valid", "refusal")),
        (refused("no"), said("{\"ok\":true}"), ("refusal", "valid")),
    ] {
        let mut run = source(was);
        run.reheard = reheard(is);
        let mut replay = run.fork(Replay, 0);
        let error = replay.run().error().expect("it failed").clone();
        assert_eq!(error.code, "replay_diverged_at_refusal");
        let details = json!({"atSequence": 2, "nodeId": "m",
            "originalEnvelopeKind": kinds.0, "replayEnvelopeKind": kinds.1});
        assert_eq!(error.details, Some(details));
        let lines = replay.lines();
        let told = format!("replay.diverged-at-refusal m {kinds:?}");
        let place = lines.iter().position(|l| *l == told).expect("it is told");
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
        // Before the fork point everything is history, whatever would be said today.
        let late = run.fork(Replay, run.log().len() as u64 - 1);
        assert_eq!(late.status(), run.status());
    }
}

#[test]
fn what_the_source_got_in_the_end_is_what_counts() {
    let mut run = Stage::started(mocked());
    run.done("m", said("prose"));
    run.done("m", said("{\"ok\":true}"));
    run.reheard = reheard(refused("no"));
    let replay = run.fork(Replay, 0);
    let error = replay.run().error().expect("it failed").clone();
    assert_eq!(error.code, "replay_diverged_at_refusal");

    // A source that gave up was neither refused nor answered.
    let lenient = mocked_with(json!({"onError": "continue"}));
    let mut run = Stage::started(lenient);
    for _ in 0..3 {
        run.done("m", said("prose"));
    }
    assert_eq!(run.status(), RunStatus::Completed);
    run.reheard = reheard(refused("no"));
    let replay = run.fork(Replay, 0);
    let error = replay.run().error().expect("it failed").clone();
    assert_eq!(error.code, "replay_source_missing");
}

#[test]
fn other_answers_of_a_program_are_told_and_another_course_is_refused() {
    let mut run = source(said("{\"ok\":true}"));
    run.reheard = Reheard::Nothing;
    assert_told_alike(&run, &run.fork(Replay, 0));
    run.reheard = reheard(said("{\"ok\":true}"));
    assert_told_alike(&run, &run.fork(Replay, 0));

    run.reheard = reheard(said("{\"ok\":false}"));
    let mut other = run.fork(Replay, 0);
    assert_eq!(other.status(), RunStatus::Completed);
    assert!(
        other
            .lines()
            .iter()
            .any(|l| l.starts_with("replay.diverged "))
    );

    run.reheard = reheard(said("prose"));
    let astray = run.fork(Replay, 0);
    assert_eq!(
        astray.run().error().expect("it failed").code,
        "replay_source_missing"
    );

    let twice = refused("no");
    let mut run = source(twice.clone());
    run.reheard = reheard(twice);
    assert_told_alike(&run, &run.fork(Replay, 0));
}

#[test]
fn a_program_is_asked_before_a_replay_is_decided() {
    let mut run = source(said("{\"ok\":true}"));
    run.reheard = Reheard::NotAsked;
    let need = run.fork_needs(Replay, 0);
    let need = format!("{need:?}");
    assert!(
        need.starts_with("Model(") && need.contains("Is it fine?"),
        "{need}"
    );
}

#[test]
fn what_says_it_is_not_deterministic_is_repeated_from_the_log() {
    let config = json!({"provider": "mock", "model": "mini", "nondeterministic": true});
    let mut run = Stage::started(structured(flow("conformance-m"), "m", config));
    run.done("m", said("{\"ok\":true}"));
    run.reheard = reheard(refused("no"));
    let replay = run.fork(Replay, 0);
    assert_eq!(replay.status(), RunStatus::Completed);
    assert_eq!(replay.log().len(), run.log().len());
}

#[test]
fn a_branch_asks_anew_under_its_own_identity() {
    let mut run = Stage::started(two());
    run.done("a", said("prose"));
    let theirs = run.effect_of("a");
    let at = run.log().len() as u64;
    run.done("a", said("{\"ok\":true}"));
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
