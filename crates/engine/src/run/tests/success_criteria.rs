//! Criteria that a decision to end the run has to state, and verifiers that are refused at
//! registration.

use super::supervising::{staged, terminate};
use super::verifying::{checked, code};
use super::workflow_builder::workflow;
use crate::definition::{Definition, Permissions};
use serde_json::{Value, json};
use tandem_record::RunStatus;

#[test]
fn success_criteria_must_be_answered_and_unmet_ones_mean_no_success() {
    let ends = |criteria: Value| json!({"kind": "terminate", "successCriteria": criteria});
    let met = |key: &str, met: bool| json!({"key": key, "met": met});
    let run = |plan: Value| {
        let lead = json!({"mockDispatchPlan": plan, "successCriteria": ["answered", "cited"]});
        let workflow = workflow("conformance-loop")
            .node("lead", "core.orchestrator.supervisor", lead)
            .node("send", "core.dispatch", json!({}))
            .path("lead send lead");
        let mut run = staged(workflow).configured(json!({"maxLoopIterations": 2}));
        run.create(json!({}));
        run
    };
    let both = json!([met("answered", true), met("cited", true)]);
    let mut satisfied = run(json!([ends(both)]));
    let line = r#"node.completed send {"goalSatisfied":true}"#.to_owned();
    assert!(satisfied.lines().contains(&line));

    let gave_up = json!([met("answered", true), met("cited", false)]);
    let mut gave_up = run(json!([ends(gave_up)]));
    assert_eq!(gave_up.status(), RunStatus::Completed);
    let line = r#"node.completed send {"goalSatisfied":false}"#.to_owned();
    assert!(gave_up.lines().contains(&line));

    let silent = ends(json!([met("answered", true)]));
    let mut silent = run(json!([silent, silent]));
    let line = r#"node.completed send {"unanswered":["cited"]}"#.to_owned();
    assert!(silent.lines().contains(&line));
    assert_eq!(code(&silent), "loop_limit_exceeded");
}

#[test]
fn registration_refuses_verifiers_that_cannot_work() {
    // R-0023-26 (half: verifier hooks are refused elsewhere)
    // The plan of verdicts is a test hook like the plan of decisions.
    let with = |verifier: Value| checked(json!([terminate()]), verifier, json!({}));
    let real = |verifier: Value| {
        let lead = json!({"endpoint": {"url": "http://b.test"}, "verifier": verifier});
        workflow("real")
            .node("lead", "core.orchestrator.supervisor", lead)
            .node("send", "core.dispatch", json!({}))
            .path("lead send lead")
    };
    let alone = workflow("alone").node(
        "lead",
        "core.orchestrator.supervisor",
        json!({"endpoint": {"url": "http://b.test"}, "verifier": {"workflowId": "c"}}),
    );
    let same = workflow("same")
        .node(
            "lead",
            "core.orchestrator.supervisor",
            json!({"endpoint": {"url": "http://b.test"}, "agentId": "core.one",
                   "verifier": {"workflowId": "c", "agentId": "core.one"}}),
        )
        .node("send", "core.dispatch", json!({}))
        .path("lead send lead");
    let table = [
        (with(json!(7)), ""),
        (with(json!({})), ""),
        (with(json!({"workflowId": "c", "surprise": 1})), "/surprise"),
        (with(json!({"workflowId": "c", "gating": false})), "/gating"),
        (with(json!({"workflowId": "c", "over": []})), "/over"),
        (with(json!({"workflowId": "c", "over": ["all"]})), "/over/0"),
        (with(json!({"workflowId": "c", "agentId": "x"})), "/agentId"),
        (
            with(json!({"workflowId": "c", "criteria": ["a", "a"]})),
            "/criteria/1",
        ),
        (
            with(json!({"workflowId": "c", "criteria": [""]})),
            "/criteria/0",
        ),
        (
            with(json!({"workflowId": "c", "endpoint": {"url": "http://x"}})),
            "/endpoint",
        ),
        (with(json!({"endpoint": {}})), "/endpoint/url"),
        (
            with(json!({"endpoint": {"url": "http://x", "timeoutMs": 0}})),
            "/endpoint/timeoutMs",
        ),
        (
            with(json!({"endpoint": {"url": "http://x"}, "verdictVariable": "v"})),
            "/verdictVariable",
        ),
        (with(json!({"mockVerdicts": ["maybe"]})), "/mockVerdicts/0"),
        (real(json!({"mockVerdicts": ["pass"]})), "/mockVerdicts"),
        (alone, ""),
        (same, "/agentId"),
    ];
    for (workflow, place) in table {
        let refused = Definition::admit(&workflow.document(), Permissions::default());
        let problems = refused.expect_err(place);
        let places: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(places, [format!("/nodes/0/config/verifier{place}")]);
    }
}
