//! Decisions in general: split, repeated, and stopped for a lookup.

use super::harness::{NoMemory, RunHarness};
use super::workflow_builder::workflow;
use crate::run::{Context, Definitions, Limits, Lookup, Need, Refusal, Undecided, create};
use serde_json::json;
use tandem_record::{Command, EffectKind, NodeId, Reply, RunId, RunStatus, Timestamp, WorkflowId};
use tandem_schema::Meter;

#[test]
fn long_chain_is_split_over_decisions() {
    let mut run = RunHarness::new(workflow("chain").noops("a b c d e").path("a b c d e"));
    run.limits.max_starts_per_decision = 2;
    run.create(json!({}));
    run.then(
        "
            run.started
            node.started a
            node.completed a
            node.started b
            node.completed b
            > continue
        ",
    );
    run.when(Command::Continue);
    run.then(
        "
            node.started c
            node.completed c
            node.started d
            node.completed d
            > continue
        ",
    );
    run.when(Command::Continue);
    run.then(
        "
            node.started e
            node.completed e
            run.completed
        ",
    );
    assert_eq!(run.when(Command::Continue), Reply::Unchanged);
    let kinds: Vec<&EffectKind> = run.outbox().map(|e| &e.kind).collect();
    assert_eq!(
        kinds,
        [&EffectKind::Continue, &EffectKind::Continue],
        "each under its own id"
    );
}

#[test]
fn long_loop_is_split_over_decisions() {
    let workflow = workflow("spin")
        .node("loop", "core.loop", json!({"times": 50}))
        .path("loop loop");
    let mut run = RunHarness::new(workflow);
    run.limits.max_starts_per_decision = 8;
    run.create(json!({}));
    let mut decisions = 1;
    while run.status() == RunStatus::Running {
        let before = run.log().len();
        run.when(Command::Continue);
        assert!(
            run.log().len() - before <= 2 * 8 + 1,
            "one decision grew too large"
        );
        decisions += 1;
    }
    assert_eq!((run.status(), decisions), (RunStatus::Completed, 7));
}

#[test]
fn decision_that_needs_a_definition_leaves_no_trace() {
    struct Unread;
    impl Definitions for Unread {
        fn current(&self, _: &WorkflowId) -> Lookup {
            Lookup::NotLoaded
        }
    }
    let def = workflow("parent")
        .noops("a")
        .call("call", "child", json!({}))
        .path("a call")
        .compile();
    let request = RunHarness::new(workflow("any").noops("n")).request;
    let context = Context {
        now: Timestamp(5),
        limits: &Limits::default(),
        agents: &Default::default(),
        notices: &[],
        conformance: false,
        definitions: &Unread,
        memory: &NoMemory,
        providers: &Default::default(),
        places: crate::run::TreePlaces::default(),
        tools: &Default::default(),
        packs: &Default::default(),
        model_answers: &NoMemory,
        work: &Meter::unlimited(),
    };
    let undecided = create(&def, RunId::new("run-1"), request, None, &context);
    assert_eq!(
        undecided.expect_err("cannot know"),
        Undecided::Needs(Need::Workflow("child".into()))
    );
}

#[test]
fn types_the_host_does_not_serve_are_refused_at_creation() {
    let cases = [("core.openwop.governance.approvalGate", "authorization")];
    for (type_id, capability) in cases {
        let workflow = workflow("gated")
            .noops("a")
            .node("gate", type_id, json!({}))
            .path("a gate");
        let refused = RunHarness::new(workflow).try_create(json!({}));
        let wanted = Refusal::CapabilityRequired {
            capability,
            type_id: type_id.to_owned(),
            node: NodeId::new("gate"),
        };
        assert_eq!(refused, Err(wanted));
    }
}

#[test]
fn repeated_decision_gives_the_same_effect_id() {
    let ids = || {
        let run = RunHarness::started(workflow("call").http("a", json!({})).http("b", json!({})));
        let ids: Vec<_> = run.outbox().map(|e| e.id.clone()).collect();
        ids
    };
    assert_eq!(ids(), ids());
    assert_eq!(ids().len(), 2);
}
