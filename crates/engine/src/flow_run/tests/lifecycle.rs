//! How flow runs begin, go on and end.

use super::fixtures::*;
use crate::flow_run::{FlowRun, FlowRunRefusal};
use crate::machine::Machine as _;
use serde_json::{Value, json};
use tandem_record::conversation::{FlowFailure, FlowRecord, ResumedBy};
use tandem_record::{Cause, Event, RecordedEvent, RunId, RunStatus, Timestamp};

/// §10.1
#[test]
fn flow_run_starts_as_a_run_of_its_flow() {
    let journal = Journal::started();
    let names: Vec<_> = journal.log.iter().map(|event| name(&event.event)).collect();
    assert_eq!(names, ["run_started", "flow.started"]);
    let view = journal.view();
    assert_eq!(view.workflow_id.as_str(), "flow.demo.refund");
    assert_eq!(view.definition.as_str(), "abc");
    assert_eq!(view.status, RunStatus::Running);
    assert_eq!(view.owner.tenant.as_str(), "acme");
    assert_eq!(json!(view.inputs), json!({"item": "chair"}));
    assert_eq!(json!(view.options.metadata)["sessionId"], "s-1");
    assert_eq!(
        journal.log[0].cause,
        Some(Cause::External("e-7".to_owned()))
    );
}

#[test]
fn stored_journal_records_are_read_back_unchanged() {
    let mut journal = Journal::started();
    journal.wait(
        0,
        json!({"type": "ask", "key": "amount", "text": "?"}),
        asking(0),
    );
    journal.resume(0, ResumedBy::UserReply, "answered", Value::Null);
    for event in &journal.log {
        let text = serde_json::to_string(event).expect("plain data");
        let read: RecordedEvent = serde_json::from_str(&text).expect("readable");
        assert_eq!(read, *event);
    }
}

/// §10.1, Z-48 (half: nodes of the run are named by the step)
#[test]
fn effects_are_nodes_named_by_their_step() {
    let mut journal = Journal::started();
    assert_eq!(
        journal.effect(0, json!({"type": "say", "text": "hi"})),
        ["flow.effect", "node_started"]
    );
    assert_eq!(
        journal.append([result(0, None)]),
        ["flow.result", "node_completed"]
    );
    journal.effect(1, json!({"type": "tool", "name": "price", "args": {}}));
    let failed = FlowRecord::Result {
        step: 1,
        value: None,
        error: Some(json!({"name": "ToolError", "code": "timeout", "message": "too slow"})),
    };
    assert_eq!(journal.append([failed]), ["flow.result", "node_failed"]);
    let Event::NodeStarted { node, type_id, .. } = journal.find("node_started") else {
        unreachable!()
    };
    assert_eq!(
        (node.as_str(), type_id.as_str()),
        ("s1", "vendor.tandem.flow.tool")
    );
    let nodes = journal.view().nodes;
    let error = nodes[1].error.as_ref().expect("the tool failed");
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("timeout", "too slow")
    );
    journal.effect(2, json!("no effect"));
    let Event::NodeStarted { type_id, .. } = journal.find("node_started") else {
        unreachable!()
    };
    assert_eq!(type_id, "vendor.tandem.flow.invalid");
}

/// §10.1, Z-15 (half: the run of the flow), Z-64 (half: the run of the flow)
#[test]
fn ends_of_a_flow_are_ends_of_its_run() {
    let failure = FlowRecord::Failed {
        failure: FlowFailure {
            code: "exception".to_owned(),
            message: "boom".to_owned(),
            details: None,
        },
    };
    for (record, end, status) in [
        (ended(None, false), "run_completed", RunStatus::Completed),
        (
            ended(Some("session_ended"), true),
            "run_cancelled",
            RunStatus::Cancelled,
        ),
        (failure, "run_failed", RunStatus::Failed),
    ] {
        let mut journal = Journal::started();
        journal.wait(0, json!({"type": "ask"}), asking(0));
        let names = journal.append([record]);
        assert_eq!(&names[1..], ["node_cancelled", end]);
        assert_eq!(journal.run.status(), status);
        assert!(journal.run.is_ended());
        assert_eq!(journal.run.ended_at(), Some(NOW));
        assert_eq!(journal.view().interrupts, []);
        let closed = journal
            .run
            .closed_question(&interrupt(0))
            .expect("it is closed");
        assert_eq!(closed.outcome, "cancelled");
        let late = journal.decide(vec![ended(None, false)]);
        assert_eq!(late.expect_err("it ended"), FlowRunRefusal::Ended);
    }
}

/// Z-62 (half: an `end` is an effect that is done when the run ends)
#[test]
fn ending_effect_completes_with_its_run() {
    let mut journal = Journal::started();
    journal.effect(0, json!({"type": "end", "reason": "finished"}));
    assert_eq!(
        journal.append([ended(Some("finished"), false)]),
        ["flow.ended", "node_completed", "run_completed"]
    );
}

/// Z-216 (half: diverged run is parked and fails when it is given up)
#[test]
fn diverged_run_is_parked_and_fails_when_it_is_given_up() {
    let mut journal = Journal::started();
    journal.wait(0, json!({"type": "ask"}), asking(0));
    let diverged = FlowRecord::Diverged {
        step: 0,
        expected: json!({"type": "ask"}),
        actual: json!({"type": "say"}),
    };
    assert_eq!(
        journal.append([diverged]),
        ["flow.diverged", "replay_diverged", "run_paused"]
    );
    let Event::ReplayDiverged { source, kind, .. } = journal.find("replay_diverged") else {
        unreachable!()
    };
    assert_eq!((source.as_str(), kind.as_str()), (RUN, "type-mismatch"));
    assert_eq!(journal.run.status(), RunStatus::Paused);
    assert_eq!(journal.view().interrupts, [], "it takes no answers");
    let names = journal.append([ended(Some("aborted"), true)]);
    assert_eq!(names.last().map(String::as_str), Some("run_failed"));
    assert_eq!(
        journal.run.error().map(|error| error.code.as_str()),
        Some("replay_diverged")
    );
}

/// Z-216 (half: retried run waits again, and takes answers)
#[test]
fn retried_run_waits_again() {
    let mut journal = Journal::started();
    let effect = json!({"type": "ask", "key": "amount", "text": "How much?"});
    journal.wait(0, effect.clone(), asking(0));
    let before = journal.view();
    journal.append([FlowRecord::Diverged {
        step: 0,
        expected: json!({"type": "ask"}),
        actual: json!({"type": "say"}),
    }]);
    let names = journal.append([FlowRecord::Paused {
        pause: asking(0),
        question: effect,
    }]);
    assert_eq!(names, ["flow.paused", "run_resumed", "node_suspended"]);
    let after = journal.view();
    assert_eq!(after.status, RunStatus::WaitingInput);
    assert_eq!(after.interrupts, before.interrupts);
    assert_eq!(after.paused_at, None);
}

#[test]
fn journal_begins_with_its_only_start() {
    let unstarted = Journal {
        run: FlowRun::unstarted(RunId::new(RUN)),
        now: NOW,
        log: Vec::new(),
    };
    let early = unstarted.decide(vec![result(0, None)]);
    assert_eq!(early.expect_err("not started"), FlowRunRefusal::OutOfOrder);
    let twice = Journal::started().decide(vec![start(None)]);
    assert_eq!(twice.expect_err("started"), FlowRunRefusal::OutOfOrder);
}

#[test]
fn times_of_the_log_never_step_back() {
    let mut journal = Journal::started();
    journal.now = Timestamp(1);
    journal.effect(0, json!({"type": "say"}));
    assert!(journal.log.iter().all(|event| event.at == NOW));
}
