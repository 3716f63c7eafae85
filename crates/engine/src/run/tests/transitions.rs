//! Every status against every command, compared with the table in `transitions.md`.

use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;
use tandem_record::{
    ChildOutcome, Command, DeciderSnapshot, Denial, DrainPolicy, EffectOutcome, InterruptId,
    NodeId, Principal, RunStatus, TimerKey,
};

/// Waits for everything a run can wait for: an effect, a timer, a child.
fn busy() -> WorkflowBuilder {
    workflow("busy")
        .settings(json!({"timeout": 60_000}))
        .http("call", json!({}))
        .delay("nap", 100)
        .call("sub", "child", json!({}))
}

fn started(workflow: WorkflowBuilder) -> RunHarness {
    let mut run = RunHarness::new(workflow)
        .with_workflow(super::workflow_builder::workflow("child").noops("n"));
    run.create(json!({}));
    run
}

fn waiting(status: RunStatus) -> RunHarness {
    let only_child =
        workflow("busy")
            .settings(json!({"timeout": 60_000}))
            .call("sub", "child", json!({}));
    let mut run = started(only_child);
    let child = run.child_of("sub");
    run.child_reports(
        "sub",
        ChildOutcome::Waiting {
            asker: child.clone(),
            node: NodeId::new("gate"),
            child,
            status,
            interrupt: InterruptId::new("int-1"),
            kind: "approval".to_owned(),
            key: None,
            data: None,
        },
    );
    run
}

/// A run in this status. `None` before its first event: no run is stored then.
fn in_status(status: RunStatus) -> Option<RunHarness> {
    let mut run = started(busy());
    match status {
        RunStatus::Pending => return None,
        RunStatus::Running => {}
        RunStatus::Paused => {
            run.pause(DrainPolicy::Immediate).expect("running");
        }
        RunStatus::WaitingApproval
        | RunStatus::WaitingInput
        | RunStatus::WaitingClarification
        | RunStatus::WaitingExternal => {
            run = waiting(status);
        }
        RunStatus::Cancelling => {
            run.cancel();
        }
        RunStatus::Completed => run = started(workflow("done").noops("n")),
        RunStatus::Failed => run = started(workflow("bad").fail("n", "broken")),
        RunStatus::Cancelled => {
            run = started(workflow("nap").delay("nap", 100));
            run.cancel();
        }
    }
    assert_eq!(run.status(), status);
    run.now = run.now.plus_ms(100);
    Some(run)
}

fn commands(running: &RunHarness) -> Vec<(&'static str, Command)> {
    let pause = |policy| Command::Pause {
        reason: None,
        policy,
    };
    vec![
        (
            "cancel",
            Command::Cancel {
                reason: None,
                by: None,
                by_parent: None,
            },
        ),
        ("pause, immediate", pause(DrainPolicy::Immediate)),
        ("pause, drain", pause(DrainPolicy::DrainCurrentNode)),
        ("resume", Command::Resume { reason: None }),
        (
            "node timer due",
            Command::FireTimer(TimerKey::NodeWake {
                node: "nap".into(),
                attempt: 0,
            }),
        ),
        (
            "run deadline due",
            Command::FireTimer(TimerKey::RunDeadline),
        ),
        (
            "effect finished",
            Command::FinishEffect {
                effect: running.effect_of("call"),
                outcome: EffectOutcome::Done {
                    outputs: Default::default(),
                },
            },
        ),
        (
            "child ended",
            Command::ReportChildOutcome {
                node: NodeId::new("sub"),
                outcome: ChildOutcome::Ended {
                    child: running.child_of("sub"),
                    status: RunStatus::Completed,
                    variables: Default::default(),
                    untrusted: Vec::new(),
                    error: None,
                },
            },
        ),
        (
            "resolve interrupt",
            Command::ResolveInterrupt {
                node: NodeId::new("sub"),
                interrupt: None,
                value: json!(true),
                by: Some(Principal::new("p")),
                by_link: false,
                decider: DeciderSnapshot::default(),
            },
        ),
        (
            "deny decision",
            Command::DenyDecision {
                node: NodeId::new("sub"),
                interrupt: None,
                by: Some(Principal::new("p")),
                why: Denial::NotEligible,
            },
        ),
        (
            "event from outside",
            Command::DeliverEvent {
                event_id: "e-1".to_owned(),
                event_type: "paid".to_owned(),
                payload: Default::default(),
                by: None,
            },
        ),
        ("continue", Command::Continue),
    ]
}

/// The result of the command: a status, `refused`, or `—` when nothing changes.
fn outcome(status: RunStatus, command: Command) -> String {
    let mut run = in_status(status).expect("a status runs are stored in");
    if command == Command::FireTimer(TimerKey::RunDeadline) {
        run.now = run.now.plus_ms(60_000);
    }
    let before = run.log().len();
    match run.try_when(command) {
        Err(_) => "refused".to_owned(),
        Ok(_) if run.log().len() == before => "—".to_owned(),
        Ok(_) => run.status().as_str().to_owned(),
    }
}

#[test]
fn transition_table_matches_the_machine() {
    let columns: Vec<RunStatus> = RunStatus::ALL
        .into_iter()
        .filter(|status| in_status(*status).is_some())
        .collect();
    let names: Vec<&str> = columns.iter().map(|status| status.as_str()).collect();
    let mut table = format!("| command | {} |\n", names.join(" | "));
    table.push_str(&format!("|---|{}\n", "---|".repeat(columns.len())));
    let running = in_status(RunStatus::Running).expect("runs run");
    for (name, command) in commands(&running) {
        let cells: Vec<String> = columns
            .iter()
            .map(|status| outcome(*status, command.clone()))
            .collect();
        table.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
    let printed = include_str!("../transitions.md");
    assert!(
        printed.contains(&table),
        "transitions.md should hold:\n{table}"
    );
}
