//! Notices of questions to addresses of the agent's file.

use super::harness::TestSession;
use serde_json::json;
use tandem_record::conversation::{
    AdminRequest, CodeError, EscalationDecision, EscalationMode, NoticeSubject, SessionCommand,
    SessionWork, WorkOutcome,
};

fn notified_desk() -> TestSession {
    let notify = json!([
        {"transport": "loopback", "address": "desk"},
        {"transport": "loopback", "address": "lead"},
    ]);
    let hitl = json!({"humanKeyword": "human", "humanMode": "async_resolution", "notify": notify});
    TestSession::new(json!({"hitl": hitl}), &[])
}

/// The addresses that are told, in order.
fn told(desk: &TestSession) -> Vec<String> {
    let notices = desk.other_work.iter().filter_map(|work| match work {
        SessionWork::Notify(notice) => Some(notice.to.clone()),
        _ => None,
    });
    notices.collect()
}

#[test]
fn each_address_is_told_once_of_an_escalation() {
    let mut desk = notified_desk();
    desk.say("hello");
    assert!(told(&desk).is_empty());
    desk.say("human");
    assert_eq!(told(&desk), ["desk", "lead"]);
    let id = desk.state().escalations().next().expect("one").id.clone();
    assert!(desk.state().escalation_to_notify(&id).is_some());
    desk.say("hello?");
    assert_eq!(told(&desk).len(), 2);
    let decision = EscalationDecision {
        approved: true,
        message: None,
        action_data: None,
        claimed_by: None,
    };
    let request = AdminRequest::Resolve {
        escalation: Some(id.clone()),
        decision,
    };
    desk.act("ana", request).expect("open");
    let late = desk.state().escalation_to_notify(&id);
    assert!(late.is_none(), "there is nothing to decide any more");
}

#[test]
fn a_notice_that_nobody_got_is_reported_and_the_escalation_stays() {
    let mut desk = notified_desk();
    desk.say("human");
    let id = desk.state().escalations().next().expect("one").id.clone();
    let outcome = WorkOutcome::NoticeFailed(CodeError {
        code: "failed".to_owned(),
        message: "nobody there".to_owned(),
    });
    let finish = SessionCommand::FinishWork {
        effect: format!("{id}:notice:0").into(),
        outcome: Box::new(outcome),
    };
    desk.command(finish).expect("recorded");
    assert_eq!(desk.failures("notify"), ["nobody there"]);
    assert!(desk.state().escalation_to_notify(&id).is_some());
}

/// Somebody has to come to a takeover that a user asked for; one that an admin starts needs nobody.
#[test]
fn takeovers_are_told_of_until_somebody_has_come() {
    let mut desk = notified_desk();
    desk.agent.hitl.human.mode = EscalationMode::LiveTakeover;
    desk.say("hello");
    desk.act("ana", AdminRequest::TakeOver).expect("free");
    assert!(told(&desk).is_empty());
    let mut desk = notified_desk();
    desk.agent.hitl.human.mode = EscalationMode::LiveTakeover;
    desk.say("human");
    assert_eq!(told(&desk), ["desk", "lead"]);
}

/// Z-241 (half: whoever the agent names is told of each held text)
#[test]
fn each_address_is_told_of_a_text_that_waits_for_an_approval() {
    let notify = json!([{"transport": "loopback", "address": "desk"}]);
    let model = json!({"provider": "scripted", "script": {"answers": []}});
    let config = json!({"agentMode": "draft_only", "hitl": {"notify": notify}, "model": model});
    let mut desk = TestSession::new(config, &[]);
    desk.say("hello");
    desk.say("hello?");
    let mut held: Vec<_> = desk.state().drafts().map(|(id, _)| id.clone()).collect();
    let notices = desk.other_work.iter().filter_map(|work| match work {
        SessionWork::Notify(notice) => Some(&notice.about),
        _ => None,
    });
    let mut told: Vec<_> = notices
        .map(|about| match about {
            NoticeSubject::Draft(id) => id.clone(),
            other => panic!("a notice of {other:?}"),
        })
        .collect();
    assert_eq!(held.len(), 2);
    held.sort();
    told.sort();
    assert_eq!(told, held);
}

/// Requests of earlier releases are read as they were.
#[test]
fn a_stored_notice_of_an_escalation_is_still_one() {
    let stored = json!({"k": "notify", "transport": "t", "to": "a", "escalation_id": "esc-1"});
    let read: SessionWork = serde_json::from_value(stored.clone()).expect("a notice");
    let SessionWork::Notify(notice) = &read else {
        panic!("{read:?}")
    };
    assert_eq!(notice.about, NoticeSubject::Escalation("esc-1".into()));
    assert_eq!(serde_json::to_value(&read).expect("JSON"), stored);
}
