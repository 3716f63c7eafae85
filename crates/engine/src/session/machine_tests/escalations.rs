//! Escalations: who decides, what the user may do meanwhile, deadlines.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, text_of};
use crate::session::{Resume, SessionRefusal};
use serde_json::{Value, json};
use tandem_record::conversation::{EscalationStatus, SessionEventBody as Body};

/// The refund sample of the specification, for amounts that need a review.
fn refund() -> Code {
    code(|step, with, _| match step {
        0 => effect(json!({"type": "ask", "key": "amount", "text": "What refund amount?"})),
        1 => effect(json!({
            "type": "interrupt.escalate", "mode": "async_resolution",
            "reason": "High refund amount requires review", "priority": "high",
            "metadata": {"amount": text_of(with)},
        })),
        2 => effect(json!({
            "type": "interrupt.wait", "waitFor": "admin_resolution", "timeoutSeconds": 86_400,
        })),
        3 => {
            let Resume::Value(Some(resolution)) = with else {
                panic!("a resolution is a value: {with:?}");
            };
            let text = match resolution["approved"] == json!(true) {
                true => format!("approved, {} queued", queued(resolution)),
                false => "Refund not approved.".to_owned(),
            };
            effect(json!({"type": "say", "text": text}))
        }
        _ => done(),
    })
}

fn queued(resolution: &Value) -> usize {
    resolution["queuedInbound"].as_array().map_or(0, Vec::len)
}

fn waiting_desk(hitl: Value) -> TestSession {
    waiting_desk_with(json!({ "hitl": hitl }))
}

/// A desk where a refund of 700 waits for an admin.
pub(super) fn waiting_desk_with(more: Value) -> TestSession {
    let mut config = json!({"beforeLLM": {"$fn": true}});
    let fields = config.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    let mut desk = TestSession::new(config, &[("refund", refund())]);
    route_on_start(&mut desk);
    desk.say("start refund");
    desk.say("700");
    assert_eq!(desk.paused_on(), Some("admin_resolution"));
    assert_eq!(desk.state().hitl_mode(), Some("pending_admin_resolution"));
    desk
}

/// Z-76 (half: record, state and events), Z-77 (half: the effect resumes at once),
/// Z-83 (half: the payload of a resolution)
#[test]
fn resolution_resumes_the_flow_that_waits() {
    let mut desk = waiting_desk(json!({}));
    desk.resolve(true, "ana").expect("open");
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("approved, 0 queued")
    );
    assert_eq!(desk.state().hitl_mode(), None);
}

/// Z-152 (half: first resolution wins and repeating it is harmless)
#[test]
fn first_resolution_wins_and_repeating_it_is_harmless() {
    let mut desk = waiting_desk(json!({}));
    desk.resolve(true, "ana").expect("open");
    let escalation = desk.state().escalations().next().expect("one").id.clone();
    let sent = desk.sent.len();
    let again = |desk: &mut TestSession, approved, by: &str| {
        let decision = tandem_record::conversation::EscalationDecision {
            approved,
            message: None,
            action_data: None,
            claimed_by: None,
        };
        let request = tandem_record::conversation::AdminRequest::Resolve {
            escalation: Some(escalation.clone()),
            decision,
        };
        let actor = tandem_record::conversation::AdminActor {
            id: by.to_owned(),
            role: None,
            channel: "ui_api".to_owned(),
            metadata: None,
        };
        desk.command(tandem_record::conversation::SessionCommand::Act { actor, request })
    };
    assert!(again(&mut desk, true, "ana").is_ok());
    match again(&mut desk, false, "ben") {
        Err(SessionRefusal::AlreadyResolved(closed)) => {
            assert_eq!(closed.decided_by.as_deref(), Some("ana"));
        }
        other => panic!("{other:?}"),
    }
    desk.perform_all();
    assert_eq!(desk.sent.len(), sent);
}

/// The timer and the decision never advance the flow twice.
/// Z-84 (half: a late decision conflicts), Z-190 (half: the timer and the decision)
#[test]
fn decision_after_the_deadline_conflicts_even_before_the_timer_fired() {
    let mut desk = waiting_desk(json!({}));
    desk.now = desk.now.plus_ms(86_400_001);
    let id = desk.state().escalations().next().expect("one").id.clone();
    let decision = tandem_record::conversation::EscalationDecision {
        approved: true,
        message: None,
        action_data: None,
        claimed_by: None,
    };
    let request = tandem_record::conversation::AdminRequest::Resolve {
        escalation: Some(id),
        decision,
    };
    let late = desk.act("ana", request);
    assert!(
        matches!(late, Err(SessionRefusal::AlreadyResolved(_))),
        "{late:?}"
    );
    desk.wait_seconds(0);
    assert_eq!(
        desk.count(|e| matches!(e, Body::InterruptResumed { .. })),
        1
    );
    assert_eq!(desk.count(|e| matches!(e, Body::InterruptLate { .. })), 0);
    assert_eq!(
        desk.count(|e| matches!(e, Body::EscalationTimedOut { .. })),
        1
    );
}

/// Z-263 (half: replayed message that meets a later question waits for the end of that run)
#[test]
fn replayed_message_that_meets_a_later_question_waits_for_the_end_of_that_run() {
    let again = code(|step, _, _| match step {
        0 => {
            effect(json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"}))
        }
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        2 => effect(json!({"type": "handoff", "to": "sure"})),
        _ => done(),
    });
    let sure = code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true},
        "hitl": {"asyncPendingPolicy": {"behavior": "queue", "maxQueued": 1}}});
    let mut desk = TestSession::new(config, &[("again", again), ("sure", sure)]);
    route_on_start(&mut desk);
    desk.say("start again");
    desk.say("yes");
    desk.resolve(true, "ana").expect("open");
    assert_eq!(desk.paused_on(), Some("confirm"), "an old yes is no answer");
    assert_eq!(desk.sent, ["Sure?"]);
    desk.say("no");
    assert_eq!(desk.sent, ["Sure?", "model speaks"]);
    assert_eq!(
        desk.model_calls.iter().map(last_text).collect::<Vec<_>>(),
        ["yes"]
    );
}

/// Z-33 (half: acknowledgements are throttled)
#[test]
fn acknowledgement_is_not_repeated_within_its_interval() {
    let mut desk = waiting_desk(json!({"asyncPendingPolicy": {
        "ackText": "Still looking.", "ackMinIntervalSeconds": 60}}));
    assert_eq!(desk.say("any news?"), ["Still looking."]);
    assert!(desk.say("hello?").is_empty());
    desk.wait_seconds(61);
    assert_eq!(desk.say("hello??"), ["Still looking."]);
}

/// Z-82 (half: the deadline of the escalation), Z-84 (half: the deadline of the escalation)
#[test]
fn deadline_refuses_and_a_late_decision_conflicts() {
    let mut desk = waiting_desk(json!({}));
    desk.wait_seconds(86_401);
    assert_eq!(
        desk.sent.last().map(String::as_str),
        Some("Refund not approved.")
    );
    let escalation = desk.state().escalations().next().expect("one");
    assert_eq!(escalation.status, EscalationStatus::TimedOut);
    assert_eq!(
        desk.resolve(true, "ana"),
        Err(SessionRefusal::EscalationNotFound)
    );
}

/// Z-201 (half: also between turns an event names its flow, the turn it causes and the actor)
#[test]
fn decision_of_an_admin_names_the_turn_it_causes() {
    let mut desk = waiting_desk(json!({}));
    let run = desk.state().flow().expect("a flow").run_id().clone();
    let pause = desk
        .state()
        .flow()
        .and_then(|f| f.pause())
        .expect("it waits");
    let waits_at = Some(pause.interrupt_id().clone());
    let record = desk.state().escalations().next().expect("one");
    assert_eq!(record.interrupt_id, waits_at);
    desk.resolve(true, "ana").expect("open");
    let log = desk.log.iter().map(|recorded| &recorded.event);
    let mut resolved = log.filter(|e| matches!(e.body, Body::EscalationResolved { .. }));
    let event = resolved.next().expect("resolved");
    assert_eq!(event.actor.as_ref().map(|a| a.id.as_str()), Some("ana"));
    assert_eq!(event.flow.as_ref().map(|f| &f.flow_run_id), Some(&run));
    let log = desk.log.iter().map(|recorded| &recorded.event);
    let mut resumed = log.filter(|e| matches!(e.body, Body::InterruptResumed { .. }));
    assert_eq!(event.turn, resumed.next().expect("resumed").turn);
}

/// Z-33 (half: message meanwhile is stored or acknowledged)
#[test]
fn message_meanwhile_is_stored_or_acknowledged() {
    let mut desk = waiting_desk(json!({"asyncPendingPolicy": {"behavior": "noop"}}));
    assert!(desk.say("any news?").is_empty());
    let mut desk = waiting_desk(json!({"asyncPendingPolicy": {"ackText": "Still looking."}}));
    assert_eq!(desk.say("any news?"), ["Still looking."]);
    assert!(desk.model_calls.is_empty());
    assert_eq!(desk.paused_on(), Some("admin_resolution"));
}

/// Z-34 (half: queued messages come with the resolution and are replayed in order)
#[test]
fn queued_messages_come_with_the_resolution_and_are_replayed_in_order() {
    let mut desk = waiting_desk(json!({"asyncPendingPolicy": {"behavior": "queue"}}));
    desk.say("first");
    desk.say("second");
    desk.resolve(true, "ana").expect("open");
    let sent = &desk.sent[desk.sent.len() - 3..];
    assert_eq!(sent, ["approved, 2 queued", "model speaks", "model speaks"]);
    let asked: Vec<String> = desk.model_calls.iter().map(last_text).collect();
    assert_eq!(asked, ["first", "second"]);
}

fn last_text(work: &tandem_record::conversation::SessionWork) -> String {
    match work {
        tandem_record::conversation::SessionWork::Model { messages, .. } => messages
            .last()
            .map(|m| m.content.clone())
            .unwrap_or_default(),
        other => panic!("{other:?} is no model call"),
    }
}

/// Z-32 (half: route_flow), Z-119 (half: refused while a decision is pending)
#[test]
fn hook_cannot_start_a_flow_while_a_decision_is_pending() {
    let mut desk = waiting_desk(json!({}));
    assert!(desk.say("start refund").is_empty());
    assert_eq!(desk.failures("beforeLLM"), ["hitl_active"]);
    assert_eq!(desk.paused_on(), Some("admin_resolution"));
}

/// Z-15 (half: ending the session cancels the escalation)
#[test]
fn ending_the_session_cancels_the_escalation() {
    let mut desk = waiting_desk(json!({}));
    desk.say("/reset");
    let escalation = desk.state().escalations().next().expect("one");
    assert_eq!(escalation.status, EscalationStatus::Canceled);
    assert!(desk.state().required_timers().is_empty());
}

/// Z-81 (half: escalation without admins ends the flow)
#[test]
fn escalation_without_admins_ends_the_flow() {
    let config = json!({"beforeLLM": {"$fn": true}, "adminAuth": null});
    let mut desk = TestSession::new(config, &[("refund", refund())]);
    route_on_start(&mut desk);
    desk.say("start refund");
    desk.say("700");
    assert_eq!(
        desk.flow_ends(),
        [Some("escalation_unavailable".to_owned())]
    );
    assert!(
        !desk
            .events
            .iter()
            .any(|e| matches!(e, Body::EscalationCreated(_)))
    );
}

/// Z-201 (half: also what happens between turns names a turn and the flow run it is about)
#[test]
fn events_about_an_escalation_name_turn_and_flow_run() {
    let mut desk = waiting_desk(json!({}));
    desk.resolve(true, "ana").expect("open");
    let about = desk.log.iter().filter(|event| {
        matches!(
            event.event.body,
            Body::EscalationCreated(_)
                | Body::EscalationResolved { .. }
                | Body::InterruptPaused { .. }
                | Body::InterruptResumed { .. }
        )
    });
    let runs: Vec<_> = about
        .map(|event| (event.event.turn, event.event.flow.clone()))
        .collect();
    assert_eq!(runs.len(), 4);
    for (turn, flow) in runs {
        assert!(turn.is_some());
        assert_eq!(flow.expect("a flow run").flow_id.as_str(), "refund");
    }
}

/// Z-201 (half: messages turns and deliveries name the same turn)
#[test]
fn messages_turns_and_deliveries_name_the_same_turn() {
    let mut desk = TestSession::new(json!({}), &[]);
    desk.held = vec!["session.send"];
    desk.say("one");
    desk.say("two");
    desk.held.clear();
    desk.perform_all();
    let turns = |wanted: fn(&Body) -> bool| -> Vec<u64> {
        let events = desk.log.iter().filter(|event| wanted(&event.event.body));
        events.filter_map(|event| event.event.turn).collect()
    };
    assert_eq!(
        turns(|body| matches!(body, Body::MessageReceived { .. })),
        [1, 2]
    );
    assert_eq!(
        turns(|body| matches!(body, Body::TurnStarted { .. })),
        [1, 2]
    );
    assert_eq!(
        turns(|body| matches!(body, Body::ResponseSent { .. })),
        [1, 2]
    );
    assert_eq!(
        turns(|body| matches!(body, Body::ResponsePersisted { .. })),
        [1, 2]
    );
    let started = desk
        .log
        .iter()
        .find(|event| matches!(event.event.body, Body::TurnStarted { .. }))
        .expect("a turn started");
    assert_eq!(
        started.cause,
        Some(tandem_record::Cause::Event(tandem_record::Seq(1)))
    );
}

/// §10.1
#[test]
fn run_of_the_flow_waits_for_the_same_decision() {
    let mut desk = waiting_desk(json!({}));
    let run = desk.flow_runs.values().next().expect("one run").clone();
    assert_eq!(run.status(), tandem_record::RunStatus::WaitingApproval);
    let open = run.open_questions().remove(0).interrupt;
    assert_eq!(open.data["title"], "High refund amount requires review");
    assert_eq!(open.data["artifactData"]["amount"], "700");
    desk.resolve(true, "ana").expect("open");
    let run = desk.flow_runs.values().next().expect("one run");
    assert_eq!(run.status(), tandem_record::RunStatus::Completed);
    let closed = run.closed_question(&open.id).expect("it is closed");
    assert_eq!(
        (closed.outcome.as_str(), closed.decided_by()),
        ("accepted", Some("ana"))
    );
}
