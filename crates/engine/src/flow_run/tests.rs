//! Given records of a journal, then the events of the run and what readers see of it.

use super::{FlowRun, FlowRunCommand, FlowRunContext, FlowRunRefusal};
use crate::machine::{Decision, Machine as _};
use serde_json::{Value, json};
use tandem_record::conversation::{
    FlowFailure, FlowOrigin, FlowPause, FlowRecord, FlowRunStart, ResumedBy, TurnTrigger, WaitFor,
};
use tandem_record::{
    Cause, Event, InterruptId, Owner, RecordedEvent, RunId, RunStatus, RunView, Seq, TenantId,
    Timestamp,
};

const RUN: &str = "flow-1";
const NOW: Timestamp = Timestamp(1_000_000);

struct Journal {
    run: FlowRun,
    now: Timestamp,
    log: Vec<RecordedEvent>,
}

impl Journal {
    /// A run that was started, with no effect yet.
    fn started() -> Self {
        let mut journal = Self {
            run: FlowRun::unstarted(RunId::new(RUN)),
            now: NOW,
            log: Vec::new(),
        };
        journal.append([start(Some(json!({"item": "chair"})))]);
        journal
    }

    fn decide(&self, records: Vec<FlowRecord>) -> Result<Decision<FlowRun>, FlowRunRefusal> {
        let context = FlowRunContext {
            cause: Some(Cause::External("e-7".to_owned())),
        };
        let command = FlowRunCommand::Append {
            at: self.now,
            records,
        };
        self.run.decide(&command, &context)
    }

    /// Appends records and returns the names of the events after them.
    fn append(&mut self, records: impl IntoIterator<Item = FlowRecord>) -> Vec<String> {
        let decision = self
            .decide(records.into_iter().collect())
            .expect("the records fit");
        let mut folded = self.run.clone();
        for event in &decision.events {
            assert_eq!(
                Some(event.seq),
                folded.head().map_or(Some(Seq(0)), |h| Some(h.next()))
            );
            folded.evolve(event);
        }
        assert_eq!(folded, decision.after, "folding gives the decided state");
        let names = decision
            .events
            .iter()
            .map(|event| name(&event.event))
            .collect();
        self.log.extend(decision.events);
        self.run = decision.after;
        names
    }

    /// Yields an effect.
    fn effect(&mut self, step: u32, effect: Value) -> Vec<String> {
        self.append([FlowRecord::Effect {
            step,
            fingerprint: "f".to_owned(),
            effect,
        }])
    }

    /// Yields an effect and waits at it.
    fn wait(&mut self, step: u32, effect: Value, pause: FlowPause) -> Vec<String> {
        self.effect(step, effect.clone());
        self.append([FlowRecord::Paused {
            pause,
            question: effect,
        }])
    }

    fn resume(&mut self, step: u32, by: ResumedBy, outcome: &str, value: Value) -> Vec<String> {
        let resumed = FlowRecord::Resumed {
            interrupt_id: interrupt(step),
            by,
            outcome: outcome.to_owned(),
        };
        let segment = FlowRecord::Segment {
            turn: 2,
            trigger: TurnTrigger::Inbound,
            context: tandem_record::Object::new(),
        };
        self.append([resumed, segment, result(step, Some(value))])
    }

    fn view(&self) -> RunView {
        self.run.view().expect("the run was started")
    }

    fn find(&self, wanted: &str) -> &Event {
        let mut found = self.log.iter().filter(|event| name(&event.event) == wanted);
        &found
            .next_back()
            .unwrap_or_else(|| panic!("no {wanted}"))
            .event
    }
}

fn name(event: &Event) -> String {
    let stored = serde_json::to_value(event).expect("events are plain data");
    match event {
        Event::Flow(_) => format!(
            "flow.{}",
            stored["r"].as_str().expect("a record has a name")
        ),
        _ => stored["t"]
            .as_str()
            .expect("an event has a name")
            .to_owned(),
    }
}

fn start(input: Option<Value>) -> FlowRecord {
    FlowRecord::Started(Box::new(FlowRunStart {
        run_id: RunId::new(RUN),
        agent_id: "demo".into(),
        flow_id: "refund".into(),
        session_id: Some("s-1".into()),
        owner: Owner {
            tenant: TenantId::new("acme"),
            workspace: None,
            principal: None,
        },
        version: "abc".to_owned(),
        input,
        origin: FlowOrigin::Router,
        seed: u64::MAX,
        context: tandem_record::Object::new(),
    }))
}

fn result(step: u32, value: Option<Value>) -> FlowRecord {
    FlowRecord::Result {
        step,
        value,
        error: None,
    }
}

fn ended(reason: Option<&str>, cancelled: bool) -> FlowRecord {
    FlowRecord::Ended {
        reason: reason.map(str::to_owned),
        cancelled,
    }
}

fn interrupt(step: u32) -> InterruptId {
    InterruptId::from(format!("{RUN}:{step}"))
}

fn asking(step: u32) -> FlowPause {
    FlowPause::Ask {
        interrupt_id: interrupt(step),
        key: "amount".to_owned(),
        asked_at: NOW,
        reminded: 0,
    }
}

fn confirming(step: u32) -> FlowPause {
    FlowPause::Confirm {
        interrupt_id: interrupt(step),
        attempts: 0,
        deadline: NOW.plus_ms(300_000),
        asked: Seq(4),
        asked_at: NOW,
        reminded: 0,
    }
}

fn waiting(step: u32, wait_for: WaitFor, escalation: Option<&str>) -> FlowPause {
    FlowPause::Wait {
        interrupt_id: interrupt(step),
        wait_for,
        escalation_id: escalation.map(Into::into),
        deadline: Some(NOW.plus_ms(60_000)),
        since: NOW,
    }
}

const CONFIRM: &str = "interrupt.confirm";

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

/// §10.1, Z-48
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
    assert!(
        open.policy.auth_required,
        "Z-203: a link does not answer it"
    );
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

/// §10.1, Z-74: the run ends at the deadline, without a result for its code.
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

/// §10.1, Z-203
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

/// §10.1, Z-15, Z-64
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

/// Z-62: an `end` is an effect that is done when the run ends.
#[test]
fn ending_effect_completes_with_its_run() {
    let mut journal = Journal::started();
    journal.effect(0, json!({"type": "end", "reason": "finished"}));
    assert_eq!(
        journal.append([ended(Some("finished"), false)]),
        ["flow.ended", "node_completed", "run_completed"]
    );
}

/// Z-216
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
