//! Who is told of questions of runs, by the rules of a host.

use super::gates::{answer, gate};
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::NoticeRule;
use serde_json::{Value, json};
use tandem_record::{Command, EffectId, EffectKind, EffectOutcome, ErrorInfo, RunStatus};

fn rule(to: &str) -> NoticeRule {
    NoticeRule {
        tenant: "t1".into(),
        workspace: None,
        kinds: vec!["approval".to_owned(), "clarification".to_owned()],
        groups: Vec::new(),
        principals: Vec::new(),
        agent: "desk".into(),
        transport: "team".to_owned(),
        to: to.to_owned(),
    }
}

fn told_by(rules: Vec<NoticeRule>, workflow: WorkflowBuilder) -> RunHarness {
    let mut run = RunHarness::new(workflow);
    run.notices = rules;
    let owner = run.request.owner.tenant.clone();
    for rule in &mut run.notices {
        if rule.tenant.as_str() == "t1" {
            rule.tenant.clone_from(&owner);
        }
    }
    run.create(json!({}));
    run
}

fn told(run: &RunHarness) -> Vec<(EffectId, String)> {
    let notices = run.outbox().filter_map(|effect| match &effect.kind {
        EffectKind::NotifyPeople { to, .. } => Some((effect.id.clone(), to.clone())),
        _ => None,
    });
    notices.collect()
}

fn addresses(run: &RunHarness) -> Vec<String> {
    told(run).into_iter().map(|(_, to)| to).collect()
}

fn named(config: Value) -> WorkflowBuilder {
    gate(config).noops("after").path("gate after")
}

#[test]
fn each_address_is_told_once_and_not_after_the_decision() {
    let mut twice = vec![rule("C1"), rule("C2"), rule("C1")];
    twice[2].kinds = vec!["approval".to_owned()];
    let mut run = told_by(twice, named(json!({"requiredApprovals": 2})));
    assert_eq!(addresses(&run), ["C1", "C2"]);
    let first = told(&run)[0].0.clone();
    run.performed(&first);
    run.when(answer("gate", json!({"action": "accept", "voter": "ana"})));
    assert_eq!(addresses(&run), ["C2"], "a vote tells nobody again");
    run.when(answer("gate", json!({"action": "accept", "voter": "bob"})));
    assert_eq!(addresses(&run), Vec::<String>::new());
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn rules_choose_by_kind_tenant_workspace_group_and_principal() {
    let change = |change: fn(&mut NoticeRule)| {
        let mut rule = rule("C1");
        change(&mut rule);
        let config = json!({"approversList": ["ana"], "approverGroupRefs": ["finance"]});
        addresses(&told_by(vec![rule], named(config))).len()
    };
    assert_eq!(change(|_| {}), 1);
    assert_eq!(
        change(|rule| rule.kinds = vec!["clarification".to_owned()]),
        0
    );
    assert_eq!(change(|rule| rule.tenant = "other".into()), 0);
    assert_eq!(change(|rule| rule.workspace = Some("elsewhere".into())), 0);
    assert_eq!(change(|rule| rule.groups = vec!["finance".to_owned()]), 1);
    assert_eq!(change(|rule| rule.groups = vec!["board".to_owned()]), 0);
    assert_eq!(change(|rule| rule.principals = vec!["ana".to_owned()]), 1);
    assert_eq!(change(|rule| rule.principals = vec!["ben".to_owned()]), 0);
    let both = |rule: &mut NoticeRule| {
        rule.groups = vec!["board".to_owned()];
        rule.principals = vec!["ana".to_owned()];
    };
    assert_eq!(change(both), 1);
}

#[test]
fn a_question_that_is_handed_on_is_told_to_the_next_people() {
    let of_group = |to: &str, group: &str| NoticeRule {
        groups: vec![group.to_owned()],
        ..rule(to)
    };
    let config = json!({"timeoutMs": 1_000, "approverGroupRefs": ["finance"], "tandem": {
        "onTimeout": {"policy": "escalate", "levels": [{"approverGroups": ["board"], "timeoutMs": 9_000}]}}});
    let rules = vec![of_group("C1", "finance"), of_group("C2", "board")];
    let mut run = told_by(rules, named(config));
    assert_eq!(addresses(&run), ["C1"]);
    run.elapse(1_000);
    assert_eq!(addresses(&run), ["C2"]);
}

#[test]
fn a_notice_that_nobody_took_is_in_the_log_and_the_question_stays() {
    let mut run = told_by(vec![rule("C1")], named(json!({})));
    let effect = told(&run)[0].0.clone();
    let error = ErrorInfo::new("notice_undelivered", "nobody there");
    run.lines();
    run.when(Command::FinishEffect {
        effect,
        outcome: EffectOutcome::Failed { error },
    });
    run.then("log The question was not announced: nobody there");
    assert_eq!(run.status(), RunStatus::WaitingApproval);
}

#[test]
fn an_earlier_step_tells_nobody() {
    let workflow = workflow("two")
        .node("nap", "core.delay", json!({"delayMs": 60_000}))
        .node("gate", "core.approvalGate", json!({}))
        .path("nap gate");
    let mut run = told_by(vec![rule("C1")], workflow);
    assert_eq!(told(&run), []);
    run.elapse(60_000);
    assert_eq!(addresses(&run), ["C1"]);
}
