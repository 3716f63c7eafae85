//! Iterations of a supervisor's loop are counted once each, whatever happens in them.

use super::gates::answer;
use super::harness::RunHarness;
use super::supervising::{started, supervised, terminate, workers};
use super::workflow_builder::workflow;
use serde_json::{Value, json};
use tandem_record::{EffectKind, ErrorInfo, ForkMode, RunStatus};

/// The request body sent to the supervisor's endpoint.
fn request_body(run: &RunHarness) -> Value {
    let body = run.outbox().find_map(|effect| match &effect.kind {
        EffectKind::Http { request, .. } => request.body.clone(),
        _ => None,
    });
    body.expect("the supervisor is called")
}

#[test]
fn retried_supervisor_request_keeps_its_iteration() {
    let endpoint = json!({"url": "http://brain.test/", "retry": {
        "maxAttempts": 3, "backoff": "fixed", "backoffMs": 10}});
    let workflow = workflow("real")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"endpoint": endpoint}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let mut run = started(workflow);
    let turn = |run: &RunHarness| {
        (
            request_body(run)["iteration"].clone(),
            request_body(run)["atSequence"].clone(),
        )
    };
    assert_eq!(turn(&run), (json!(1), json!(1)));
    run.failed("lead", ErrorInfo::new("http_status", "502").retryable());
    run.elapse(10);
    assert_eq!(turn(&run), (json!(1), json!(1)), "the same iteration");
    run.done("lead", json!({"status": 200, "body": workers(&["one"])}));
    run.child_ended("send", RunStatus::Completed, json!({}));
    let (iteration, at) = turn(&run);
    assert_eq!(iteration, 2);
    assert_eq!(at, run.log().len() as u64 - 1, "its own start");
}

#[test]
fn iteration_that_waited_for_a_person_keeps_its_number() {
    let unsure = json!({"kind": "next-worker", "nextWorkerIds": ["one"], "confidence": 0.1});
    for (action, expected) in [
        (
            "accept",
            ["decided lead #1 next-worker", "decided lead #2 terminate"],
        ),
        (
            "reject",
            ["decided lead #1 next-worker", "decided lead #2 terminate"],
        ),
    ] {
        let plan = json!([unsure, terminate()]);
        let mut run = started(supervised(plan, json!({})));
        run.when(answer("send", json!({"action": action})));
        if run.status() == RunStatus::Running {
            run.child_ended("send", RunStatus::Completed, json!({}));
        }
        let lines = run.lines();
        let decided: Vec<&String> = lines.iter().filter(|l| l.starts_with("decided")).collect();
        assert_eq!(decided, expected, "{action}");
        // A replay repeats the recorded numbers.
        for from in 0..run.log().len() as u64 {
            let mut replayed = run.fork(ForkMode::Replay, from);
            let lines = replayed.lines();
            let again: Vec<&String> = lines.iter().filter(|l| l.starts_with("decided")).collect();
            assert_eq!(again, expected, "{action} from {from}");
        }
    }
}
