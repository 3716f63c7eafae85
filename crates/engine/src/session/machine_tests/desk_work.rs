//! Desk work: claims, releases, assignments, queues, and the time of a claimed escalation.

use super::escalations::waiting_desk_with;
use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect};
use crate::session::SessionRefusal;
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, DeskAction, EscalationRecord, EscalationStatus, FlowRecord,
    SessionEventBody as Body, SessionReply,
};

pub(super) fn escalation(desk: &TestSession) -> &EscalationRecord {
    desk.state().escalations().next().expect("an escalation")
}

fn act(
    desk: &mut TestSession,
    by: &str,
    action: DeskAction,
) -> Result<SessionReply, SessionRefusal> {
    let escalation = escalation(desk).id.clone();
    desk.act(by, AdminRequest::Desk { escalation, action })
}

fn claim(desk: &mut TestSession, by: &str) -> Result<SessionReply, SessionRefusal> {
    act(desk, by, DeskAction::Claim)
}

fn release(desk: &mut TestSession, by: &str) {
    act(desk, by, DeskAction::Release).expect("released");
}

fn assign(desk: &mut TestSession, by: &str, to: &str) -> Result<SessionReply, SessionRefusal> {
    act(desk, by, DeskAction::Assign { to: to.to_owned() })
}

fn stopping_desk() -> TestSession {
    waiting_desk_with(json!({"hitl": {"escalationDefaults": {"claimStopsTimeout": true}}}))
}

/// Z-238 (half: one claim wins; a repeated one changes nothing)
#[test]
fn one_claim_wins() {
    let mut desk = waiting_desk_with(json!({}));
    claim(&mut desk, "ana").expect("nobody has it");
    let claimed_at = desk.now;
    assert_eq!(escalation(&desk).assignee.as_deref(), Some("ana"));
    assert_eq!(escalation(&desk).claimed_at, Some(claimed_at));
    desk.now = desk.now.plus_ms(1_000);
    let events = desk.events.len();
    claim(&mut desk, "ana").expect("it is hers");
    assert_eq!(desk.events.len(), events);
    match claim(&mut desk, "ben") {
        Err(SessionRefusal::EscalationClaimed(holder)) => {
            assert_eq!(
                (holder.assignee.as_str(), holder.claimed_at),
                ("ana", Some(claimed_at))
            );
        }
        other => panic!("{other:?}"),
    }
    // Deciding does not need the claim.
    desk.resolve(true, "ben").expect("open");
    assert_eq!(escalation(&desk).status, EscalationStatus::Resolved);
    for action in [
        DeskAction::Claim,
        DeskAction::Release,
        DeskAction::Assign { to: "eva".into() },
    ] {
        let late = act(&mut desk, "ana", action);
        assert!(
            matches!(late, Err(SessionRefusal::AlreadyResolved(_))),
            "{late:?}"
        );
    }
}

/// Z-238 (half: release and assignment)
#[test]
fn released_escalation_can_be_claimed_and_an_assigned_one_only_by_its_assignee() {
    let mut desk = waiting_desk_with(json!({}));
    let events = desk.events.len();
    release(&mut desk, "ana");
    assert_eq!(desk.events.len(), events, "nobody had it");
    claim(&mut desk, "ana").expect("nobody has it");
    release(&mut desk, "ana");
    assert_eq!(
        (&escalation(&desk).assignee, escalation(&desk).claimed_at),
        (&None, None)
    );
    claim(&mut desk, "ben").expect("nobody has it");
    // Somebody with the right gives it to somebody else, who has to claim it.
    assign(&mut desk, "ana", "eva").expect("allowed");
    assert_eq!(escalation(&desk).assignee.as_deref(), Some("eva"));
    assert_eq!(escalation(&desk).claimed_at, None);
    match claim(&mut desk, "ben") {
        Err(SessionRefusal::EscalationClaimed(holder)) => {
            assert_eq!((holder.assignee.as_str(), holder.claimed_at), ("eva", None));
        }
        other => panic!("{other:?}"),
    }
    let events = desk.events.len();
    assign(&mut desk, "ana", "eva").expect("allowed");
    assert_eq!(desk.events.len(), events, "it is hers already");
    claim(&mut desk, "eva").expect("it was assigned to her");
    assert_eq!(escalation(&desk).claimed_at, Some(desk.now));
}

/// Z-238 (half: each names the actor, the escalation and its flow in the log)
#[test]
fn desk_work_is_in_the_log_with_its_actor() {
    let mut desk = waiting_desk_with(json!({}));
    let run = desk.state().flow().expect("a flow").run_id().clone();
    claim(&mut desk, "ana").expect("open");
    assign(&mut desk, "ana", "ben").expect("open");
    release(&mut desk, "eva");
    let done: Vec<(String, &str)> = desk
        .log
        .iter()
        .filter_map(|event| {
            let name = match &event.event.body {
                Body::EscalationClaimed { .. } => "claimed",
                Body::EscalationAssigned { .. } => "assigned",
                Body::EscalationReleased { .. } => "released",
                _ => return None,
            };
            let flow = event.event.flow.as_ref().map(|flow| &flow.flow_run_id);
            assert_eq!(flow, Some(&run));
            let actor = event.event.actor.as_ref().expect("an actor");
            Some((actor.id.clone(), name))
        })
        .collect();
    let expected = [("ana", "claimed"), ("ana", "assigned"), ("eva", "released")];
    assert_eq!(done, expected.map(|(by, name)| (by.to_owned(), name)));
}

/// Nobody gets work that they may not finish.
#[test]
fn only_approvers_claim_and_are_assigned_where_they_are_named() {
    let two = code(|step, _, _| match step {
        0 => effect(
            json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r",
            "approvers": ["ana", "ben"]}),
        ),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        _ => done(),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("two", two)]);
    route_on_start(&mut desk);
    desk.say("start two");
    assert_eq!(claim(&mut desk, "eva"), Err(SessionRefusal::NotAnApprover));
    assert_eq!(
        assign(&mut desk, "ana", "eva"),
        Err(SessionRefusal::NotAnApprover)
    );
    assign(&mut desk, "eva", "ben").expect("he may decide");
    claim(&mut desk, "ben").expect("it was assigned to him");
}

/// Z-238 (half: a claimed escalation does not time out where a claim stops the time, also not by the flow's wait)
#[test]
fn claim_stops_the_time_and_release_continues_the_rest() {
    let mut desk = stopping_desk();
    let deadline = escalation(&desk).deadline.expect("a deadline");
    desk.wait_seconds(3_600);
    claim(&mut desk, "ana").expect("nobody has it");
    assert_eq!(escalation(&desk).deadline, None);
    assert_eq!(waits_until(&desk), None);
    assert_eq!(shown_deadline(&desk), None);
    assert!(desk.state().required_timers().is_empty());
    desk.wait_seconds(30 * 86_400);
    assert!(escalation(&desk).is_open());
    release(&mut desk, "ana");
    let moved = deadline.plus_ms(30 * 86_400_000);
    assert_eq!(escalation(&desk).deadline, Some(moved));
    assert_eq!(waits_until(&desk), Some(moved));
    assert_eq!(shown_deadline(&desk), Some(moved));
    desk.wait_seconds(86_400 - 3_600);
    assert_eq!(escalation(&desk).status, EscalationStatus::TimedOut);
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("Refund not approved.")
    );
}

/// Without the setting a claim says only who works on it.
#[test]
fn claim_leaves_the_time_alone_unless_configured() {
    let mut desk = waiting_desk_with(json!({}));
    let deadline = escalation(&desk).deadline;
    claim(&mut desk, "ana").expect("nobody has it");
    assert_eq!(escalation(&desk).deadline, deadline);
    desk.wait_seconds(86_401);
    assert_eq!(escalation(&desk).status, EscalationStatus::TimedOut);
    let paused = |record: &FlowRecord| matches!(record, FlowRecord::Paused { .. });
    let pauses = desk.journal.iter().filter(|(_, record)| paused(record));
    assert_eq!(pauses.count(), 2, "the question and the wait");
}

/// An assignment ends the claim, so the time runs again.
#[test]
fn assignment_to_somebody_else_continues_the_time() {
    let mut desk = stopping_desk();
    let deadline = escalation(&desk).deadline.expect("a deadline");
    claim(&mut desk, "ana").expect("nobody has it");
    desk.wait_seconds(60);
    assign(&mut desk, "ana", "ben").expect("allowed");
    assert_eq!(escalation(&desk).deadline, Some(deadline.plus_ms(60_000)));
    claim(&mut desk, "ben").expect("it was assigned to him");
    desk.wait_seconds(86_401);
    assert!(escalation(&desk).is_open());
    desk.resolve(true, "ben").expect("open");
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("approved, 0 queued")
    );
}

/// A deadline that has passed comes before a claim that arrives now.
#[test]
fn claim_after_the_deadline_is_too_late() {
    let mut desk = stopping_desk();
    desk.now = desk.now.plus_ms(86_400_001);
    let late = claim(&mut desk, "ana");
    assert!(
        matches!(late, Err(SessionRefusal::AlreadyResolved(_))),
        "{late:?}"
    );
}

/// The flow's own time for its wait keeps its own length.
#[test]
fn shorter_wait_of_the_flow_stops_and_continues_too() {
    for claimed_before_the_wait in [false, true] {
        let mut desk = desk_that_waits(60, claimed_before_the_wait);
        if !claimed_before_the_wait {
            desk.wait_seconds(20);
            claim(&mut desk, "ana").expect("nobody has it");
        }
        desk.wait_seconds(1_000);
        assert!(escalation(&desk).is_open());
        release(&mut desk, "ana");
        let left = if claimed_before_the_wait { 60 } else { 40 };
        assert_eq!(waits_until(&desk), Some(desk.now.plus_ms(left * 1_000)));
        assert_eq!(shown_deadline(&desk), waits_until(&desk));
        desk.wait_seconds(left);
        assert_eq!(escalation(&desk).status, EscalationStatus::TimedOut);
        assert!(desk.state().flow().is_none());
    }
}

/// A flow that says what it does before it waits, so that somebody can be faster.
fn desk_that_waits(seconds: u64, claimed_before_the_wait: bool) -> TestSession {
    let flow = code(move |step, _, _| match step {
        0 => {
            effect(json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"}))
        }
        1 => effect(json!({"type": "tool", "name": "note", "args": {}})),
        2 => effect(
            json!({"type": "interrupt.wait", "waitFor": "admin_resolution",
            "timeoutSeconds": seconds}),
        ),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "tools": [{"name": "note", "kind": "record"}],
        "hitl": {"escalationDefaults": {"claimStopsTimeout": true}}});
    let mut desk = TestSession::new(config, &[("waits", flow)]);
    route_on_start(&mut desk);
    if claimed_before_the_wait {
        desk.held = vec!["tool"];
        desk.say("start waits");
        claim(&mut desk, "ana").expect("nobody has it");
        desk.held.clear();
        desk.perform_all();
    } else {
        desk.say("start waits");
    }
    assert_eq!(desk.paused_on(), Some("admin_resolution"));
    desk
}

/// Z-238 (half: the queue of an escalation is the flow's or the agent's)
#[test]
fn escalation_belongs_to_the_queue_of_its_flow_or_its_agent() {
    let escalates = |queue: Value| {
        code(move |step, _, _| match step {
            0 => effect(
                json!({"type": "interrupt.escalate", "mode": "async_resolution",
                "reason": "r", "queue": queue, "assignee": "ben"}),
            ),
            _ => done(),
        })
    };
    for (of_flow, of_agent, expected) in [
        (json!("money"), json!("front"), Some("money")),
        (Value::Null, json!("front"), Some("front")),
        (Value::Null, Value::Null, None),
    ] {
        let config = json!({"beforeLLM": {"$fn": true},
            "hitl": {"escalationDefaults": {"queue": of_agent}}});
        let mut desk = TestSession::new(config, &[("calls", escalates(of_flow))]);
        route_on_start(&mut desk);
        desk.say("start calls");
        assert_eq!(escalation(&desk).queue.as_deref(), expected);
        assert_eq!(escalation(&desk).assignee.as_deref(), Some("ben"));
        assert_eq!(escalation(&desk).claimed_at, None);
    }
    let config =
        json!({"hitl": {"humanKeyword": "human", "escalationDefaults": {"queue": "front"}}});
    let mut desk = TestSession::new(config, &[]);
    desk.say("human");
    assert_eq!(escalation(&desk).queue.as_deref(), Some("front"));
}

fn waits_until(desk: &TestSession) -> Option<tandem_record::Timestamp> {
    desk.state().flow()?.pause()?.deadline()
}

/// The deadline that readers of the flow's run and of the inbox see.
fn shown_deadline(desk: &TestSession) -> Option<tandem_record::Timestamp> {
    let run = desk.state().flow().expect("a flow").run_id();
    let questions = desk.flow_runs[run].open_questions();
    questions.first().expect("a question").deadline
}
