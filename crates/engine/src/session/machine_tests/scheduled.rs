//! Turns that schedules begin: through the pipeline, without disturbing anybody, and what schedules are told.

use super::harness::{Code, TestSession, code, done, effect, text_of, value};
use crate::session::ProgramStep;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use tandem_record::Timestamp;
use tandem_record::conversation::{
    AdminRequest, CodeCall, CodeOutcome, FlowFailure, FlowOrigin, FlowRecord, ProfileChange,
    ResponseSource, ScheduledActiveFlow, ScheduledOutcome, ScheduledTurn, SessionCommand,
    SessionEventBody as Body, SessionReply, TurnTrigger,
};

fn saying(text: &'static str) -> Code {
    code(move |step, _, _| match step {
        0 => effect(json!({"type": "say", "text": text})),
        _ => done(),
    })
}

fn asking() -> Code {
    code(|step, with, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?"})),
        1 => effect(json!({"type": "say", "text": format!("x={}", text_of(with))})),
        _ => done(),
    })
}

fn sleeping() -> Code {
    code(|step, _, _| match step {
        0 => {
            effect(json!({"type": "interrupt.wait", "waitFor": "timeout", "timeoutSeconds": 3600}))
        }
        1 => effect(json!({"type": "say", "text": "awake"})),
        _ => done(),
    })
}

fn confirming() -> Code {
    code(|step, _, _| match step {
        0 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        _ => done(),
    })
}

fn throwing() -> Code {
    code(|_, _, _| {
        ProgramStep::Failed(FlowFailure {
            code: "exception".to_owned(),
            message: "no way".to_owned(),
            details: None,
        })
    })
}

fn desk(config: Value) -> TestSession {
    let mut desk = TestSession::new(
        config,
        &[
            ("tick", saying("tick")),
            ("other", saying("other")),
            ("asking", asking()),
            ("sleeping", sleeping()),
            ("confirming", confirming()),
            ("throwing", throwing()),
        ],
    );
    desk.say("hi");
    desk.sent.clear();
    desk
}

fn turn(flow: &str, number: u32) -> ScheduledTurn {
    ScheduledTurn {
        schedule_id: "sch-1".into(),
        run_id: format!("srun-{number}").into(),
        ordinal: 0,
        dedup_id: format!("schedule:sch-1:{number}:u1").into(),
        flow_id: flow.into(),
        trigger_type: "cron".to_owned(),
        scheduled_for: Timestamp(1_800_000_000_000),
        attempt: 1,
        on_active_flow: ScheduledActiveFlow::Skip,
        campaign_id: None,
        segment_id: None,
        metadata: json!({"note": "a"}).as_object().cloned(),
        input: Some(json!({"n": 1})),
    }
}

fn begin(desk: &mut TestSession, turn: ScheduledTurn) -> u64 {
    let turn = Box::new(turn);
    let reply = desk.command(SessionCommand::BeginScheduled { turn });
    desk.perform_all();
    match reply {
        Ok(SessionReply::Accepted { turn }) => turn,
        other => panic!("it is not accepted: {other:?}"),
    }
}

/// What the schedule was told: outcome and reason.
fn told(desk: &TestSession) -> Vec<(ScheduledOutcome, Option<&str>)> {
    let reports = desk.scheduled.iter();
    reports
        .map(|report| (report.outcome, report.reason.as_deref()))
        .collect()
}

fn hook(desk: &mut TestSession, path: &str, answer: impl Fn(&CodeCall) -> CodeOutcome + 'static) {
    desk.functions.insert(path.to_owned(), Box::new(answer));
}

/// Z-162 (half: the turn passes the pipeline), Z-165 (half: a flow that ended is a success)
#[test]
fn scheduled_turn_starts_its_flow_and_reports_success() {
    let mut desk = desk(json!({}));
    let calls = desk.model_calls.len();
    let number = begin(&mut desk, turn("tick", 1));
    assert_eq!(desk.sent, ["tick"]);
    assert_eq!(desk.model_calls.len(), calls, "the router is not run");
    assert_eq!(told(&desk), [(ScheduledOutcome::Success, None)]);
    let report = &desk.scheduled[0];
    assert_eq!(
        (report.turn, report.user_external_id.as_str()),
        (number, "u1")
    );
    let is_scheduled = |body: &Body| {
        matches!(body, Body::TurnStarted { trigger: TurnTrigger::Scheduled, message_ids, .. }
            if message_ids[0].as_str() == "schedule:sch-1:1:u1")
    };
    assert_eq!(desk.count(is_scheduled), 1);
    let is_started = |body: &Body| {
        matches!(body, Body::FlowStarted { origin: FlowOrigin::Schedule, input, .. }
            if *input == Some(json!({"n": 1})))
    };
    assert_eq!(desk.count(is_started), 1);
}

/// Z-164
#[test]
fn flow_sees_the_schedule_its_input_and_no_message() {
    let mut desk = desk(json!({}));
    begin(&mut desk, turn("tick", 1));
    let start = desk.journal.iter().find_map(|(_, record)| match record {
        FlowRecord::Started(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.expect("the flow began");
    assert_eq!(start.input, Some(json!({"n": 1})));
    assert_eq!(start.context["inbound"], Value::Null);
    assert_eq!(start.context["trigger"], "scheduled");
    let schedule = json!({"scheduleId": "sch-1", "triggerType": "cron", "runAttempt": 1,
        "scheduledFor": Timestamp(1_800_000_000_000).rfc3339(), "flowId": "tick",
        "metadata": {"note": "a"}});
    assert_eq!(start.context["schedule"], schedule);
}

/// Z-165 (half: the outcome is decided when the flow first pauses, or fails), Z-175 (half: a flow that fails is a failed outcome)
#[test]
fn outcome_is_what_the_flow_comes_to_first() {
    let mut desk = desk(json!({}));
    begin(&mut desk, turn("asking", 1));
    assert_eq!(told(&desk), [(ScheduledOutcome::Success, None)]);
    assert_eq!(desk.paused_on(), Some("ask"));
    assert_eq!(desk.say("7"), ["x=7"], "it is a flow like any other");
    begin(&mut desk, turn("throwing", 2));
    assert_eq!(
        told(&desk)[1],
        (ScheduledOutcome::Failed, Some("exception"))
    );
    begin(&mut desk, turn("gone", 3));
    assert_eq!(
        told(&desk)[2],
        (ScheduledOutcome::Failed, Some("unknown_flow"))
    );
}

/// Z-165 (half: a cancelled send is a success), Z-162 (half: the hook before a response), Z-122 (half: the hook before a response sees scheduled texts)
#[test]
fn cancelled_text_is_a_success() {
    let mut desk = desk(json!({"beforeResponse": {"$fn": true}}));
    let seen = Rc::new(RefCell::new(Value::Null));
    let note = Rc::clone(&seen);
    hook(&mut desk, "beforeResponse", move |call| {
        *note.borrow_mut() = call.args[0].clone();
        value(json!({"action": "cancel"}))
    });
    begin(&mut desk, turn("tick", 1));
    assert!(desk.sent.is_empty());
    assert_eq!(told(&desk), [(ScheduledOutcome::Success, None)]);
    let seen = seen.borrow();
    assert_eq!(
        (&seen["source"], &seen["schedule"]["scheduleId"]),
        (&json!("scheduled"), &json!("sch-1"))
    );
}

/// Z-163 (half: the flow is preselected without a router, the hook may decide otherwise, an id is taken once)
#[test]
fn hook_before_the_model_may_decide_otherwise() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    let answers = [
        (
            json!({"action": "continue"}),
            vec!["tick"],
            (ScheduledOutcome::Success, None),
        ),
        (
            json!({"action": "skip_llm", "draftReply": "Soon."}),
            vec!["Soon."],
            (ScheduledOutcome::Success, None),
        ),
        (
            json!({"action": "route_flow", "flowId": "other"}),
            vec!["other"],
            (ScheduledOutcome::Success, None),
        ),
        (
            json!({"action": "end", "reason": "quiet"}),
            vec![],
            (ScheduledOutcome::Skipped, Some("policy_end")),
        ),
    ];
    let calls = desk.model_calls.len();
    for (number, (answer, texts, outcome)) in answers.into_iter().enumerate() {
        hook(&mut desk, "beforeLLM", move |call| {
            assert_eq!(call.args[0]["trigger"], "scheduled");
            assert_eq!(call.args[0]["schedule"]["scheduleId"], "sch-1");
            assert_eq!(call.args[0]["text"], "");
            value(answer.clone())
        });
        desk.sent.clear();
        begin(&mut desk, turn("tick", number as u32));
        assert_eq!(desk.sent, texts);
        assert_eq!(told(&desk).pop(), Some(outcome));
    }
    assert_eq!(
        desk.model_calls.len(),
        calls,
        "no router and no model was asked"
    );
    // The same occurrence takes place once.
    let events = desk.events.len();
    desk.held.push("session.continue");
    let command = |number| SessionCommand::BeginScheduled {
        turn: Box::new(turn("tick", number)),
    };
    hook(&mut desk, "beforeLLM", |_| CodeOutcome::default());
    desk.held.push("session.code");
    let first = desk.command(command(9)).expect("accepted");
    let after_first = desk.events.len();
    assert!(after_first > events);
    assert_eq!(desk.command(command(9)).expect("accepted"), first);
    assert_eq!(desk.events.len(), after_first);
}

/// Z-132 (half: a scheduled turn is scheduled, also when a flow speaks),
/// Z-136 (half: scheduled turns add their schedule, and campaigns their recipient)
#[test]
fn responses_of_scheduled_turns_name_the_schedule() {
    let mut desk = desk(json!({"onResponse": {"$fn": true}}));
    let told = Rc::new(RefCell::new(Value::Null));
    let note = Rc::clone(&told);
    hook(&mut desk, "onResponse", move |call| {
        *note.borrow_mut() = call.args[1].clone();
        value(Value::Null)
    });
    let of_campaign = ScheduledTurn {
        campaign_id: Some("spring".to_owned()),
        segment_id: Some("tag:vip".to_owned()),
        ..turn("tick", 1)
    };
    begin(&mut desk, of_campaign);
    let sources: Vec<ResponseSource> = desk
        .log
        .iter()
        .filter(|event| event.event.turn == Some(2))
        .filter_map(|event| event.event.response.as_ref())
        .map(|meta| {
            let schedule = meta.schedule.as_ref().expect("it names the schedule");
            assert_eq!(schedule.schedule_id.as_str(), "sch-1");
            assert_eq!(schedule.segment_id.as_deref(), Some("tag:vip"));
            assert_eq!(schedule.recipient_user_external_id.as_deref(), Some("u1"));
            meta.source
        })
        .collect();
    assert!(sources.len() > 2);
    assert!(
        sources
            .iter()
            .all(|source| *source == ResponseSource::Scheduled)
    );
    let told = told.borrow();
    assert_eq!(
        (&told["source"], &told["schedule"]["campaignId"]),
        (&json!("scheduled"), &json!("spring"))
    );
}

/// Z-166 (half: an open confirmation cancels the run, judged in the commit that would start the turn)
#[test]
fn open_confirmation_cancels_the_run() {
    let mut desk = desk(json!({}));
    begin(&mut desk, turn("confirming", 1));
    assert_eq!(desk.state().hitl_mode(), Some("pending_confirm"));
    desk.sent.clear();
    begin(&mut desk, turn("tick", 2));
    assert!(desk.sent.is_empty());
    assert_eq!(
        told(&desk)[1],
        (ScheduledOutcome::CanceledHitl, Some("hitl_active"))
    );
    assert_eq!(desk.paused_on(), Some("confirm"), "the question stays open");
    desk.say("yes");
    assert!(desk.sent.is_empty(), "the run is not made up for");
    begin(&mut desk, turn("tick", 3));
    assert_eq!(desk.sent, ["tick"]);
}

/// Z-166 (half: judged under the session's lock), Z-16 (half: scheduled turns wait for their place)
#[test]
fn scheduled_turn_waits_for_its_place_and_is_judged_then() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    hook(&mut desk, "beforeLLM", |call| {
        match call.args[0]["text"].as_str() {
            Some("sure") => value(json!({"action": "route_flow", "flowId": "confirming"})),
            _ => CodeOutcome::default(),
        }
    });
    desk.held.push("session.code");
    desk.receive("sure");
    desk.perform_all();
    let accepted = Box::new(turn("tick", 1));
    desk.command(SessionCommand::BeginScheduled { turn: accepted })
        .expect("it is accepted");
    assert!(told(&desk).is_empty());
    desk.held.clear();
    desk.perform_all();
    assert_eq!(
        told(&desk),
        [(ScheduledOutcome::CanceledHitl, Some("hitl_active"))]
    );
    assert_eq!(desk.sent, ["Sure?"]);
}

/// Z-167
#[test]
fn flow_that_asks_or_sleeps_is_not_disturbed_unless_the_schedule_says_so() {
    for (flow, pause) in [("asking", "ask"), ("sleeping", "timeout")] {
        let mut desk = desk(json!({}));
        begin(&mut desk, turn(flow, 1));
        begin(&mut desk, turn("tick", 2));
        assert_eq!(
            told(&desk)[1],
            (ScheduledOutcome::Skipped, Some("flow_active"))
        );
        assert_eq!(desk.paused_on(), Some(pause));
        let preempting = ScheduledTurn {
            on_active_flow: ScheduledActiveFlow::Preempt,
            ..turn("tick", 3)
        };
        desk.sent.clear();
        begin(&mut desk, preempting);
        assert_eq!(desk.sent, ["tick"], "{flow}");
        assert_eq!(told(&desk)[2], (ScheduledOutcome::Success, None));
        assert_eq!(desk.flow_ends()[0].as_deref(), Some("preempted"));
        assert_eq!(desk.paused_on(), None);
    }
}

/// Z-166 (half: a schedule that preempts leaves a person's decision alone)
#[test]
fn confirmation_is_not_preempted() {
    let mut desk = desk(json!({}));
    begin(&mut desk, turn("confirming", 1));
    let preempting = ScheduledTurn {
        on_active_flow: ScheduledActiveFlow::Preempt,
        ..turn("tick", 2)
    };
    begin(&mut desk, preempting);
    assert_eq!(
        told(&desk)[1],
        (ScheduledOutcome::CanceledHitl, Some("hitl_active"))
    );
    assert_eq!(desk.paused_on(), Some("confirm"));
}

/// Z-242 (half: users who opted out get no scheduled turn)
#[test]
fn user_who_opted_out_is_left_alone() {
    let mut desk = desk(json!({}));
    let change = ProfileChange {
        proactive: Some(false),
        ..ProfileChange::default()
    };
    desk.command(SessionCommand::ChangeProfile(Box::new(change)))
        .expect("it changes");
    begin(&mut desk, turn("tick", 1));
    assert!(desk.sent.is_empty());
    assert_eq!(
        told(&desk),
        [(ScheduledOutcome::Skipped, Some("opted_out"))]
    );
}

#[test]
fn silent_agent_makes_no_scheduled_turn() {
    let mut desk = desk(json!({"agentMode": "off"}));
    begin(&mut desk, turn("tick", 1));
    assert_eq!(
        told(&desk),
        [(ScheduledOutcome::Skipped, Some("agent_off"))]
    );
}

#[test]
fn end_of_the_session_is_told_to_schedules_that_wait() {
    let mut desk = desk(json!({"beforeLLM": {"$fn": true}}));
    desk.held.push("session.code");
    desk.receive("hello");
    desk.perform_all();
    let waiting = Box::new(turn("tick", 1));
    desk.command(SessionCommand::BeginScheduled { turn: waiting })
        .expect("it is accepted");
    desk.act("ana", AdminRequest::EndSession).expect("it ends");
    desk.perform_all();
    assert_eq!(
        told(&desk),
        [(ScheduledOutcome::Skipped, Some("session_ended"))]
    );
    let late = Box::new(turn("tick", 2));
    let refused = desk.command(SessionCommand::BeginScheduled { turn: late });
    assert!(refused.is_err());
}

/// Z-260 (half: a session's activity moves with scheduled turns, that of messages does not)
#[test]
fn scheduled_turn_is_activity_of_the_session_and_no_message() {
    let mut desk = desk(json!({}));
    let (received, active) = (
        desk.state().last_received_at(),
        desk.state().last_active_at(),
    );
    desk.now = desk.now.plus_ms(60_000);
    begin(&mut desk, turn("tick", 1));
    assert_eq!(desk.state().last_received_at(), received);
    assert!(desk.state().last_active_at() > active);
}
