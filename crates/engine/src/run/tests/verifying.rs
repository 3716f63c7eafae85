//! Verifiers: nothing ends and nothing is merged before they pass it.

use super::gates::answer;
use super::harness::RunHarness;
use super::supervising::{staged, started, terminate};
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{AgentEventKind, DrainPolicy, ErrorInfo, Event, ForkMode, RunStatus};

/// The loop around a plan, with a verifier.
pub(super) fn checked(plan: Value, verifier: Value, dispatch: Value) -> WorkflowBuilder {
    workflow("conformance-loop")
        .variable("mine", json!({"defaultValue": "before"}))
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"mockDispatchPlan": plan, "verifier": verifier}),
        )
        .node("send", "core.dispatch", dispatch)
        .path("lead send lead")
}

/// A verifier with these planned verdicts, one after the other, about the end of the run.
pub(super) fn planned_verdicts(verdicts: Value) -> Value {
    json!({"agentId": "core.critic", "mockVerdicts": verdicts})
}

fn ending(verdicts: Value) -> RunHarness {
    started(checked(
        json!([terminate(), terminate()]),
        planned_verdicts(verdicts),
        json!({}),
    ))
}

/// A verifier behind an endpoint, called about the end of the run.
fn remote(extra: Value) -> Value {
    let mut verifier = json!({
        "agentId": "core.critic",
        "criteria": ["grounded", "short"],
        "endpoint": {"url": "http://critic.test/"},
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        verifier[key] = value.clone();
    }
    verifier
}

fn remotely(extra: Value) -> RunHarness {
    started(checked(json!([terminate()]), remote(extra), json!({})))
}

/// A verifier that is a workflow.
fn by_workflow() -> RunHarness {
    let verifier = json!({"agentId": "core.critic", "workflowId": "three"});
    started(checked(json!([terminate()]), verifier, json!({})))
}

pub(super) fn code(run: &RunHarness) -> &str {
    &run.run().error().expect("the run failed").code
}

fn verifier_response(answer: Value) -> Value {
    json!({"status": 200, "body": answer})
}

#[test]
fn pass_verdict_is_recorded_before_the_run_ends() {
    let mut run = ending(json!(["pass"]));
    run.then(
        r#"
        run.started {"mine":"before"}
        node.started lead
        decided lead #1 terminate
        node.completed lead {"decision":{"kind":"terminate","reason":"done"}}
        node.started send
        core.critic verified event 2 pass
        node.completed send
        run.completed {"decision":{"kind":"terminate","reason":"done"}}
        "#,
    );
}

#[test]
fn fail_verdict_keeps_the_run_from_completing() {
    let mut run = ending(json!(["fail"])).given();
    assert_eq!(run.status(), RunStatus::Failed);
    assert_eq!(code(&run), "verification_failed");
    assert!(run.lines().is_empty(), "all of it was one decision");
}

#[test]
fn revise_verdict_starts_another_counted_iteration() {
    let verdicts = json!([{"verdict": "revise", "feedback": "Shorter."}, "pass"]);
    let mut run = ending(verdicts);
    run.then(
        r#"
        run.started {"mine":"before"}
        node.started lead
        decided lead #1 terminate
        node.completed lead {"decision":{"kind":"terminate","reason":"done"}}
        node.started send
        core.critic verified event 2 revise
        node.completed send {"feedback":"Shorter.","verdict":"revise"}
        node.started lead execution=1 resets=send
        decided lead #2 terminate
        node.completed lead {"decision":{"kind":"terminate","reason":"done"}}
        node.started send execution=1
        core.critic verified event 8 pass
        node.completed send
        run.completed {"decision":{"kind":"terminate","reason":"done"}}
        "#,
    );
}

#[test]
fn revisions_count_against_the_iteration_limit() {
    let verdicts: Vec<&str> = (0..9).map(|_| "revise").collect();
    let plan: Vec<Value> = (0..9).map(|_| terminate()).collect();
    let workflow = checked(json!(plan), planned_verdicts(json!(verdicts)), json!({}));
    let mut run = staged(workflow).configured(json!({"maxLoopIterations": 3}));
    run.create(json!({}));
    let lines = run.lines();
    let breach = "cap.breached loop-iterations 4>3";
    assert!(lines.contains(&breach.to_owned()), "{lines:?}");
    assert_eq!(code(&run), "loop_limit_exceeded");
    let verified = lines.iter().filter(|l| l.contains(" verified ")).count();
    assert_eq!(verified, 3);
}

#[test]
fn revised_termination_never_completes_the_run() {
    // There is no edge back to the supervisor, or its author continues after errors.
    let once = |verdict: &str| {
        workflow("conformance-once")
            .node(
                "lead",
                "core.orchestrator.supervisor",
                json!({"mockDispatchPlan": [terminate()], "verifier": planned_verdicts(json!([verdict]))}),
            )
            .node("send", "core.dispatch", json!({}))
            .path("lead send")
    };
    let lenient = once("fail").with("settings", json!({"onError": "continue"}));
    for workflow in [once("revise"), lenient] {
        let run = started(workflow);
        assert_eq!(run.status(), RunStatus::Failed);
        assert_eq!(code(&run), "verification_failed");
    }
}

#[test]
fn verifier_endpoint_is_called_once_and_only_declared_criteria_are_recorded() {
    let mut run = remotely(json!({})).given();
    let calls = run.outbox().count();
    assert_eq!(calls, 1);
    let request = run.outbox().next().expect("a request").kind.clone();
    let tandem_record::EffectKind::Http { request, .. } = request else {
        panic!("{request:?}");
    };
    let body = request.body.expect("the request has a body");
    assert_eq!(body["over"], "terminate");
    assert_eq!(body["target"], "evt-run-1-2");
    assert_eq!(body["criteria"], json!(["grounded", "short"]));
    assert_eq!(body["variables"], json!({"mine": "before"}));
    let answer = json!({
        "verdict": "pass",
        "criteria": ["grounded", "the secret is 42"],
        "confidence": 0.9,
    });
    run.done("send", verifier_response(answer));
    run.then(
        r#"
        core.critic verified event 2 pass grounded
        node.completed send
        run.completed {"decision":{"kind":"terminate","reason":"done"}}
        "#,
    );
}

#[test]
fn workflow_can_be_the_verifier() {
    let mut run = by_workflow();
    let lines = run.lines();
    let start = r#"> start three {"subject":{"criteria":[],"decision":{"kind":"terminate","reason":"done"},"iteration":1,"nodeId":"send","over":"terminate","runId":"run-1","target":"evt-run-1-2","variables":{"mine":"before"}}} erased=[]"#;
    assert_eq!(
        lines[lines.len() - 3..],
        [
            "critic.asked send core.critic child",
            "node.dispatched send three",
            start
        ]
    );
    run.child_ended(
        "send",
        RunStatus::Completed,
        json!({"verdict": {"verdict": "pass"}}),
    );
    run.then(
        r#"
        core.critic verified event 2 pass
        node.completed send
        run.completed {"decision":{"kind":"terminate","reason":"done"}}
        "#,
    );
    let view = run.run().view();
    assert_eq!(view.children[0].status, RunStatus::Completed);
}

#[test]
fn verifier_workflow_does_not_receive_sensitive_values() {
    let verifier = json!({"agentId": "core.critic", "workflowId": "three"});
    let workflow = checked(json!([terminate()]), verifier, json!({}));
    let workflow = workflow.variable("pin", json!({"defaultValue": "1234", "sensitive": true}));
    let mut run = started(workflow);
    let lines = run.lines();
    let start = lines.iter().find(|l| l.starts_with("> start three"));
    let start = start.expect("the verifier is started");
    assert!(start.contains(r#""mine":"before""#), "{start}");
    assert!(!start.contains("1234"), "{start}");
    let masked = |run: &RunHarness| {
        run.created_children()
            .next()
            .expect("a verifier")
            .request
            .sensitive_inputs
            .clone()
    };
    assert!(masked(&run).is_empty());

    // A value that contains some of it is passed, and masked there.
    let verifier = json!({"agentId": "core.critic", "workflowId": "three"});
    let copies = checked(json!([terminate()]), verifier, json!({}))
        .variable("pin", json!({"defaultValue": "1234", "sensitive": true}))
        .node("copy", "core.setVariable", json!({"name": "copied"}))
        .port("value", json!({"type": "variable", "variableName": "pin"}));
    assert_eq!(masked(&started(copies)), ["subject"]);
}

#[test]
fn without_a_verdict_nothing_ends() {
    let gone = ErrorInfo::new("http_status", "502");
    let mut refused = remotely(json!({}));
    refused.failed("send", gone);
    let mut malformed = remotely(json!({}));
    malformed.done("send", verifier_response(json!({"verdict": "maybe"})));
    let mut unsure = remotely(json!({}));
    unsure.done(
        "send",
        verifier_response(json!({"verdict": "pass", "confidence": 7})),
    );
    let mut silent = by_workflow();
    silent.child_ended("send", RunStatus::Completed, json!({}));
    let mut broken = by_workflow();
    broken.child_ended("send", RunStatus::Failed, json!({}));
    let mut stopped = by_workflow();
    stopped.child_ended("send", RunStatus::Cancelled, json!({}));
    let nobody = json!({"workflowId": "nobody"});
    let unknown = started(checked(json!([terminate()]), nobody, json!({})));
    let late = checked(json!([terminate()]), remote(json!({})), json!({}))
        .with("settings", json!({"timeoutMs": 50}));
    let mut late = started(late);
    late.elapse(50);
    let exhausted = ending(json!([]));
    let runs = [
        (refused, "verification_unavailable"),
        (malformed, "verification_unavailable"),
        (unsure, "verification_unavailable"),
        (silent, "verification_unavailable"),
        (broken, "verification_unavailable"),
        (stopped, "verification_unavailable"),
        (unknown, "verification_unavailable"),
        (exhausted, "verification_unavailable"),
        (late, "node_timeout"),
    ];
    for (i, (run, expected)) in runs.iter().enumerate() {
        assert_eq!(run.status(), RunStatus::Failed, "{i}");
        assert_eq!(code(run), *expected, "{i}");
        let verified = |r: &tandem_record::RecordedEvent| match &r.event {
            Event::Agent(agent_event) => {
                matches!(agent_event.kind, AgentEventKind::Verified { .. })
            }
            _ => false,
        };
        assert!(!run.log().iter().any(verified), "{i}: no verdict");
    }
}

#[test]
fn verifier_call_is_retried_by_its_retry_policy() {
    let retry = json!({"url": "http://critic.test/", "retry": {
        "maxAttempts": 2, "backoff": "fixed", "backoffMs": 100}});
    let mut run = remotely(json!({"endpoint": retry})).given();
    let first = run.effect_of("send");
    run.failed("send", ErrorInfo::new("http_status", "502").retryable());
    run.then("node.retried send verification_unavailable attempt=1 delay=100");
    run.elapse(100);
    run.then(
        "
        critic.asked send core.critic http
        > http send POST http://critic.test/ attempt=1
        ",
    );
    assert_eq!(run.effect_of("send"), first, "one question, one identity");
    run.done("send", verifier_response(json!("pass")));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn pause_before_the_verdict_changes_nothing() {
    let mut run = by_workflow().given();
    run.pause(DrainPolicy::Immediate).expect("running");
    run.child_ended("send", RunStatus::Completed, json!({"verdict": "pass"}));
    run.then(
        "
        run.paused
        core.critic verified event 2 pass
        ",
    );
    run.resume().expect("paused");
    run.then(
        r#"
        run.resumed
        node.completed send
        run.completed {"decision":{"kind":"terminate","reason":"done"}}
        "#,
    );
    let mut run = remotely(json!({})).given();
    run.pause(DrainPolicy::Immediate).expect("running");
    assert_eq!(run.outbox().count(), 0, "a paused run makes no call");
    run.resume().expect("paused");
    run.then(
        "
        run.paused cut-off=send
        run.resumed
        critic.asked send core.critic http
        > http send POST http://critic.test/ attempt=1
        ",
    );
    run.done("send", verifier_response(json!("pass")));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn cancel_stops_the_verifier_run() {
    let mut run = by_workflow().given();
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
        node.cancelled send run-cancelled
        run.cancelled
        ",
    );
}

#[test]
fn held_decision_needs_both_a_person_and_the_verifier() {
    let unsure = json!({"kind": "terminate", "reason": "done", "confidence": 0.2});
    let mut run = started(checked(
        json!([unsure]),
        planned_verdicts(json!(["pass"])),
        json!({}),
    ))
    .given();
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    run.when(answer("send", json!({"action": "accept"})));
    let lines = run.lines();
    let order: Vec<usize> = ["node.resumed send", "core.critic verified event 2 pass"]
        .iter()
        .map(|line| lines.iter().position(|l| l == line).expect(line))
        .collect();
    assert!(order[0] < order[1], "{lines:?}");
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn next_iteration_receives_the_last_verdict() {
    let workflow = workflow("real")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"endpoint": {"url": "http://brain.test/"}, "verifier": remote(json!({}))}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let mut run = started(workflow);
    run.done("lead", verifier_response(terminate()));
    let verdict = json!({"verdict": "revise", "criteria": ["short"], "feedback": "Shorter."});
    run.done("send", verifier_response(verdict));
    let effect = run.outbox().next().expect("a request").kind.clone();
    let tandem_record::EffectKind::Http { request, .. } = effect else {
        panic!("{effect:?}");
    };
    let verdict = &request.body.expect("a body")["lastVerdict"];
    let expected = json!({
        "agentId": "core.critic", "target": "evt-run-1-2", "verdict": "revise",
        "criteria": ["short"], "feedback": "Shorter.",
    });
    assert_eq!(*verdict, expected);
}

#[test]
fn replay_repeats_the_verdict_without_calls() {
    let mut run = remotely(json!({}));
    run.done(
        "send",
        verifier_response(json!({"verdict": "pass", "criteria": ["short"]})),
    );
    let log = run.log().len() as u64;
    for from in 0..=log {
        let mut replayed = run.fork(ForkMode::Replay, from);
        assert_eq!(replayed.outbox().count(), 0);
        assert_eq!(replayed.status(), RunStatus::Completed, "{from}");
        let lines = replayed.lines();
        let verdict = "core.critic verified event 2 pass short".to_owned();
        assert!(lines.contains(&verdict), "{from}: {lines:?}");
    }
}

#[test]
fn branch_uses_its_own_verifier_and_keeps_recorded_verdicts() {
    let mut source = by_workflow();
    source.child_ended("send", RunStatus::Completed, json!({"verdict": "pass"}));
    let place = |wanted: &str| {
        let found = source.log().iter().find(|r| match &r.event {
            Event::VerificationRequested(_) => wanted == "asked",
            Event::NodeDispatched { .. } => wanted == "dispatched",
            Event::Agent(_) => wanted == "verified",
            _ => false,
        });
        found.expect(wanted).seq.0 + 1
    };
    for after in ["asked", "dispatched"] {
        let mut branch = source.fork(ForkMode::Branch, place(after));
        assert_ne!(branch.child_of("send"), source_child(&source), "{after}");
        branch.child_ended("send", RunStatus::Completed, json!({"verdict": "fail"}));
        assert_eq!(code(&branch), "verification_failed", "{after}");
    }
    let mut branch = source.fork(ForkMode::Branch, place("verified"));
    assert_eq!(branch.status(), RunStatus::Completed);
    let starts = branch
        .lines()
        .iter()
        .filter(|l| l.starts_with("> start"))
        .count();
    assert_eq!(starts, 0, "the verdict is known");
    let mut run = remotely(json!({}));
    let there = run.effect_of("send");
    let here = run.fork(ForkMode::Branch, run.log().len() as u64);
    assert_ne!(
        here.effect_of("send"),
        there,
        "another run, another question"
    );
    run.done("send", verifier_response(json!("pass")));
}

fn source_child(source: &RunHarness) -> tandem_record::RunId {
    source.run().view().children[0].run_id.clone()
}

#[test]
fn only_a_verifier_at_a_dispatch_node_emits_a_verdict() {
    // A node without authorization has no emitter; the supervisor itself has none for this event.
    let run = ending(json!(["revise", "pass"]));
    let mut emitted = 0;
    for recorded in run.log() {
        if let Event::Agent(agent_event) = &recorded.event
            && let AgentEventKind::Verified { .. } = agent_event.kind
        {
            assert_eq!(agent_event.node.as_str(), "send");
            assert_eq!(agent_event.agent_id, "core.critic");
            emitted += 1;
        }
    }
    assert_eq!(emitted, 2);
}
