//! Which interrupts a run announces to its callback, and when it withdraws them.

use super::gates::{answer, gate};
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::{Value, json};
use tandem_record::{
    ChildOutcome, Command, DrainPolicy, EffectId, EffectKind, EffectOutcome, ErrorInfo,
    InterruptId, NodeId, Reply, RunStatus,
};

fn with_callback(workflow: WorkflowBuilder) -> RunHarness {
    let mut run = RunHarness::new(workflow);
    run.request.callback_url = Some("https://example.com/asked".to_owned());
    run.request.callback_may_answer = true;
    run
}

fn announced(run: &RunHarness) -> Vec<(EffectId, InterruptId)> {
    run.outbox()
        .filter_map(|effect| match &effect.kind {
            EffectKind::NotifyCallback { interrupt, .. } => {
                Some((effect.id.clone(), interrupt.clone()))
            }
            _ => None,
        })
        .collect()
}

fn accepted() -> Value {
    json!({"action": "accept"})
}

#[test]
fn question_is_announced_when_asked_and_withdrawn_when_answered() {
    let mut run = with_callback(gate(json!({})).noops("after").path("gate after"));
    run.create(json!({}));
    run.then(
        "
        run.started
        node.started gate
        interrupt.requested gate
        approval.requested gate
        node.suspended gate waiting-approval
        > announce
        ",
    );
    let announcements = announced(&run);
    let open = run.run().open_questions();
    assert_eq!(announcements.len(), 1);
    assert_eq!(announcements[0].1, open[0].interrupt.id);
    run.when(answer("gate", accepted()));
    assert_eq!(announced(&run), []);
}

#[test]
fn without_a_callback_nothing_is_announced() {
    let run = RunHarness::started(gate(json!({})));
    assert_eq!(announced(&run), []);
}

#[test]
fn a_question_is_announced_once_whatever_else_happens_to_the_run() {
    let workflow = workflow("two")
        .node("gate", "core.approvalGate", json!({"requiredApprovals": 2}))
        .node("nap", "core.delay", json!({"delayMs": 60_000}));
    let mut run = with_callback(workflow);
    run.create(json!({}));
    let announcements = announced(&run);
    assert_eq!(announcements.len(), 1);
    run.lines();
    let vote = answer("gate", json!({"action": "accept", "voter": "ana"}));
    run.when(vote);
    run.pause(DrainPolicy::Immediate).expect("it runs");
    assert_eq!(announced(&run), announcements, "a pause withdraws nothing");
    run.performed(&announcements[0].0);
    run.resume().expect("it is paused");
    run.elapse(60_000);
    let again = run.lines().iter().any(|line| line == "> announce");
    assert!(!again, "it was delivered");
    run.when(answer("gate", json!({"action": "accept", "voter": "bob"})));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn announcement_is_withdrawn_when_the_run_is_cancelled() {
    let ends: [fn(&mut RunHarness); 2] = [|run| drop(run.cancel()), |run| run.elapse(60_000)];
    for end in ends {
        let mut run = with_callback(gate(json!({}))).configured(json!({"runTimeoutMs": 60_000}));
        run.create(json!({}));
        assert_eq!(announced(&run).len(), 1);
        end(&mut run);
        assert!(run.status().is_terminal());
        assert_eq!(announced(&run), []);
    }
}

#[test]
fn question_asked_again_gets_a_new_announcement() {
    let workflow = workflow("again")
        .noops("draft")
        .node(
            "gate",
            "core.approvalGate",
            json!({"actions": ["accept", "refine"]}),
        )
        .path("draft gate");
    let mut run = with_callback(workflow);
    run.create(json!({}));
    let first = announced(&run);
    let refine = json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "no"}});
    run.when(answer("gate", refine));
    let second = announced(&run);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
}

#[test]
fn early_event_leaves_nothing_to_announce() {
    let data = json!({"eventType": "paid", "correlation": {}});
    let wait = json!({"kind": "external-event", "data": data});
    let workflow = workflow("early")
        .node("nap", "core.delay", json!({"delayMs": 1_000}))
        .node("wait", "core.interrupt", wait)
        .path("nap wait");
    let mut run = with_callback(workflow);
    run.create(json!({}));
    run.when(Command::DeliverEvent {
        event_id: "e1".to_owned(),
        event_type: "paid".to_owned(),
        payload: Default::default(),
        by: None,
    });
    run.lines();
    run.elapse(1_000);
    assert!(!run.lines().iter().any(|line| line == "> announce"));
    assert_eq!(run.status(), RunStatus::Completed);
}

#[test]
fn child_announces_its_questions_and_parent_does_not_repeat_them() {
    let call = json!({"workflowId": "child"});
    let parent = workflow("parent").node("call", "core.subWorkflow", call);
    let mut run = with_callback(parent).with_workflow(workflow("child").noops("n"));
    run.create(json!({}));
    let child = run.child_of("call");
    let request = &run
        .created_children()
        .next()
        .expect("it has a child")
        .request;
    assert_eq!(
        request.callback_url.as_deref(),
        Some("https://example.com/asked")
    );
    assert!(request.callback_may_answer);
    run.child_reports(
        "call",
        ChildOutcome::Waiting {
            child: child.clone(),
            asker: child,
            node: NodeId::new("gate"),
            status: RunStatus::WaitingApproval,
            interrupt: InterruptId::new("int-1"),
            kind: "approval".to_owned(),
            key: None,
            data: None,
        },
    );
    assert_eq!(run.status(), RunStatus::WaitingApproval);
    assert_eq!(announced(&run), []);
}

#[test]
fn failed_announcement_is_logged() {
    let mut run = with_callback(gate(json!({})));
    run.create(json!({}));
    run.lines();
    let (effect, _) = announced(&run).remove(0);
    let given_up = || Command::FinishEffect {
        effect: effect.clone(),
        outcome: EffectOutcome::Failed {
            error: ErrorInfo::new("callback_undelivered", "nobody is there"),
        },
    };
    assert_eq!(run.when(given_up()), Reply::Accepted);
    run.then("log The question was not announced: nobody is there");
    assert_eq!(run.status(), RunStatus::WaitingApproval, "it waits on");
    run.when(answer("gate", accepted()));
    assert_eq!(run.when(given_up()), Reply::Unchanged);
}
