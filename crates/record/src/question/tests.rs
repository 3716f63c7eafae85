use super::{QuestionBody, proposed_artifact};
use crate::{RunId, SessionId, Timestamp, Vote, WorkflowId};
use serde_json::{Value, json};
use std::borrow::Cow;

fn vote() -> Vote {
    Vote {
        voter: "ada".to_owned(),
        claimed_by: None,
        via_link: false,
        delegate: None,
        action: "accept".to_owned(),
        at: Timestamp(7),
        feedback: None,
    }
}

#[test]
fn body_of_the_first_release_is_read() {
    let stored = json!({
        "key": "k", "data": {"title": "Refund?"}, "digest": "00",
        "votes": [{"voter": "ada", "action": "accept", "at": 7}],
        "outcome": "accepted", "decidedBy": null, "decidedAt": 9,
    });
    let body = QuestionBody::from_json(&stored.to_string()).expect("a body");
    assert_eq!(body.data["title"], "Refund?");
    assert_eq!(*body.votes, [vote()]);
    assert_eq!((body.level, body.reminders), (None, None));
    assert_eq!(body.outcome.as_deref(), Some("accepted"));
    assert_eq!(body.decided_by, None);
    assert_eq!(body.decided_at, Some(Timestamp(9)));
}

/// Releases before this type wrote a `priority`, and `null` for a decider without a name.
#[test]
fn members_that_are_no_longer_written_are_ignored() {
    let stored = json!({"key": "k", "data": {}, "digest": "00", "priority": null, "level": 1});
    let body = QuestionBody::from_json(&stored.to_string()).expect("a body");
    assert_eq!(body.level, Some(1));
    assert!(body.votes.is_empty());
}

#[test]
fn question_of_a_run_keeps_its_stored_form() {
    let data = json!({"title": "Refund?", "artifactData": {"amount": 5}});
    let workflow = WorkflowId::new("refunds");
    let schema = json!({"type": "object"});
    let body = QuestionBody {
        key: "refunds:gate:0".into(),
        data: Cow::Borrowed(&data),
        digest: "00".into(),
        votes: vec![vote()].into(),
        approvers: vec!["ada".to_owned()].into(),
        level: Some(0),
        reminders: Some(2),
        workflow_id: Some(Cow::Borrowed(&workflow)),
        resume_schema: Some(Cow::Borrowed(&schema)),
        expires_at: Some(Timestamp(50)),
        ..QuestionBody::default()
    };
    let stored = body.to_json();
    let expected = json!({
        "key": "refunds:gate:0", "data": data, "digest": "00",
        "votes": [{"voter": "ada", "action": "accept", "at": 7}],
        "approvers": ["ada"], "approverGroups": [], "approverRoles": [],
        "level": 0, "reminders": 2, "workflowId": "refunds",
        "resumeSchema": {"type": "object"}, "expiresAt": 50,
    });
    assert_eq!(
        serde_json::from_str::<Value>(&stored).expect("JSON"),
        expected
    );
    assert_eq!(QuestionBody::from_json(&stored).expect("a body"), body);
}

#[test]
fn question_of_a_conversation_names_session_and_flow_run() {
    let body = QuestionBody {
        key: "run-1:1".into(),
        data: Cow::Owned(json!({"title": "Cancel the order?"})),
        digest: "00".into(),
        session_id: Some(Cow::Owned(SessionId::new("s-1"))),
        run_id: Some(Cow::Owned(RunId::new("run-1"))),
        ..QuestionBody::default()
    };
    let stored: Value = serde_json::from_str(&body.to_json()).expect("JSON");
    assert_eq!(stored["sessionId"], "s-1");
    assert_eq!(stored["runId"], "run-1");
    assert!(stored.get("workflowId").is_none());
    let read = QuestionBody::from_json(&stored.to_string()).expect("a body");
    assert_eq!(read, body);
}

#[test]
fn accepted_null_differs_from_no_edit() {
    let read = |stored: Value| QuestionBody::from_json(&stored.to_string()).expect("a body");
    let edited = read(json!({"key": "k", "data": {}, "digest": "00", "edited": null}));
    assert_eq!(edited.edited.as_deref(), Some(&Value::Null));
    let unchanged = read(json!({"key": "k", "data": {}, "digest": "00"}));
    assert_eq!(unchanged.edited, None);
}

#[test]
fn body_without_its_content_is_refused() {
    assert!(QuestionBody::from_json("{}").is_err());
    assert!(QuestionBody::from_json("null").is_err());
}

#[test]
fn proposed_artifact_is_the_artifact_or_the_held_decision() {
    let both = json!({"artifactData": 1, "decision": 2});
    assert_eq!(proposed_artifact(&both), Some(&json!(1)));
    assert_eq!(proposed_artifact(&json!({"decision": 2})), Some(&json!(2)));
    assert_eq!(proposed_artifact(&json!({})), None);
}
