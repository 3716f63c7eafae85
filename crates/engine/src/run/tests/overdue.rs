//! Timeouts of interrupts: the author's timeout action, one decision per firing, and never an
//! approval.

use super::gates::{answer, gate};
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{Command, ForkMode, NodeId, RunStatus, TimerKey};

fn escalating() -> WorkflowBuilder {
    gate(json!({
        "timeoutMs": 1000,
        "approverGroupRefs": ["desk"],
        "tandem": {"onTimeout": {"policy": "escalate", "levels": [
            {"approverGroups": ["leads"], "timeoutMs": 500},
            {"approvers": ["boss"], "approverRoles": ["board"], "timeoutMs": 200},
        ]}},
    }))
}

fn fired(node: &str) -> Command {
    Command::FireTimer(TimerKey::InterruptDeadline {
        node: NodeId::new(node),
    })
}

#[test]
fn question_escalates_level_by_level_and_then_rejects() {
    let mut run = RunHarness::started(escalating()).given();
    let open = |run: &RunHarness| run.run().open_questions()[0].clone();
    assert_eq!(open(&run).policy.groups, ["desk"]);
    assert_eq!(
        open(&run).interrupt.timeout_ms,
        Some(1700),
        "over no sooner"
    );
    run.elapse(1000);
    run.then("interrupt.escalated gate level=1 leads due=+500");
    assert_eq!(open(&run).policy.groups, ["leads"]);
    assert_eq!(open(&run).level, 1);
    assert_eq!(
        open(&run).deadline.map(|d| d.ms_since(run.now)),
        Some(500),
        "time of their own"
    );
    run.elapse(500);
    run.then("interrupt.escalated gate level=2 due=+200");
    assert_eq!(open(&run).policy.approvers, ["boss"]);
    assert_eq!(open(&run).policy.roles, ["board"]);
    assert!(open(&run).policy.groups.is_empty());
    run.elapse(200);
    run.then(
        "
        approval.received gate timeout
        interrupt.resolved gate
        node.resumed gate
        node.failed gate interrupt_rejected
        run.failed interrupt_rejected gate
        ",
    );
}

#[test]
fn an_escalated_question_is_still_answered_once() {
    let mut run = RunHarness::started(escalating().noops("after").path("gate after"));
    run.elapse(1200);
    run.when(answer("gate", json!({"action": "accept"})));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn clock_jump_causes_one_firing_and_one_decision() {
    let mut run = RunHarness::started(escalating()).given();
    run.now = run.now.plus_ms(1_000_000);
    run.when(fired("gate"));
    run.then("interrupt.escalated gate level=1 leads due=+500");
    run.when(fired("gate"));
    run.then("");
    assert_eq!(run.timers(), ["interrupt gate +500"]);
}

#[test]
fn reminders_are_bounded_and_the_question_stays_open() {
    let reminding = |then: Value| {
        let policy = json!({"policy": "remind", "everyMs": 2000, "times": 2, "then": then});
        RunHarness::started(gate(
            json!({"timeoutMs": 1000, "tandem": {"onTimeout": policy}}),
        ))
        .given()
    };
    let mut run = reminding(json!("wait"));
    assert_eq!(run.run().open_questions()[0].deadline, None);
    run.elapse(1_000_000);
    run.then(
        "
        interrupt.reminded gate count=1 due=+2000
        interrupt.reminded gate count=2
        ",
    );
    assert!(
        run.timers().is_empty(),
        "nothing more will happen by itself"
    );
    assert_eq!(run.run().open_questions()[0].reminders, 2);
    run.when(answer("gate", json!({"action": "accept"})));
    assert_eq!(run.status(), RunStatus::Completed);

    let mut run = reminding(json!("reject"));
    let ends = run.run().open_questions()[0].deadline;
    assert_eq!(ends.map(|d| d.ms_since(run.now)), Some(5000));
    run.elapse(4999);
    run.then(
        "
        interrupt.reminded gate count=1 due=+2000
        interrupt.reminded gate count=2 due=+2000
        ",
    );
    run.elapse(1);
    assert_eq!(run.status(), RunStatus::Failed);
}

#[test]
fn timeout_default_answers_questions_other_than_approvals() {
    let questions = json!([{"id": "size", "question": "How big?", "schema": {"type": "integer"}}]);
    let default = json!({"policy": "default", "value": {"answers": {"size": 3}}});
    let asked = workflow("asked").node(
        "ask",
        "core.clarificationGate",
        json!({"questions": questions, "timeoutMs": 10, "tandem": {"onTimeout": default}}),
    );
    let mut run = RunHarness::started(asked).given();
    run.elapse(10);
    run.then(
        r#"
        clarification.resolved ask {"size":3}
        interrupt.resolved ask
        node.resumed ask
        node.completed ask {"answers":{"size":3}}
        run.completed {"answers":{"size":3}}
        "#,
    );
    let default = json!({"policy": "default", "value": {"pin": "none"}});
    let custom = workflow("custom").node(
        "pin",
        "core.interrupt",
        json!({"kind": "custom", "data": {"customKind": "pin"}, "timeoutMs": 10,
               "tandem": {"onTimeout": default}}),
    );
    let mut run = RunHarness::started(custom);
    run.elapse(10);
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn invalid_interrupt_rule_is_refused_with_its_path() {
    let timed = |tandem: Value| json!({"timeoutMs": 10, "tandem": tandem});
    let policy = |policy: Value| timed(json!({"onTimeout": policy}));
    let cases = [
        (json!({"tandem": 1}), "tandem"),
        (
            json!({"tandem": {"noSelfAproval": true}}),
            "tandem/noSelfAproval",
        ),
        (json!({"tandem": {"priority": 10}}), "tandem/priority"),
        (json!({"tandem": {"priority": "urgent"}}), "tandem/priority"),
        (
            json!({"tandem": {"approverGroups": ["a", 1]}}),
            "tandem/approverGroups/1",
        ),
        (
            json!({"tandem": {"noSelfApproval": "yes"}}),
            "tandem/noSelfApproval",
        ),
        (
            json!({"tandem": {"onTimeout": {"policy": "reject"}}}),
            "tandem/onTimeout",
        ),
        (
            policy(json!({"policy": "approve"})),
            "tandem/onTimeout/policy",
        ),
        (
            policy(json!({"policy": "default", "value": {"action": "accept"}})),
            "tandem/onTimeout/value",
        ),
        (
            policy(json!({"policy": "escalate", "levels": []})),
            "tandem/onTimeout/levels",
        ),
        (
            policy(json!({"policy": "escalate", "levels": [{"timeoutMs": 5}]})),
            "tandem/onTimeout/levels/0",
        ),
        (
            policy(json!({"policy": "escalate", "levels": [{"approvers": ["a"]}]})),
            "tandem/onTimeout/levels/0/timeoutMs",
        ),
        (
            policy(json!({"policy": "remind", "everyMs": 1, "times": 1})),
            "tandem/onTimeout/everyMs",
        ),
        (
            policy(json!({"policy": "remind", "everyMs": 1000, "times": 0})),
            "tandem/onTimeout/times",
        ),
        (
            policy(json!({"policy": "remind", "everyMs": 1000, "times": 1, "then": "accept"})),
            "tandem/onTimeout/then",
        ),
        (
            policy(json!({"policy": "reject", "levels": []})),
            "tandem/onTimeout/levels",
        ),
    ];
    for (config, place) in cases {
        let problems = gate(config.clone()).faults();
        let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(paths, [format!("/nodes/0/config/{place}")], "{config}");
    }
    let fine = gate(json!({"tandem": {"priority": "high"}}));
    let run = RunHarness::started(fine);
    assert_eq!(
        run.run().open_questions()[0].interrupt.priority,
        Some(8),
        "words have numbers"
    );
}

#[test]
fn branch_restarts_the_time_of_an_open_question() {
    let reminding = || {
        let policy = json!({"policy": "remind", "everyMs": 2000, "times": 2});
        gate(json!({"timeoutMs": 1000, "tandem": {"onTimeout": policy}}))
    };
    // (workflow, time until the fork, time until the next step in the fork)
    for (workflow, waited, left) in [
        (gate(json!({"timeoutMs": 1000})), 600, 1000),
        (escalating(), 600, 1000),
        (escalating(), 1300, 500),
        (escalating(), 1600, 200),
        (reminding(), 600, 1000),
        (reminding(), 2500, 2000),
    ] {
        let mut run = RunHarness::started(workflow);
        run.elapse(waited);
        let branch = run.fork(ForkMode::Branch, run.log().len() as u64);
        let expected = format!("interrupt gate +{left}");
        assert_eq!(branch.timers(), [expected], "after {waited} ms");
    }
}

#[test]
fn priority_of_a_question_is_a_word_or_a_digit() {
    let asked = |priority: Value| {
        let config = json!({"title": "Go?", "tandem": {"priority": priority}});
        workflow("asked").node("gate", "core.approvalGate", config)
    };
    for (priority, level) in [
        (json!("low"), Some(2)),
        (json!("normal"), Some(5)),
        (json!("high"), Some(8)),
        (json!(0), Some(0)),
        (json!(9), Some(9)),
        (Value::Null, None),
    ] {
        let run = RunHarness::started(asked(priority.clone()));
        let questions = run.run().open_questions();
        assert_eq!(questions[0].interrupt.priority, level, "{priority}");
    }
    for refused in [json!("urgent"), json!(10), json!(-1), json!(true)] {
        assert!(!asked(refused.clone()).faults().is_empty(), "{refused}");
    }
}
