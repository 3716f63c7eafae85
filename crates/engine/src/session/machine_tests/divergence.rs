//! Runs whose code no longer fits their journal, and what operators do with them.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use crate::session::SessionRefusal;
use crate::session::program::Resume;
use serde_json::{Value, json};
use tandem_record::RunId;
use tandem_record::conversation::{
    AdminRequest, DivergenceAction, FlowRecord, SessionEventBody as Body,
};

const FALLBACK: &str = "Sorry, I hit an unexpected issue. Please try again in a moment.";

fn asking() -> Code {
    code(|step, with, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        1 => effect(json!({"type": "say", "text": format!("x={}", text_of(with))})),
        _ => done(),
    })
}

/// A desk whose flow waits and whose code was changed.
fn changed_desk(config: Value) -> (TestSession, RunId) {
    let mut fields = json!({"beforeLLM": {"$fn": true}});
    let given = config.as_object().expect("an object").clone();
    fields.as_object_mut().expect("an object").extend(given);
    let mut desk = TestSession::new(fields, &[("asking", asking())]);
    route_on_start(&mut desk);
    desk.say("start asking");
    let run = desk.change_code();
    (desk, run)
}

fn settle(
    desk: &mut TestSession,
    run: &RunId,
    action: DivergenceAction,
) -> Result<(), SessionRefusal> {
    let run = run.clone();
    let request = AdminRequest::SettleDivergence { run, action };
    desk.act("ana", request).map(drop)
}

/// Z-216 (half: it is parked; the fallback reply once, then the classic path), Z-261 (half: it is no active flow)
#[test]
fn diverged_run_is_parked_and_the_session_goes_on() {
    let (mut desk, run) = changed_desk(json!({}));
    assert_eq!(desk.say("7"), [FALLBACK]);
    assert!(desk.state().flow().is_none());
    assert_eq!(desk.count(|e| matches!(e, Body::FlowDiverged { .. })), 1);
    assert_eq!(
        desk.count(|e| matches!(e, Body::FlowResumed { .. })),
        0,
        "nothing is performed"
    );
    let is_result = |r: &FlowRecord| matches!(r, FlowRecord::Result { .. });
    assert!(
        !desk
            .journal
            .iter()
            .any(|(of, r)| *of == run && is_result(r))
    );
    assert_eq!(desk.say("hi"), ["model speaks"]);
    assert_eq!(desk.say("start asking"), ["x?"], "another may start");
}

/// Z-261 (half: its escalation is detached)
#[test]
fn escalation_of_a_diverged_run_is_detached() {
    let flow = code(|step, _, _| match step {
        0 => {
            effect(json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"}))
        }
        1 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        _ => done(),
    });
    let fields = json!({"beforeLLM": {"$fn": true}});
    let mut desk = TestSession::new(fields, &[("asking", flow)]);
    route_on_start(&mut desk);
    desk.say("start asking");
    desk.change_code();
    assert_eq!(desk.say("7"), [FALLBACK]);
    let escalation = desk.state().escalations().next().expect("it is kept");
    assert!(escalation.detached);
    assert_eq!(desk.state().hitl_mode(), None);
    desk.resolve(true, "ana").expect("open");
    assert_eq!(desk.sent, ["x?", FALLBACK], "it resumes nothing");
}

/// Z-216 (half: restored code lets the run go on where it waited)
#[test]
fn restored_code_lets_the_run_go_on_where_it_waited() {
    let (mut desk, run) = changed_desk(json!({}));
    desk.say("7");
    desk.restore_code();
    settle(&mut desk, &run, DivergenceAction::Retry).expect("parked");
    assert_eq!(desk.paused_on(), Some("ask"));
    assert_eq!(desk.say("8"), ["x=8"]);
    assert_eq!(
        settle(&mut desk, &run, DivergenceAction::Retry),
        Err(SessionRefusal::NoFlow)
    );
}

/// Z-216 (half: operator aborts or restarts a diverged run)
#[test]
fn operator_aborts_or_restarts_a_diverged_run() {
    let (mut desk, run) = changed_desk(json!({}));
    desk.say("7");
    settle(&mut desk, &run, DivergenceAction::Abort).expect("parked");
    let failed =
        |e: &Body| matches!(e, Body::FlowFailed { error } if error.code == "replay_diverged");
    assert_eq!(desk.count(failed), 1);
    assert_eq!(desk.state().diverged().count(), 0);

    let (mut desk, run) = changed_desk(json!({}));
    desk.say("7");
    settle(&mut desk, &run, DivergenceAction::Restart).expect("parked");
    assert_eq!(desk.paused_on(), Some("ask"));
    let active = desk.state().flow().expect("restarted");
    assert_ne!(*active.run_id(), run);
    let second = |e: &Body| matches!(e, Body::FlowStarted { attempt: 2, .. });
    assert_eq!(desk.count(second), 1);
    assert_eq!(desk.say("8"), ["x=8"]);
}

/// Z-216 (half: agent may fail or restart diverged runs at once)
#[test]
fn agent_may_fail_or_restart_diverged_runs_at_once() {
    let (mut desk, _) = changed_desk(json!({"onDivergence": "fail"}));
    assert_eq!(desk.say("7"), [FALLBACK]);
    let failed = |e: &Body| matches!(e, Body::FlowFailed { error } if error.code == "diverged");
    assert_eq!(desk.count(failed), 1);
    assert_eq!(desk.state().diverged().count(), 0);

    let (mut desk, run) = changed_desk(json!({"onDivergence": "restart"}));
    assert_eq!(desk.say("7"), ["x?"]);
    assert_ne!(*desk.state().flow().expect("restarted").run_id(), run);
    assert_eq!(desk.say("8"), ["x=8"]);
}

/// Z-216 (half: another flow is active meanwhile)
#[test]
fn parked_run_is_not_retried_over_an_active_flow() {
    let (mut desk, run) = changed_desk(json!({}));
    desk.say("7");
    desk.say("start asking");
    for action in [DivergenceAction::Retry, DivergenceAction::Restart] {
        assert_eq!(
            settle(&mut desk, &run, action),
            Err(SessionRefusal::FlowActive)
        );
    }
}

/// A deadline finds the divergence too.
/// Z-216 (half: a deadline finds the divergence too, and the user's next message gets the fallback reply once), Z-192 (half: the deadline of a diverged run)
#[test]
fn deadline_of_a_diverged_run_resumes_nothing() {
    let sure = code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        _ => done(),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("sure", sure)]);
    route_on_start(&mut desk);
    desk.say("start sure");
    desk.change_code();
    desk.wait_seconds(301);
    assert_eq!(desk.sent, ["Sure?"], "the user wrote nothing");
    assert_eq!(desk.count(|e| matches!(e, Body::ConfirmTimedOut { .. })), 0);
    assert!(desk.state().flow().is_none());
    assert_eq!(desk.say("hello"), [FALLBACK]);
    assert_eq!(desk.say("hello"), ["model speaks"]);
}

fn wait_for_decision() -> Code {
    code(|step, with, _| match step {
        0 => {
            effect(json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"}))
        }
        1 => effect(
            json!({"type": "interrupt.wait", "waitFor": "admin_resolution",
            "timeoutSeconds": 600}),
        ),
        2 => {
            let Resume::Value(Some(result)) = with else {
                panic!("no result: {with:?}");
            };
            let (outcome, approved) = (&result["outcome"], &result["approved"]);
            effect(json!({"type": "say", "text": format!("{outcome} {approved}")}))
        }
        _ => done(),
    })
}

/// A desk whose flow waits for a decision and whose code was changed.
fn changed_escalation() -> (TestSession, RunId) {
    let fields = json!({"beforeLLM": {"$fn": true}});
    let mut desk = TestSession::new(fields, &[("deciding", wait_for_decision())]);
    route_on_start(&mut desk);
    desk.say("start deciding");
    let run = desk.change_code();
    (desk, run)
}

/// Z-152 (half: the first decision is kept over a divergence), Z-78 (half: the wait gets the decision after a retry),
/// Z-216 (half: retry hands the decision over)
#[test]
fn decision_survives_the_divergence_of_its_turn() {
    let (mut desk, run) = changed_escalation();
    desk.resolve(true, "ana").expect("open");
    assert!(desk.state().flow().is_none(), "it is parked");
    desk.restore_code();
    settle(&mut desk, &run, DivergenceAction::Retry).expect("parked");
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("\"resolved\" true")
    );
    assert!(desk.state().flow().is_none(), "it has ended");
}

/// Z-216 (half: retry hands over a deadline that found the divergence), Z-192
#[test]
fn deadline_that_found_the_divergence_is_handed_over_by_the_retry() {
    let (mut desk, run) = changed_escalation();
    desk.wait_seconds(601);
    desk.restore_code();
    settle(&mut desk, &run, DivergenceAction::Retry).expect("parked");
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("\"timed_out\" false")
    );
}

/// Z-216 (half: the escalation of a retried run is attached again)
#[test]
fn escalation_of_a_retried_run_is_attached_again() {
    let flow = code(|step, _, _| match step {
        0 => {
            effect(json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"}))
        }
        1 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        2 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        3 => effect(json!({"type": "say", "text": "decided"})),
        _ => done(),
    });
    let fields = json!({"beforeLLM": {"$fn": true}});
    let mut desk = TestSession::new(fields, &[("asking", flow)]);
    route_on_start(&mut desk);
    desk.say("start asking");
    let run = desk.change_code();
    desk.say("7");
    assert_eq!(desk.state().hitl_mode(), None);
    desk.restore_code();
    settle(&mut desk, &run, DivergenceAction::Retry).expect("parked");
    let attached = desk.state().attached_escalation();
    assert!(attached.is_some_and(|escalation| !escalation.detached));
    desk.say("7");
    desk.resolve(true, "ana").expect("open");
    assert_eq!(desk.sent.last().map(String::as_str), Some("decided"));
}

/// Z-203 (half: an answer given for the user survives a divergence), Z-216
#[test]
fn answer_for_the_user_survives_the_divergence_of_its_turn() {
    let (mut desk, run) = changed_desk(json!({}));
    let interrupt = desk
        .state()
        .flow()
        .and_then(|flow| flow.pause())
        .expect("it asks");
    let request = AdminRequest::AnswerForUser {
        interrupt: interrupt.interrupt_id().clone(),
        value: json!("9"),
    };
    desk.act("ana", request).expect("open");
    assert!(desk.state().flow().is_none(), "it is parked");
    desk.restore_code();
    settle(&mut desk, &run, DivergenceAction::Retry).expect("parked");
    assert_eq!(desk.sent.last().map(String::as_str), Some("x=9"));
}
