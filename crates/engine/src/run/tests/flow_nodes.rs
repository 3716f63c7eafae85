//! Nodes that start flows of conversations: what they wait for, how they end, what forks do.

use super::harness::RunHarness;
use super::workflow_builder::workflow;
use crate::run::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::conversation::{FlowReport, ParentNode};
use tandem_record::{Command, DeciderSnapshot, EffectKind, ForkMode, Reply, RunId, RunStatus, Seq};

fn talking(config: Value) -> RunHarness {
    let mut run = RunHarness::new(talk(config));
    run.create(json!({}));
    run
}

fn talk(more: Value) -> super::workflow_builder::WorkflowBuilder {
    let mut config = json!({
        "agentId": "desk",
        "flowId": "asks",
        "target": {"userExternalId": "u1"},
    });
    let fields = config.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    workflow("parent")
        .node("talk", "vendor.tandem.flow", config)
        .noops("after")
        .path("talk after")
}

/// The flow run that the node named.
fn flow_run(run: &RunHarness) -> RunId {
    let mut named = run.outbox().filter_map(|effect| match &effect.kind {
        EffectKind::StartFlow { flow_run, .. } => Some(flow_run.clone()),
        _ => None,
    });
    named.next().expect("a flow is started")
}

fn report(flow_run: &RunId, status: &str) -> FlowReport {
    FlowReport {
        parent: ParentNode {
            run_id: "run-1".into(),
            node_id: "talk".into(),
            flow_run_id: Some(flow_run.clone()),
            dispatched_at: Seq(2),
        },
        flow_run_id: Some(flow_run.clone()),
        status: status.to_owned(),
        reason: Some("asked".to_owned()),
        message: None,
        result: Some(json!({"score": 3})),
        answers: BTreeMap::from([("name".to_owned(), "Ada".to_owned())]),
    }
}

fn answer(run: &mut RunHarness) -> Result<Reply, Refusal> {
    run.try_when(Command::ResolveInterrupt {
        node: "talk".into(),
        interrupt: None,
        value: json!({"status": "completed"}),
        by: None,
        by_link: false,
        decider: DeciderSnapshot::default(),
    })
}

/// §10.8
#[test]
fn node_waits_for_its_flow_and_completes_with_what_it_gave() {
    let mut run = talking(json!({}));
    assert_eq!(run.status(), RunStatus::WaitingExternal);
    let flow = flow_run(&run);
    assert!(flow.is_flow_run());
    let refused = answer(&mut run);
    assert!(matches!(refused, Err(Refusal::NotAnswerable { .. })));
    let other = report(&RunId::from("flow-other"), "completed");
    let stale = run.when(Command::ReportFlow(Box::new(other)));
    assert_eq!(stale, Reply::Unchanged);
    run.when(Command::ReportFlow(Box::new(report(&flow, "completed"))));
    assert_eq!(run.status(), RunStatus::Completed);
    let outputs = json!(run.node("talk").outputs);
    assert_eq!(
        outputs,
        json!({"flowRunId": flow, "status": "completed", "reason": "asked",
            "result": {"score": 3}, "answers": {"name": "Ada"}})
    );
}

/// §10.8: how a flow ends is a result; only one that never began fails its node.
#[test]
fn failed_flow_is_a_result_and_a_flow_that_never_began_is_a_failure() {
    let mut run = talking(json!({}));
    let flow = flow_run(&run);
    run.when(Command::ReportFlow(Box::new(report(&flow, "failed"))));
    assert_eq!(run.status(), RunStatus::Completed);
    let mut run = talking(json!({}));
    let flow = flow_run(&run);
    let unstarted = FlowReport {
        flow_run_id: None,
        reason: Some("flow_active".to_owned()),
        ..report(&flow, "cancelled")
    };
    run.when(Command::ReportFlow(Box::new(unstarted)));
    let error = run.run().error().map(|error| error.code.clone());
    assert_eq!(error.as_deref(), Some("flow_active"));
}

/// §10.8
#[test]
fn cancelled_run_and_a_timeout_cancel_the_flow() {
    let cancels = |run: &RunHarness| {
        let mut effects = run.outbox();
        effects.any(|effect| matches!(effect.kind, EffectKind::CancelFlow { .. }))
    };
    let mut run = talking(json!({}));
    run.when(Command::Cancel {
        reason: None,
        by: None,
        by_parent: None,
    });
    assert_eq!(run.status(), RunStatus::Cancelled);
    assert!(cancels(&run));
    let mut run = talking(json!({"timeoutSeconds": 60}));
    run.elapse(60_000);
    assert_eq!(run.status(), RunStatus::Completed);
    assert_eq!(json!(run.node("talk").outputs)["status"], "timed_out");
    assert!(cancels(&run));
}

/// §10.8: nobody is talked to because somebody looks at what would have been.
#[test]
fn forks_use_the_recorded_result_and_start_nothing() {
    let mut run = talking(json!({}));
    let flow = flow_run(&run);
    let waiting = run.log().len() as u64;
    run.when(Command::ReportFlow(Box::new(report(&flow, "completed"))));
    let recorded = json!(run.node("talk").outputs);
    let forks = [
        (ForkMode::Replay, 0),
        (ForkMode::Branch, 0),
        (ForkMode::Branch, 2),
        (ForkMode::Branch, waiting),
    ];
    for (mode, from) in forks {
        let fork = run.fork(mode, from);
        assert_eq!(fork.status(), RunStatus::Completed, "{mode:?} {from}");
        assert_eq!(
            json!(fork.node("talk").outputs),
            recorded,
            "{mode:?} {from}"
        );
        let talks = fork.outbox().any(|effect| {
            matches!(
                effect.kind,
                EffectKind::StartFlow { .. } | EffectKind::CancelFlow { .. }
            )
        });
        assert!(!talks, "{mode:?} {from}");
    }
}

/// §10.8
#[test]
fn fork_of_a_run_whose_flow_has_not_ended_fails_there() {
    let run = talking(json!({}));
    let waiting = run.log().len() as u64;
    for from in [0, waiting] {
        let fork = run.fork(ForkMode::Branch, from);
        let error = fork.run().error().map(|error| error.code.clone());
        assert_eq!(error.as_deref(), Some("flow_not_recorded"), "{from}");
        assert_eq!(fork.outbox().count(), 0, "{from}");
    }
}

#[test]
fn wrong_settings_of_a_flow_node_are_refused_with_their_path() {
    let cases = [
        (json!({"target": {}}), "/target"),
        (
            json!({"target": {"userExternalId": "u", "sessionId": "s"}}),
            "/target",
        ),
        (json!({"target": {"sessionId": 5}}), "/target/sessionId"),
        (json!({"target": {"user": "u"}}), "/target"),
        (
            json!({"target": {"sessionId": "s"}, "allowSessionBootstrap": true}),
            "/allowSessionBootstrap",
        ),
        (json!({"onActiveFlow": "defer"}), "/onActiveFlow"),
        (json!({"timeoutSeconds": 0}), "/timeoutSeconds"),
        (json!({"flowId": ""}), "/flowId"),
        (json!({"timeoutMs": 5}), "/timeoutMs"),
    ];
    for (config, path) in cases {
        let problems = talk(config.clone()).faults();
        let at = format!("/nodes/0/config{path}");
        assert!(
            problems.iter().any(|problem| problem.path.starts_with(&at)),
            "{config}: {problems:?}"
        );
    }
}
