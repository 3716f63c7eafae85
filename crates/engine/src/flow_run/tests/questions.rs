//! What a flow waits for, as readers of its run see it.

use super::fixtures::*;
use serde_json::{Value, json};
use tandem_record::conversation::{FlowPause, FlowRecord, ResumedBy, WaitFor};
use tandem_record::{Event, RunId, RunStatus};

/// §10.1
#[test]
fn question_to_the_user_is_a_clarification() {
    let mut journal = Journal::started();
    let effect = json!({"type": "ask", "key": "amount", "text": "How much?"});
    assert_eq!(
        journal.wait(0, effect, asking(0)),
        [
            "flow.paused",
            "interrupt_requested",
            "clarification_requested",
            "node_suspended"
        ]
    );
    let view = journal.view();
    assert_eq!(view.status, RunStatus::WaitingInput);
    assert_eq!(view.current_node.expect("it waits").as_str(), "s0");
    let open = &view.interrupts[0];
    assert_eq!(open.interrupt.id, interrupt(0));
    assert_eq!(open.interrupt.kind, "clarification");
    let questions = json!({"questions": [{"id": "amount", "question": "How much?"}]});
    assert_eq!(open.interrupt.data, questions);
    assert!(open.policy.auth_required, "a link does not answer it");
    assert_eq!(
        journal.resume(0, ResumedBy::UserReply, "answered", json!("700")),
        [
            "flow.resumed",
            "flow.segment",
            "flow.result",
            "clarification_resolved",
            "interrupt_resolved",
            "node_resumed",
            "node_completed",
        ]
    );
    let Event::InterruptResolved { resolution, .. } = journal.find("interrupt_resolved") else {
        unreachable!()
    };
    assert_eq!(resolution.value, json!({"answers": {"amount": "700"}}));
    let view = journal.view();
    assert_eq!(
        (view.status, view.interrupts),
        (RunStatus::Running, Vec::new())
    );
    assert_eq!(json!(view.variables), json!({"amount": "700"}));
    assert_eq!(
        journal.append([ended(Some("done"), false)]),
        ["flow.ended", "run_completed"]
    );
    let Event::RunCompleted { outputs, .. } = journal.find("run_completed") else {
        unreachable!()
    };
    assert_eq!(
        json!(outputs),
        json!({"reason": "done", "answers": {"amount": "700"}})
    );
}

/// §10.1
#[test]
fn confirmation_is_a_clarification_with_a_schema() {
    let schema = json!({"type": "number"});
    for (extra, shown) in [
        (None, Some(json!({"type": "boolean"}))),
        (Some(schema.clone()), Some(schema)),
        (Some(json!({"$fn": true})), None),
    ] {
        let mut journal = Journal::started();
        let mut effect = json!({"type": CONFIRM, "question": "Sure?"});
        if let Some(extra) = extra {
            effect["responseSchema"] = extra;
        }
        journal.wait(0, effect.clone(), confirming(0));
        let open = journal.view().interrupts.remove(0);
        let question = &open.interrupt.data["questions"][0];
        assert_eq!(
            (&question["id"], &question["question"]),
            (&json!("confirm"), &json!("Sure?"))
        );
        assert_eq!(question.get("schema"), shown.as_ref());
        assert_eq!(open.deadline, Some(NOW.plus_ms(300_000)));
        // The question is repeated: the interrupt stays the one it is.
        let again = FlowRecord::Paused {
            pause: confirming(0),
            question: effect,
        };
        assert_eq!(journal.append([again]), ["flow.paused"]);
        assert_eq!(journal.view().interrupts, [open]);
    }
}

/// §10.1: a timeout is a result.
#[test]
fn timeout_of_a_confirmation_resumes_the_run() {
    let mut journal = Journal::started();
    journal.wait(
        0,
        json!({"type": CONFIRM, "question": "Sure?"}),
        confirming(0),
    );
    journal.now = NOW.plus_ms(300_000);
    let names = journal.resume(0, ResumedBy::Timeout, "timed_out", json!(false));
    assert!(!names.contains(&"clarification_resolved".to_owned()));
    assert_eq!(names.last().map(String::as_str), Some("node_completed"));
    let closed = journal
        .run
        .closed_question(&interrupt(0))
        .expect("it is closed");
    assert_eq!((closed.outcome.as_str(), closed.overdue), ("timeout", true));
    assert_eq!(closed.asked_at, Some(NOW));
    assert_eq!(journal.run.status(), RunStatus::Running);
}

/// §10.1, Z-74 (half: the run ends at the deadline, without a result for its code)
#[test]
fn confirmation_that_ends_the_flow_closes_its_question_first() {
    let mut journal = Journal::started();
    journal.wait(
        0,
        json!({"type": CONFIRM, "question": "Sure?"}),
        confirming(0),
    );
    let resumed = FlowRecord::Resumed {
        interrupt_id: interrupt(0),
        by: ResumedBy::Timeout,
        outcome: "timed_out".to_owned(),
        answered_by: None,
    };
    assert_eq!(
        journal.append([resumed, ended(Some("confirm_timed_out"), false)]),
        [
            "flow.resumed",
            "flow.ended",
            "interrupt_resolved",
            "node_resumed",
            "node_completed",
            "run_completed",
        ]
    );
}

fn escalated() -> Journal {
    let mut journal = Journal::started();
    let escalate = json!({
        "type": "interrupt.escalate", "mode": "async_resolution", "reason": "High refund",
        "priority": "high", "metadata": {"amount": "700"},
    });
    journal.effect(0, escalate);
    journal.append([result(0, Some(json!({"escalationId": "esc-1"})))]);
    let wait = json!({"type": "interrupt.wait", "waitFor": "admin_resolution"});
    let names = journal.wait(1, wait, waiting(1, WaitFor::AdminResolution, Some("esc-1")));
    assert_eq!(
        names,
        [
            "flow.paused",
            "interrupt_requested",
            "approval_requested",
            "node_suspended"
        ]
    );
    journal
}

/// §10.1, Z-203 (half: an escalation is an approval of the run)
#[test]
fn escalation_is_an_approval_with_the_authors_data() {
    let journal = escalated();
    let view = journal.view();
    assert_eq!(view.status, RunStatus::WaitingApproval);
    let interrupt = &view.interrupts[0].interrupt;
    assert_eq!(
        (interrupt.kind.as_str(), interrupt.priority),
        ("approval", Some(7))
    );
    let data = &interrupt.data;
    assert_eq!(data["artifactId"], "esc-1");
    assert_eq!(data["artifactType"], "escalation");
    assert_eq!(data["title"], "High refund");
    assert_eq!(data["artifactData"]["amount"], "700");
    assert_eq!(data["artifactData"]["context"]["sessionId"], "s-1");
    assert_eq!(data["actions"], json!(["accept", "reject", "edit-accept"]));
}

/// §10.1
#[test]
fn decisions_about_an_escalation_are_decisions_of_an_approval() {
    let resolved = |fields: Value| {
        let mut payload = json!({"outcome": "resolved", "resolvedBy": "ana"});
        let object = payload.as_object_mut().expect("an object");
        object.extend(fields.as_object().expect("an object").clone());
        payload
    };
    let timed_out = json!({"outcome": "timed_out", "approved": false, "timedOut": true});
    for (by, payload, action, outcome, decider) in [
        (
            ResumedBy::AdminResolution,
            resolved(json!({"approved": true})),
            json!({"action": "accept"}),
            "accepted",
            Some("ana"),
        ),
        (
            ResumedBy::AdminResolution,
            resolved(json!({"approved": true, "actionData": {"amount": 5}})),
            json!({"action": "edit-accept", "editedArtifactData": {"amount": 5}}),
            "accepted",
            Some("ana"),
        ),
        (
            ResumedBy::AdminResolution,
            resolved(json!({"approved": false, "message": "Too old."})),
            json!({"action": "reject", "feedback": "Too old."}),
            "rejected",
            Some("ana"),
        ),
        (
            ResumedBy::Timeout,
            timed_out,
            json!({"action": "timeout"}),
            "timeout",
            None,
        ),
    ] {
        let mut journal = escalated();
        let names = journal.resume(1, by, "resolved", payload);
        assert_eq!(
            &names[3..],
            [
                "approval_received",
                "interrupt_resolved",
                "node_resumed",
                "node_completed"
            ]
        );
        let Event::ApprovalReceived { decision, .. } = journal.find("approval_received") else {
            unreachable!()
        };
        assert_eq!(decision.action, action["action"]);
        let Event::InterruptResolved { resolution, .. } = journal.find("interrupt_resolved") else {
            unreachable!()
        };
        assert_eq!(resolution.value, action);
        assert_eq!(resolution.outcome.as_deref(), Some(outcome));
        let closed = journal
            .run
            .closed_question(&interrupt(1))
            .expect("it is closed");
        assert_eq!(closed.decided_by(), decider);
        assert_eq!(
            journal.run.status(),
            RunStatus::Running,
            "a refusal is a result"
        );
    }
}

/// §10.1
#[test]
fn waits_of_the_runtime_are_external_events() {
    for (pause, data) in [
        (
            waiting(0, WaitFor::Timeout, None),
            json!({"eventType": "tandem.timer", "correlation": {"sessionId": "s-1"}}),
        ),
        (
            waiting(0, WaitFor::LiveHandback, Some("esc-1")),
            json!({"eventType": "tandem.handback", "correlation": {"escalationId": "esc-1"}}),
        ),
        (
            FlowPause::Workflow {
                interrupt_id: interrupt(0),
                run_id: RunId::new("run-9"),
                deadline: None,
                since: NOW,
            },
            json!({"eventType": "tandem.run_finished", "correlation": {"runId": "run-9"}}),
        ),
    ] {
        let mut journal = Journal::started();
        let names = journal.wait(0, json!({"type": "interrupt.wait"}), pause);
        assert_eq!(
            names,
            ["flow.paused", "interrupt_requested", "node_suspended"]
        );
        let view = journal.view();
        assert_eq!(view.status, RunStatus::WaitingExternal);
        assert_eq!(view.interrupts[0].interrupt.data, data);
    }
}
