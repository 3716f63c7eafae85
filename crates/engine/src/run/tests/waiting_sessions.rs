//! A run that a conversation started tells it how it ended, once, with its last event.

use super::gates::answer;
use super::harness::RunHarness;
use super::workflow_builder::{WorkflowBuilder, workflow};
use serde_json::json;
use tandem_record::conversation::{WaitingSession, WorkflowResult};
use tandem_record::{Command, EffectKind};

fn awaited(workflow: WorkflowBuilder) -> RunHarness {
    let mut run = RunHarness::new(workflow);
    run.request.waiting_session = Some(Box::new(WaitingSession {
        session_id: "s-1".into(),
        interrupt_id: "flow-1:0".into(),
        surfaces_questions: true,
    }));
    run.create(json!({}));
    run
}

fn reports(run: &RunHarness) -> Vec<WorkflowResult> {
    let effects = run.outbox();
    let reports = effects.filter_map(|effect| match &effect.kind {
        EffectKind::NotifySession { to, result } => {
            assert_eq!(to.session_id.as_str(), "s-1");
            assert_eq!(to.interrupt_id.as_str(), "flow-1:0");
            Some((**result).clone())
        }
        _ => None,
    });
    reports.collect()
}

/// §10.8
#[test]
fn end_of_a_run_is_reported_to_the_conversation_that_waits() {
    let run = awaited(workflow("short").noops("a"));
    let [report] = &reports(&run)[..] else {
        panic!("one report");
    };
    assert_eq!(report.status, "completed");
    assert!(report.output.is_some());
    assert_eq!(report.error, None);
}

/// §10.8
#[test]
fn cancelled_run_is_reported_too() {
    let mut run = awaited(workflow("long").delay("wait", 1_000));
    assert_eq!(reports(&run), []);
    run.when(Command::Cancel {
        reason: None,
        by: None,
        by_parent: None,
    });
    let found = reports(&run);
    let statuses: Vec<&str> = found.iter().map(|report| report.status.as_str()).collect();
    assert_eq!(statuses, ["cancelled"]);
}

/// Z-220 (half: a workflow shows its questions to the conversation, and calls each off however it ends)
#[test]
fn open_questions_are_shown_to_the_conversation_and_called_off() {
    let question = json!({"questions": [{"id": "size", "question": "How many?"}]});
    let named = json!({"approversList": ["ana"]});
    let mut run = awaited(
        workflow("asks")
            .node("size", "core.clarificationGate", question)
            .node("named", "core.approvalGate", named)
            .node("open", "core.approvalGate", json!({"title": "Ship it?"})),
    );
    let shown = |run: &RunHarness| -> Vec<(String, String)> {
        let questions = run.outbox().filter_map(|effect| match &effect.kind {
            EffectKind::AskSession { question, .. } => {
                Some((question.kind.clone(), question.node_id.to_string()))
            }
            _ => None,
        });
        let mut questions: Vec<_> = questions.collect();
        questions.sort();
        questions
    };
    let pair = |kind: &str, node: &str| (kind.to_owned(), node.to_owned());
    assert_eq!(
        shown(&run),
        [pair("approval", "open"), pair("clarification", "size")],
        "one that only somebody named may decide stays in the inbox"
    );
    let closed = |run: &RunHarness| -> Vec<String> {
        let closed = run.outbox().filter_map(|effect| match &effect.kind {
            EffectKind::CloseSessionQuestion { closed, .. } => Some(closed.outcome.clone()),
            _ => None,
        });
        closed.collect()
    };
    assert!(closed(&run).is_empty());
    run.when(answer("size", json!({"answers": {"size": "12"}})));
    assert_eq!(closed(&run), ["answered"]);
    run.when(Command::Cancel {
        reason: None,
        by: None,
        by_parent: None,
    });
    assert_eq!(closed(&run).len(), 2, "{:?}", closed(&run));
}
