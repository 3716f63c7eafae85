//! Outputs of workers are merged only after a verifier passed them.

use super::harness::RunHarness;
use super::supervising::{started, terminate, workers};
use super::verifying::{checked, planned_verdicts};
use serde_json::{Value, json};
use tandem_record::RunStatus;

/// A worker's output is verified before it is merged.
fn output_checked(verdicts: Value, dispatch: Value, named: &[&str]) -> RunHarness {
    let mut verifier = planned_verdicts(verdicts);
    verifier["over"] = json!(["output"]);
    let mut dispatch = dispatch;
    dispatch["outputMapping"] = json!({"mine": "theirs"});
    let plan = json!([workers(named), terminate()]);
    started(checked(plan, verifier, dispatch)).given()
}

#[test]
fn worker_output_is_merged_only_after_a_pass() {
    let mut run = output_checked(json!(["pass"]), json!({}), &["one"]);
    run.child_ended("send", RunStatus::Completed, json!({"theirs": "after"}));
    let lines = run.lines();
    assert_eq!(
        lines[..4],
        [
            "child.completed one",
            "core.critic verified worker 0 pass",
            "variable.changed mine: \"before\" -> \"after\"",
            "output.harvested one mine",
        ]
    );
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn refused_output_is_not_merged_and_the_supervisor_decides_again() {
    for verdict in ["fail", "revise"] {
        let mut run = output_checked(json!([verdict]), json!({}), &["one", "two"]);
        run.child_ended("send", RunStatus::Completed, json!({"theirs": "after"}));
        let lines = run.lines();
        assert_eq!(lines[1], format!("core.critic verified worker 0 {verdict}"));
        assert!(lines[2].starts_with("node.completed send"), "{lines:?}");
        assert!(lines[2].contains(&format!(r#""verdict":"{verdict}""#)));
        assert!(lines.contains(&"decided lead #2 terminate".to_owned()));
        assert!(!lines.iter().any(|l| l.starts_with("output.harvested")));
        assert!(!lines.iter().any(|l| l.contains("began two")), "{lines:?}");
        assert_eq!(run.run().view().variables["mine"], "before");
    }
}

#[test]
fn parallel_outputs_are_verified_one_by_one_before_the_join() {
    let parallel = json!({"fanOutPolicy": "parallel"});
    let mut run = output_checked(json!(["fail", "pass"]), parallel, &["one", "two"]);
    run.child_ended("send", RunStatus::Completed, json!({"theirs": "one's"}));
    run.child_ended("send", RunStatus::Completed, json!({"theirs": "two's"}));
    let lines = run.lines();
    assert_eq!(
        lines[..6],
        [
            "child.completed one",
            "child.completed two",
            "core.critic verified worker 0 fail",
            "core.critic verified worker 1 pass",
            "fan-in satisfied 2/0/0",
            "variable.changed mine: \"before\" -> \"two's\"",
        ]
    );
}
