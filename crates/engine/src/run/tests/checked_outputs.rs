//! What workers leave is merged after a critic let it pass, and only then.

use super::stage::Stage;
use super::supervising::{started, terminate, workers};
use super::verifying::{checked, says};
use serde_json::{Value, json};
use tandem_record::RunStatus;

/// A worker's output is checked before it is merged.
fn output_checked(verdicts: Value, dispatch: Value, named: &[&str]) -> Stage {
    let mut verifier = says(verdicts);
    verifier["over"] = json!(["output"]);
    let mut dispatch = dispatch;
    dispatch["outputMapping"] = json!({"mine": "theirs"});
    let plan = json!([workers(named), terminate()]);
    started(checked(plan, verifier, dispatch)).given()
}

#[test]
fn an_output_is_merged_after_its_pass_only() {
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
fn a_refused_output_is_not_merged_and_the_supervisor_has_its_turn() {
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
fn outputs_of_workers_at_once_are_checked_one_by_one_before_the_join() {
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
