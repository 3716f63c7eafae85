//! Exclusive branches, joins and error routes: the worked example of the protocol.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;
use tandem_record::ErrorInfo;

fn triage(error_route: bool) -> WorkflowBuilder {
    let severity = |kind: &str| json!({"condition": {"type": kind, "left": "ticket.severity", "right": "high"}});
    let workflow = workflow("triage")
        .settings(json!({"timeout": 60_000, "maxRetries": 1}))
        .variable("ticket", json!({"type": "object", "required": true}))
        .node("classify", "core.identity", json!({}))
        .port(
            "ticket",
            json!({"type": "variable", "variableName": "ticket"}),
        )
        .http("urgent", json!({}))
        .noops("normal join alarm")
        .edge("classify", "urgent", severity("equals"))
        .edge("classify", "normal", severity("notEquals"))
        .path("urgent join")
        .path("normal join");
    if error_route {
        workflow.ruled("urgent", "alarm", "any_failed")
    } else {
        // Without its edge the alarm would be a root.
        workflow.edge("join", "alarm", json!({}))
    }
}

fn pager_down() -> ErrorInfo {
    ErrorInfo::new("external_call_failed", "the pager is down").retryable()
}

#[test]
fn low_severity_takes_the_low_branch() {
    let mut run = RunHarness::new(triage(true));
    run.create(json!({"ticket": {"severity": "low"}}));
    run.then(
        r#"
            run.started {"ticket":{"severity":"low"}}
            node.started classify
            node.completed classify {"ticket":{"severity":"low"}}
            node.skipped urgent condition
            node.started normal
            node.completed normal
            node.started join
            node.completed join
            node.skipped alarm trigger-rule
            run.completed
        "#,
    );
}

#[test]
fn failed_node_on_the_high_branch_takes_the_error_route() {
    let mut run = RunHarness::new(triage(true));
    run.create(json!({"ticket": {"severity": "high"}}));
    run.then(
        r#"
            run.started {"ticket":{"severity":"high"}}
            node.started classify
            node.completed classify {"ticket":{"severity":"high"}}
            node.started urgent http
            node.skipped normal condition
            > http urgent GET http://world.test/ attempt=0
        "#,
    );
    run.failed("urgent", pager_down());
    run.then(
        "
            node.retried urgent external_call_failed attempt=1 delay=500
        ",
    );
    assert_eq!(run.timers(), ["wake urgent 1 +500"]);
    run.elapse(500);
    run.then(
        "
            node.started urgent attempt=1 http
            > http urgent GET http://world.test/ attempt=1
        ",
    );
    run.failed("urgent", pager_down());
    run.then(
        "
            node.failed urgent external_call_failed attempts=2
            node.skipped join trigger-rule
            node.started alarm
            node.completed alarm
            run.completed
        ",
    );
}

#[test]
fn without_the_error_route_the_run_fails() {
    let mut run = RunHarness::new(triage(false));
    run.create(json!({"ticket": {"severity": "high"}}));
    run.failed("urgent", pager_down());
    run.elapse(500);
    let mut run = run.given();
    run.failed("urgent", pager_down());
    run.then(
        "
            node.failed urgent external_call_failed attempts=2
            run.failed external_call_failed urgent
        ",
    );
}

#[test]
fn error_route_is_skipped_when_the_node_succeeds() {
    let mut run = RunHarness::new(triage(true));
    run.create(json!({"ticket": {"severity": "high"}}));
    let mut run = run.given();
    run.done("urgent", json!({"status": 200}));
    run.then(
        r#"
            node.completed urgent {"status":200}
            node.started join
            node.completed join
            node.skipped alarm trigger-rule
            run.completed
        "#,
    );
}

#[test]
fn a_false_edge_carries_no_value_to_its_target() {
    let never = json!({"targetInput": "x", "sourceOutput": "v",
        "condition": {"type": "equals", "left": "v", "right": "other"}});
    let always = json!({"targetInput": "x", "sourceOutput": "v"});
    let value = |v: &str| json!({"type": "static", "value": v});
    let workflow = workflow("ports")
        .node("yes", "core.identity", json!({}))
        .port("v", value("from yes"))
        .node("no", "core.identity", json!({}))
        .port("v", value("from no"))
        .node("join", "core.identity", json!({}))
        .edge("yes", "join", always)
        .edge("no", "join", never);
    RunHarness::started(workflow).then(
        r#"
            run.started
            node.started yes
            node.completed yes {"v":"from yes"}
            node.started no
            node.completed no {"v":"from no"}
            node.started join
            node.completed join {"x":"from yes"}
            run.completed {"x":"from yes"}
        "#,
    );
}
