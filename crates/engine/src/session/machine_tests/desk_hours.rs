//! Escalations outside opening hours: what the user is told, and how their time is counted.

use super::desk_work::escalation;
use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect};
use serde_json::{Value, json};
use tandem_record::Timestamp;
use tandem_record::conversation::{
    AdminRequest, ChatAnswer, ChatToolCall, DeskAction, EscalationStatus,
};

/// Wednesday, 2026-11-18, 10:00 UTC.
const OPEN: Timestamp = Timestamp(1_794_996_000_000);
const HOUR: u64 = 3_600_000;

fn escalates() -> Code {
    code(|step, _, _| match step {
        0 => effect(
            json!({"type": "interrupt.escalate", "mode": "async_resolution",
            "reason": "r", "timeoutSeconds": 8 * 3_600}),
        ),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        _ => done(),
    })
}

/// A desk that is open from 09:00 to 17:00 on Wednesdays and Thursdays, and what it says.
fn desk_at(now: Timestamp, more: Value) -> TestSession {
    let mut defaults =
        json!({"autoAckText": "One moment.", "outsideHoursText": "We open at nine."});
    let more = more.as_object().expect("an object").clone();
    defaults.as_object_mut().expect("an object").extend(more);
    let day = json!([["09:00", "17:00"]]);
    let config = json!({
        "beforeLLM": {"$fn": true},
        "tools": [{"name": "refund", "kind": "record", "approval": "admin"}],
        "hours": {"timezone": "UTC", "week": {"wed": day, "thu": day}},
        "hitl": {"humanKeyword": "human", "offerHuman": true, "escalationDefaults": defaults},
    });
    let mut desk = TestSession::new(config, &[("escalates", escalates())]);
    route_on_start(&mut desk);
    desk.now = now;
    desk
}

/// Z-239 (half: outside the hours another text is said, however the escalation opens)
#[test]
fn text_outside_the_hours_replaces_the_acknowledgement() {
    let call = |name: &str| ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            args: json!({}),
        }],
        ..ChatAnswer::default()
    };
    let closed = OPEN.plus_ms(8 * HOUR);
    for (now, text) in [(OPEN, "One moment."), (closed, "We open at nine.")] {
        assert_eq!(desk_at(now, json!({})).say("start escalates"), [text]);
        assert_eq!(desk_at(now, json!({})).say("human"), [text]);
        for tool in ["talk_to_human", "refund"] {
            let mut desk = desk_at(now, json!({}));
            desk.answers.push_back(Ok(call(tool)));
            assert_eq!(desk.say("please"), [text], "{tool}");
        }
    }
    let silent = json!({"outsideHoursText": null});
    assert_eq!(desk_at(closed, silent).say("human"), ["One moment."]);
}

/// Z-239 (half: with the setting the deadline counts open time)
#[test]
fn deadline_counts_open_time_when_configured() {
    let counted = json!({"countOpenHoursOnly": true});
    let mut desk = desk_at(OPEN, counted.clone());
    desk.say("start escalates");
    // Seven hours until five, one on Thursday.
    let thursday_at_ten = OPEN.plus_ms(24 * HOUR);
    assert_eq!(escalation(&desk).deadline, Some(thursday_at_ten));
    desk.wait_seconds(24 * 3_600);
    assert_eq!(escalation(&desk).status, EscalationStatus::TimedOut);
    let mut plain = desk_at(OPEN, json!({}));
    plain.say("start escalates");
    assert_eq!(escalation(&plain).deadline, Some(OPEN.plus_ms(8 * HOUR)));
    // The approval of a call has a day: 15 hours this week, 8 next Wednesday, 1 on Thursday.
    let mut desk = desk_at(OPEN, counted);
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: "refund".to_owned(),
            args: json!({}),
        }],
        ..ChatAnswer::default()
    }));
    desk.say("please");
    assert_eq!(
        escalation(&desk).deadline,
        Some(OPEN.plus_ms(8 * 24 * HOUR))
    );
}

/// What is left of the open time goes on when the claim ends.
#[test]
fn released_escalation_has_the_open_time_that_was_left() {
    let both = json!({"countOpenHoursOnly": true, "claimStopsTimeout": true});
    let mut desk = desk_at(OPEN, both);
    desk.say("start escalates");
    let id = escalation(&desk).id.clone();
    let act = |desk: &mut TestSession, action: DeskAction| {
        let escalation = id.clone();
        desk.act("ana", AdminRequest::Desk { escalation, action })
            .expect("open")
    };
    // Two of eight hours have passed when she claims it; she gives it back in the night.
    desk.wait_seconds(2 * 3_600);
    act(&mut desk, DeskAction::Claim);
    desk.wait_seconds(10 * 3_600);
    act(&mut desk, DeskAction::Release);
    let thursday_at_three = OPEN.plus_ms(29 * HOUR);
    assert_eq!(escalation(&desk).deadline, Some(thursday_at_three));
    let waits_until = desk
        .state()
        .flow()
        .and_then(|flow| flow.pause()?.deadline());
    assert_eq!(
        waits_until,
        Some(thursday_at_three),
        "the wait has no time of its own"
    );
}
