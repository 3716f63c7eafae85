//! Supervisor and dispatch: the loop, the handoff of each worker, and every limit on both.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::definition::{Definition, Permissions};
use serde_json::{Value, json};
use tandem_record::{
    Cause, ChildOutcome, DrainPolicy, Event, HandoffStep, InterruptId, NodeId, RunStatus,
};

pub(super) fn workers(ids: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": ids})
}

pub(super) fn terminate() -> Value {
    json!({"kind": "terminate", "reason": "done"})
}

/// The loop around a plan of decisions.
pub(super) fn supervised(plan: Value, dispatch: Value) -> WorkflowBuilder {
    workflow("conformance-loop")
        .variable("mine", json!({"defaultValue": "before"}))
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": plan}),
        )
        .node("send", "core.dispatch", dispatch)
        .path("lead send lead")
}

pub(super) fn staged(workflow: WorkflowBuilder) -> RunHarness {
    let worker = |id| super::workflow_builder::workflow(id).noops("n");
    RunHarness::new(workflow)
        .with_workflow(worker("one"))
        .with_workflow(worker("two"))
        .with_workflow(worker("three"))
}

pub(super) fn started(workflow: WorkflowBuilder) -> RunHarness {
    let mut run = staged(workflow);
    run.create(json!({}));
    run
}

fn looping(plan: Value, dispatch: Value) -> RunHarness {
    started(supervised(plan, dispatch))
}

#[test]
fn one_worker_is_dispatched_and_harvested_and_the_run_terminates() {
    // R-0039-12: without a stated confidence nothing is escalated.
    let plan = json!([workers(&["one"]), terminate()]);
    let mut run = looping(plan, json!({"outputMapping": {"mine": "theirs"}}));
    run.then(
        r#"
        run.started {"mine":"before"}
        node.started lead
        decided lead #1 next-worker
        node.completed lead {"decision":{"kind":"next-worker","nextWorkerIds":["one"]}}
        node.started send
        dispatch.began one
        node.dispatched send one
        dispatch.succeeded one
        > start one {} erased=[]
        "#,
    );
    run.child_ended(
        "send",
        RunStatus::Completed,
        json!({"theirs": "after", "other": 1}),
    );
    run.then(
        r#"
        child.completed one
        variable.changed mine: "before" -> "after"
        output.harvested one mine
        node.completed send {"childRunId":"run-8d6c6a91ddcbc890bafb85b9","childStatus":"completed"}
        node.started lead execution=1 resets=send
        decided lead #2 terminate
        node.completed lead {"decision":{"kind":"terminate","reason":"done"}}
        node.started send execution=1
        node.completed send
        run.completed {"decision":{"kind":"terminate","reason":"done"}}
        "#,
    );
}

/// Causes of the events of one handoff, as the types they point to.
fn causes(run: &RunHarness) -> Vec<(String, String)> {
    let name = |event: &Event| match event {
        Event::Handoff(h) => h.step.phase().to_owned(),
        Event::OrchestratorDecided { .. } => "decided".to_owned(),
        Event::NodeDispatched { .. } => "node.dispatched".to_owned(),
        Event::NodeCompleted { node, .. } => format!("completed {node}"),
        _ => "other".to_owned(),
    };
    let log = run.log();
    let events = log.iter().filter(|r| match &r.event {
        Event::Handoff(_) | Event::NodeDispatched { .. } => true,
        Event::NodeCompleted { node, .. } => node.as_str() == "send",
        _ => false,
    });
    events
        .map(|r| match &r.cause {
            Some(Cause::Event(seq)) => {
                let cause = &log[usize::try_from(seq.0).expect("small")].event;
                (name(&r.event), name(cause))
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn handoff_steps_form_a_causal_chain_from_the_decision() {
    let plan = json!([workers(&["one"]), terminate()]);
    let mut run = looping(plan, json!({"outputMapping": {"mine": "theirs"}}));
    run.child_ended("send", RunStatus::Completed, json!({"theirs": 1}));
    let expected = [
        ("dispatch.began", "decided"),
        ("node.dispatched", "decided"),
        ("dispatch.succeeded", "dispatch.began"),
        ("child.completed", "dispatch.succeeded"),
        ("output.harvested", "child.completed"),
        ("completed send", "decided"),
        ("completed send", "decided"),
    ];
    let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(causes(&run), expected);
}

#[test]
fn failed_or_cancelled_worker_leads_to_the_next_iteration() {
    for (status, step) in [
        (RunStatus::Failed, "child.failed one boom"),
        (RunStatus::Cancelled, "child.cancelled one"),
    ] {
        let plan = json!([workers(&["one"]), terminate()]);
        let mut run = looping(plan, json!({"outputMapping": {"mine": "theirs"}})).given();
        run.child_ended("send", status, json!({"theirs": "never"}));
        let lines = run.lines();
        assert_eq!(lines[0], step);
        assert!(
            !lines.iter().any(|l| l.starts_with("output.harvested")),
            "{lines:?}"
        );
        assert_eq!(run.run().view().variables["mine"], "before");
        assert_eq!(run.status(), RunStatus::Completed);
    }
}

#[test]
fn sequential_workers_see_harvested_variables() {
    let plan = json!([workers(&["one", "two"]), terminate()]);
    let dispatch = json!({
        "inputMapping": {"input": "mine"}, "outputMapping": {"mine": "theirs"},
        "perWorkerInputMappings": {"two": {"other": "mine"}},
    });
    let mut run = looping(plan, dispatch);
    assert!(
        run.lines()
            .contains(&r#"> start one {"input":"before"} erased=[]"#.to_owned())
    );
    run.child_ended("send", RunStatus::Completed, json!({"theirs": "after"}));
    let lines = run.lines();
    assert!(
        lines.contains(&r#"> start two {"other":"after"} erased=[]"#.to_owned()),
        "{lines:?}"
    );
    run.child_ended("send", RunStatus::Completed, json!({}));
    assert_eq!(run.status(), RunStatus::Completed);
    let children: Vec<RunStatus> = run.run().view().children.iter().map(|c| c.status).collect();
    assert_eq!(children, [RunStatus::Completed; 2]);
}

#[test]
fn the_same_worker_twice_is_two_children() {
    let mut run = looping(json!([workers(&["one", "one"])]), json!({}));
    let first = run.child_of("send");
    run.child_ended("send", RunStatus::Completed, json!({}));
    assert_ne!(run.child_of("send"), first);
    run.child_ended("send", RunStatus::Completed, json!({}));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn undispatchable_decision_fails_the_node_with_a_code() {
    let reject = json!({"fanOutPolicy": "reject"});
    let recursive = json!([workers(&["conformance-loop"])]);
    for (plan, dispatch, code) in [
        (
            json!([workers(&["nobody"])]),
            json!({}),
            "unknown_child_workflow",
        ),
        (recursive, json!({}), "subworkflow_cycle_detected"),
        (
            json!([workers(&["one", "two"])]),
            reject,
            "fan_out_unsupported",
        ),
    ] {
        let run = looping(plan, dispatch);
        let error = run.run().error().expect("failed");
        assert_eq!(error.code, code);
        let child = run
            .log()
            .iter()
            .any(|r| matches!(r.event, Event::NodeDispatched { .. }));
        assert!(!child, "{code}: a child was named");
    }
    let run = looping(json!([workers(&["nobody"])]), json!({}));
    let failed = run.log().iter().any(
        |r| matches!(&r.event, Event::Handoff(h) if matches!(h.step, HandoffStep::Failed { .. })),
    );
    assert!(failed, "dispatch.failed is missing");
}

#[test]
fn a_dispatch_before_any_decision_fails() {
    let workflow = workflow("conformance-early")
        .node("send", "core.dispatch", json!({}))
        .node("lead", "core.orchestrator.supervisor", json!({}))
        .path("send lead");
    let run = started(workflow);
    assert_eq!(
        run.run().error().expect("failed").code,
        "no_pending_decision"
    );
}

#[test]
fn every_bound_on_the_loop_ends_the_run_before_the_node_that_breaks_it() {
    let endless: Vec<Value> = (0..9).map(|_| workers(&["one"])).collect();
    let capped_lead = workflow("conformance-loop")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": endless, "iterationCap": 2}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let plain = |dispatch| staged(supervised(json!(endless), dispatch));
    for (mut run, breach, code, decisions) in [
        (
            plain(json!({})).configured(json!({"maxLoopIterations": 3})),
            "cap.breached loop-iterations 4>3",
            "loop_limit_exceeded",
            3,
        ),
        (
            plain(json!({"iterationCap": 2})),
            "cap.breached dispatch-iterations 3>2",
            "dispatch_iterations_exceeded",
            3,
        ),
        (
            staged(capped_lead),
            "cap.breached orchestrator-iterations 3>2",
            "orchestrator_iterations_exceeded",
            2,
        ),
    ] {
        run.create(json!({}));
        while run.status() == RunStatus::Running {
            run.child_ended("send", RunStatus::Completed, json!({}));
        }
        let lines = run.lines();
        assert!(lines.contains(&breach.to_owned()), "{breach}: {lines:?}");
        let error = run.run().error().expect("failed").clone();
        assert_eq!(error.code, code);
        let iteration = if code == "loop_limit_exceeded" { 4 } else { 3 };
        assert_eq!(error.details, Some(json!({"iteration": iteration})));
        let decided = lines.iter().filter(|l| l.starts_with("decided")).count();
        assert_eq!(decided, decisions, "{breach}");
    }
}

#[test]
fn terminate_stops_what_else_is_under_way() {
    let plan = json!([workers(&["one"]), terminate()]);
    let workflow = supervised(plan, json!({}))
        .delay("nap", 1_000)
        .call("call", "two", json!({}));
    let mut run = started(workflow).given();
    run.child_ended("send", RunStatus::Completed, json!({}));
    let lines = run.lines();
    for stopped in [
        "node.cancelled nap run-terminated",
        "node.cancelled call run-terminated",
    ] {
        assert!(lines.contains(&stopped.to_owned()), "{lines:?}");
    }
    assert!(lines.contains(&"> cancel child".to_owned()), "{lines:?}");
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn cancel_stops_the_worker_and_records_its_end() {
    let mut run = looping(json!([workers(&["one", "two"])]), json!({})).given();
    run.cancel();
    run.then(
        "
        run.cancel-requested
        > cancel child
        ",
    );
    run.child_ended("send", RunStatus::Cancelled, json!({}));
    run.then(
        "
        child.cancelled one
        node.cancelled send run-cancelled
        run.cancelled
        ",
    );
}

#[test]
fn pause_holds_the_next_worker_until_resume() {
    let mut run = looping(json!([workers(&["one", "two"])]), json!({})).given();
    run.pause(DrainPolicy::Immediate).expect("running");
    run.child_ended("send", RunStatus::Completed, json!({}));
    run.then(
        "
        run.paused
        child.completed one
        ",
    );
    run.resume().expect("paused");
    run.then(
        "
        run.resumed
        dispatch.began two
        node.dispatched send two
        dispatch.succeeded two
        > start two {} erased=[]
        ",
    );
}

#[test]
fn waiting_worker_is_mirrored_within_the_same_iteration() {
    let plan = json!([workers(&["one"]), terminate()]);
    let mut run = looping(plan, json!({})).given();
    let child = run.child_of("send");
    let waits = ChildOutcome::Waiting {
        child: child.clone(),
        asker: child.clone(),
        node: NodeId::new("gate"),
        status: RunStatus::WaitingApproval,
        interrupt: InterruptId::new("int-1"),
        kind: "approval".to_owned(),
        key: None,
        data: None,
    };
    run.child_reports("send", waits);
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    run.child_reports("send", ChildOutcome::Resumed { child });
    assert_eq!(run.status(), RunStatus::Running);
    run.child_ended("send", RunStatus::Completed, json!({}));
    let lines = run.lines();
    assert!(
        lines.contains(&"decided lead #2 terminate".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn endpoint_can_decide_and_its_confidence_counts() {
    // R-0023-1 (half: the supervisor emits reasoning), R-0023-5 (half: a live supervisor decides)
    let workflow = workflow("real")
        .variable("goal", json!({"defaultValue": "tea"}))
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"endpoint": {"url": "http://brain.test/"}, "prompt": "Be brief."}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let mut run = started(workflow);
    let lines = run.lines();
    assert!(
        lines.contains(&"> http lead POST http://brain.test/ attempt=0".to_owned()),
        "{lines:?}"
    );
    let answer = json!({"status": 200, "body": {
        "decision": workers(&["one"]), "confidence": 0.9, "reasoning": "It is time."}});
    run.done("lead", answer);
    run.then(
        r#"
        host:supervisor:lead reasoned It is time.
        host:supervisor:lead decided 0.9
        decided lead #1 next-worker
        node.completed lead {"decision":{"kind":"next-worker","nextWorkerIds":["one"]}}
        node.started send
        dispatch.began one
        node.dispatched send one
        dispatch.succeeded one
        > start one {} erased=[]
        "#,
    );
    run.child_ended("send", RunStatus::Completed, json!({}));
    run.done("lead", json!({"status": 200, "body": {"kind": "guess"}}));
    assert_eq!(run.run().error().expect("failed").code, "validation_error");
}

#[test]
fn upstream_node_can_provide_the_decision() {
    let workflow = workflow("ported")
        .variable(
            "choice",
            json!({"type": "object", "defaultValue": terminate()}),
        )
        .node("lead", "core.orchestrator.supervisor", json!({}))
        .port(
            "decision",
            json!({"type": "variable", "variableName": "choice"}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let run = started(workflow);
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn registration_refuses_invalid_supervisor_settings() {
    // R-0023-26 (half: hooks of supervisors are refused elsewhere)
    let lead = |config: Value| {
        workflow("plain")
            .node("lead", "core.orchestrator.supervisor", config)
            .node("send", "core.dispatch", json!({}))
            .path("lead send lead")
    };
    let send = |config: Value| supervised(json!([terminate()]), config);
    let table = [
        (
            lead(json!({"mockDispatchPlan": [terminate()]})),
            "/nodes/0/config/mockDispatchPlan",
        ),
        (
            lead(json!({"mockConfidence": 0.5})),
            "/nodes/0/config/mockConfidence",
        ),
        (lead(json!({})), "/nodes/0"),
        (
            lead(json!({"endpoint": {}})),
            "/nodes/0/config/endpoint/url",
        ),
        (
            workflow("alone").node("send", "core.dispatch", json!({})),
            "/nodes/0",
        ),
        (send(json!({"surprise": 1})), "/nodes/1/config/surprise"),
        (
            send(json!({"fanOutPolicy": "whatever"})),
            "/nodes/1/config/fanOutPolicy",
        ),
        (
            send(json!({"iterationCap": 0})),
            "/nodes/1/config/iterationCap",
        ),
        (
            send(json!({"askUserRouting": "telepathy"})),
            "/nodes/1/config/askUserRouting",
        ),
        (
            send(json!({"joinPolicy": {}})),
            "/nodes/1/config/joinPolicy",
        ),
        (
            send(json!({"perWorkerInputMappings": {"one": {"a": 1}}})),
            "/nodes/1/config/perWorkerInputMappings/one/a",
        ),
        (
            send(json!({"fanOutPolicy": "parallel", "joinPolicy": {"mode": "quorum"}})),
            "/nodes/1/config/joinPolicy/quorum",
        ),
        (
            supervised(json!([{"kind": "guess"}]), json!({})),
            "/nodes/0/config/mockDispatchPlan/0/kind",
        ),
    ];
    for (workflow, place) in table {
        let refused = Definition::admit(&workflow.document(), Permissions::default());
        let problems = refused.expect_err(place);
        let places: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(places, [place]);
    }
}
