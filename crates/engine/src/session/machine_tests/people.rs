//! Leaving the agent for a person, giving up waiting, several approvals, what a reviewer is told.

use super::escalations::waiting_desk_with;
use super::flows::route_on_start;
use super::harness::{TestSession, code, done, effect, text_of};
use crate::session::{Resume, SessionRefusal};
use serde_json::{Value, json};
use tandem_record::conversation::{
    AdminRequest, ChatAnswer, ChatToolCall, CodeOutcome, EscalationDecision, EscalationStatus,
    SessionReply,
};

fn message_from(desk: &mut TestSession, approved: bool, message: &str, by: &str) {
    let decision = EscalationDecision {
        approved,
        message: Some(message.to_owned()),
        action_data: None,
        claimed_by: None,
    };
    let escalation = None;
    desk.act(
        by,
        AdminRequest::Resolve {
            escalation,
            decision,
        },
    )
    .expect("open");
}

/// Z-245 (half: keyword calls a person and messages wait for them)
#[test]
fn keyword_calls_a_person_and_messages_wait_for_them() {
    let config = json!({"hitl": {"humanKeyword": "human", "humanMode": "async_resolution",
        "escalationDefaults": {"autoAckText": "A colleague comes."},
        "asyncPendingPolicy": {"behavior": "queue"}}});
    let mut desk = TestSession::new(config, &[]);
    assert_eq!(desk.say("HUMAN!"), ["A colleague comes."]);
    assert_eq!(desk.state().hitl_mode(), Some("pending_admin_resolution"));
    assert!(desk.model_calls.is_empty());
    assert!(desk.say("hello?").is_empty());
    let escalation = desk.state().escalations().next().expect("one");
    assert_eq!(escalation.reason, "user_request");
    assert_eq!(escalation.deadline, None);
    message_from(&mut desk, true, "Ana here.", "ana");
    assert_eq!(&desk.sent[1..], ["model speaks"]);
    assert_eq!(desk.state().hitl_mode(), None);
    // Z-153 (half: the words of the decision are data; they are not sent)
    let resolved = desk.state().escalations().next().expect("one");
    let said = resolved
        .resolution
        .as_ref()
        .and_then(|r| r.message.as_deref());
    assert_eq!(said, Some("Ana here."));
}

/// Z-245 (half: keyword ends the flow the user leaves)
#[test]
fn keyword_ends_the_flow_the_user_leaves() {
    let asking = code(|_, _, _| effect(json!({"type": "ask", "key": "x", "text": "x?"})));
    let config = json!({"beforeLLM": {"$fn": true}, "hitl": {"humanKeyword": ["human", "person"], "humanMode": "async_resolution"}});
    let mut desk = TestSession::new(config, &[("asking", asking)]);
    route_on_start(&mut desk);
    desk.say("start asking");
    desk.say("person");
    assert_eq!(desk.flow_ends(), [Some("human_requested".to_owned())]);
    assert_eq!(desk.state().hitl_mode(), Some("pending_admin_resolution"));
}

/// Z-245 (half: without admins there is nobody to call)
#[test]
fn keyword_means_nothing_without_admins() {
    let config = json!({"adminAuth": null, "hitl": {"humanKeyword": "human"}});
    let mut desk = TestSession::new(config, &[]);
    assert_eq!(desk.say("human"), ["model speaks"]);
}

/// Z-245 (half: model calls a person with a tool of the host)
#[test]
fn model_calls_a_person_with_a_tool_of_the_host() {
    let mut desk = TestSession::new(
        json!({"hitl": {"offerHuman": true, "humanMode": "async_resolution"}}),
        &[],
    );
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![ChatToolCall {
            id: "c1".to_owned(),
            name: "talk_to_human".to_owned(),
            args: json!({"reason": "angry"}),
        }],
        ..ChatAnswer::default()
    }));
    assert_eq!(desk.say("I am angry"), ["model speaks"]);
    assert_eq!(
        desk.state().escalations().next().expect("one").reason,
        "angry"
    );
    assert_eq!(desk.model_calls.len(), 2);
    let mut desk = TestSession::new(json!({}), &[]);
    desk.say("hi");
    let offered = format!("{:?}", desk.model_calls);
    assert!(!offered.contains("talk_to_human"));
}

/// Z-245 (half: the text for an escalation ends the turn; calls after it are not made)
#[test]
fn person_called_by_the_tool_is_acknowledged() {
    let config = json!({"tools": [{"name": "note", "kind": "record"}],
        "hitl": {"offerHuman": true, "humanMode": "async_resolution",
        "escalationDefaults": {"autoAckText": "A colleague comes."}}});
    let mut desk = TestSession::new(config, &[]);
    let call = |id: &str, name: &str| ChatToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        args: json!({}),
    };
    desk.answers.push_back(Ok(ChatAnswer {
        tool_calls: vec![
            call("c1", "note"),
            call("c2", "talk_to_human"),
            call("c3", "note"),
        ],
        ..ChatAnswer::default()
    }));
    assert_eq!(desk.say("a person, please"), ["A colleague comes."]);
    assert_eq!(desk.model_calls.len(), 1);
    assert_eq!(desk.tool_calls.len(), 1);
    assert_eq!(desk.state().hitl_mode(), Some("pending_admin_resolution"));
}

/// Z-229 (half: user gives up waiting)
#[test]
fn user_gives_up_waiting() {
    let waits = code(|step, with, _| match (step, with) {
        (0, _) => {
            effect(json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r"}))
        }
        (1, _) => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        (2, Resume::Value(Some(payload))) => {
            assert_eq!(payload["approved"], json!(false));
            let text = format!("{}:{}", payload["outcome"], payload["reason"]);
            effect(json!({"type": "say", "text": text}))
        }
        _ => done(),
    });
    let config = json!({"beforeLLM": {"$fn": true}, "hitl": {"userCancelKeywords": ["forget it"]}});
    let mut desk = TestSession::new(config, &[("waits", waits)]);
    route_on_start(&mut desk);
    desk.say("start waits");
    assert!(
        desk.say("do not forget it").is_empty(),
        "only the words alone"
    );
    assert_eq!(desk.say("Forget it."), [r#""canceled":"user_canceled""#]);
    let escalation = desk.state().escalations().next().expect("one");
    assert_eq!(escalation.status, EscalationStatus::Canceled);
}

fn two_approvals() -> TestSession {
    let waits = code(|step, with, _| match step {
        0 => effect(
            json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": "r",
            "requiredApprovals": 2, "approvers": ["ana", "ben", "cat"]}),
        ),
        1 => effect(json!({"type": "interrupt.wait", "waitFor": "admin_resolution"})),
        2 => effect(json!({"type": "say", "text": text_of(with)})),
        _ => done(),
    });
    let mut desk = TestSession::new(json!({"beforeLLM": {"$fn": true}}), &[("waits", waits)]);
    route_on_start(&mut desk);
    desk.say("start waits");
    desk
}

/// Z-231 (half: two people must approve)
#[test]
fn two_people_must_approve() {
    let mut desk = two_approvals();
    assert_eq!(
        desk.resolve(true, "eve"),
        Err(SessionRefusal::NotAnApprover)
    );
    for _ in 0..2 {
        match desk.resolve(true, "ana") {
            Ok(SessionReply::Escalation(record)) => assert_eq!(record.votes.len(), 1),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        desk.paused_on(),
        Some("admin_resolution"),
        "one person counts once"
    );
    desk.resolve(true, "ben").expect("open");
    assert!(
        desk.sent[0].contains(r#""approved":true"#),
        "{:?}",
        desk.sent
    );
}

/// Z-231 (half: one refusal closes it)
#[test]
fn one_refusal_closes_it() {
    let mut desk = two_approvals();
    desk.resolve(true, "ana").expect("open");
    desk.resolve(false, "cat").expect("open");
    assert!(
        desk.sent[0].contains(r#""approved":false"#),
        "{:?}",
        desk.sent
    );
}

/// Z-228 (half: reviewer is told what the agent configures)
#[test]
fn reviewer_is_told_what_the_agent_configures() {
    let context = |hitl: Value| {
        let desk = waiting_desk_with(json!({ "hitl": hitl }));
        desk.state()
            .escalations()
            .next()
            .expect("one")
            .context
            .clone()
    };
    assert_eq!(context(json!({})), None);
    let told = context(json!({"escalationContext": {"messages": 2}})).expect("configured");
    assert_eq!(told["answers"], json!({"amount": "700"}));
    assert_eq!(told["user"]["displayName"], "Ada");
    let texts: Vec<_> = told["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|m| &m["text"])
        .collect();
    assert_eq!(texts, ["What refund amount?", "700"]);
    let told =
        context(json!({"escalationContext": {"messages": 0, "profile": false, "answers": false}}));
    assert_eq!(told, Some(json!({"messages": []})));
}

/// Z-228 (half: the summary of the session, as its agent keeps it)
#[test]
fn reviewer_is_told_what_the_session_is_about() {
    let context = |settings: Value| {
        let hitl = json!({"humanKeyword": "human", "escalationContext": settings});
        let config = json!({"beforeLLM": {"$fn": true}, "hitl": hitl});
        let mut desk = TestSession::new(config, &[]);
        let keeps = CodeOutcome {
            kv: vec![("summary".to_owned(), Some(json!("A refund of 700")))],
            ..CodeOutcome::default()
        };
        desk.functions
            .insert("beforeLLM".to_owned(), Box::new(move |_| keeps.clone()));
        desk.say("I want my 700 back");
        desk.say("human");
        let escalation = desk.state().escalations().next().expect("one");
        escalation.context.clone().expect("configured")
    };
    let told = context(json!({"messages": 1}));
    assert_eq!(told["summary"], "A refund of 700");
    let told = context(json!({"messages": 1, "summary": false}));
    assert_eq!(told.get("summary"), None);
}
