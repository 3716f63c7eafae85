//! The JSON of conversations, as the interface of this host promises it.

use super::{
    AgentLogPosition, EventReader, InboundAnswer, InboundStatus, OutboundText, audit_entry,
    escalation, event, journal_record, message, outbox_entry, session, user,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_record::conversation::{
    ActiveFlowView, AdminActor, Author, AuthorizationDecision, CandidateOrigin, ChatUser,
    EscalationMode, EscalationPriority, EscalationRecord, EscalationResolution, EscalationStatus,
    EscalationVote, FlowRecord, FlowRef, HitlView, IntentStatus, LedgerMessage, MessageRole,
    OutboxIntent, SessionEvent, SessionEventBody as Body, SessionStart, SessionView,
};
use tandem_record::{Cause, Masking, Owner, Recorded, RunId, Seq, TenantId, Timestamp};

mod catalogue;
mod ui_channel;

/// 2026-01-01T09:00:09Z
const AT: Timestamp = Timestamp(1_767_258_009_000);
const LATER: Timestamp = Timestamp(1_767_258_309_000);

fn start() -> SessionStart {
    SessionStart {
        session_id: "s_1".into(),
        agent_id: "demo".into(),
        owner: Owner {
            tenant: TenantId::new("acme"),
            workspace: None,
            principal: None,
        },
        user: chat_user(),
        transport: "loopback".to_owned(),
        address: "u1".to_owned(),
        welcome: None,
        idle_timeout_ms: 1,
        earlier: Vec::new(),
        last_received_at: None,
    }
}

fn chat_user() -> ChatUser {
    ChatUser {
        id: "usr_1".into(),
        external_user_id: "u1".to_owned(),
        display_name: "Zoë".to_owned(),
        name_is_chosen: true,
        tags: vec!["vip".to_owned()],
        preferences: json!({"preferredReplyFormat": "text"}),
        consent: None,
    }
}

fn recorded(body: Body) -> Recorded<SessionEvent> {
    Recorded {
        seq: Seq(7),
        at: AT,
        cause: Some(Cause::Event(Seq(5))),
        event: SessionEvent {
            turn: Some(2),
            flow: Some(FlowRef {
                flow_id: "booking".into(),
                flow_run_id: RunId::new("run-1"),
            }),
            actor: None,
            response: None,
            body,
        },
    }
}

fn shown(body: Body, texts: Masking) -> Value {
    let start = start();
    let reader = EventReader {
        session: &start,
        texts,
    };
    event(&recorded(body), reader, None)
}

/// The name and payload of an event.
fn named(body: Body) -> (String, Value) {
    let event = shown(body, Masking::Passthrough);
    let name = event["type"].as_str().expect("a name").to_owned();
    (name, event["payload"].clone())
}

fn confirm_requested() -> Body {
    Body::ConfirmRequested {
        interrupt_id: "run-1:1".into(),
        question: "Sure?".to_owned(),
        deadline: LATER,
        has_schema: false,
    }
}

fn ana() -> AdminActor {
    AdminActor {
        id: "ana".to_owned(),
        role: Some("boss".to_owned()),
        channel: "ui_api".to_owned(),
        metadata: Some(json!({"private": true})),
    }
}

fn escalation_record() -> EscalationRecord {
    EscalationRecord {
        id: "esc-1".into(),
        mode: EscalationMode::AsyncResolution,
        reason: "High refund".to_owned(),
        priority: EscalationPriority::High,
        metadata: Some(json!({"amount": "700"})),
        flow_id: Some("refund".into()),
        flow_run_id: Some(RunId::new("run-1")),
        client_id: None,
        status: EscalationStatus::Open,
        detached: false,
        created_at: AT,
        deadline: Some(LATER),
        resolution: None,
        interrupt_id: None,
        cancel_reason: None,
        required_approvals: 1,
        approvers: Vec::new(),
        votes: Vec::new(),
        context: None,
        queue: None,
        assignee: None,
        claimed_at: None,
        stopped: None,
    }
}

fn resolution() -> EscalationResolution {
    EscalationResolution {
        approved: true,
        message: Some("fine".to_owned()),
        action_data: None,
        resolved_by: "ana".to_owned(),
        claimed_by: Some("admin_42".to_owned()),
        resolved_at: LATER,
        channel: "ui_api".to_owned(),
    }
}

/// §9.7, Z-201 (half: where the common fields are)
#[test]
fn event_has_common_fields_outside_and_its_own_in_the_payload() {
    let expected = json!({
        "eventId": "evt-s_1-7", "type": "hitl.confirm.requested", "at": "2026-01-01T09:00:09.000Z",
        "sequence": 7, "agentId": "demo", "sessionId": "s_1", "userId": "usr_1",
        "requestId": "s_1-r2", "turnId": "s_1-t2", "flowId": "booking", "flowRunId": "run-1",
        "causationId": "evt-s_1-5", "channel": "loopback", "actor": null,
        "payload": {"interruptId": "run-1:1", "question": "Sure?",
            "deadline": "2026-01-01T09:05:09.000Z", "hasSchema": false},
    });
    assert_eq!(shown(confirm_requested(), Masking::Passthrough), expected);
}

/// Z-147 (half: action of an admin names the actor and their channel)
#[test]
fn action_of_an_admin_names_the_actor_and_their_channel() {
    let start = start();
    let reader = EventReader {
        session: &start,
        texts: Masking::Passthrough,
    };
    let mut recorded = recorded(Body::EscalationResolved {
        escalation_id: "esc-1".into(),
        resolution: resolution(),
        detached: false,
    });
    recorded.event.actor = Some(ana());
    let event = event(&recorded, reader, Some(AgentLogPosition(40)));
    let actor = json!({"id": "ana", "role": "boss", "channel": "ui_api"});
    assert_eq!(
        (&event["actor"], &event["channel"]),
        (&actor, &json!("ui_api"))
    );
    assert_eq!(event["position"], 40);
}

/// Z-202 (half: texts are shown hashed or left out)
#[test]
fn texts_are_shown_hashed_or_left_out() {
    let hashed = &shown(confirm_requested(), Masking::Hash)["payload"];
    let question = hashed["question"].as_str().expect("a hash");
    assert!(
        question.starts_with("sha256:") && question.len() == 71,
        "{question}"
    );
    assert_eq!(hashed["interruptId"], "run-1:1");
    let omitted = &shown(confirm_requested(), Masking::Omit)["payload"];
    assert_eq!(omitted.get("question"), None);
    let created = Body::EscalationCreated(Box::new(escalation_record()));
    let created = &shown(created, Masking::Omit)["payload"];
    assert_eq!(created.get("metadata"), None);
    assert_eq!(created["escalationId"], "esc-1");
}

/// Z-147 (half: audit entry has the fields of its event beside it)
#[test]
fn audit_entry_has_the_fields_of_its_event_beside_it() {
    let denied = AuthorizationDecision {
        granted: false,
        action: "hitl.escalation.resolve".to_owned(),
        actor: None,
        signal: Some("sha256:00".to_owned()),
        escalation_id: Some("esc-1".into()),
        proxy_id: None,
        reason: Some("no_actor".to_owned()),
        adapter: "ui_api".to_owned(),
    };
    let session = "s_1".into();
    assert_eq!(
        audit_entry(&denied, Some(&session), AT),
        json!({"type": "admin.authz.denied", "at": "2026-01-01T09:00:09.000Z",
            "sessionId": "s_1", "actor": null, "action": "hitl.escalation.resolve",
            "escalationId": "esc-1", "reason": "no_actor", "signal": "sha256:00",
            "adapter": "ui_api"})
    );
    let granted = AuthorizationDecision {
        granted: true,
        actor: Some(ana()),
        signal: None,
        reason: None,
        ..denied
    };
    let entry = audit_entry(&granted, None, AT);
    assert_eq!(entry["type"], "admin.authz.granted");
    assert_eq!(entry["actor"]["id"], "ana");
    assert_eq!(entry["sessionId"], Value::Null);
}

#[test]
fn session_shows_its_flow_and_what_a_person_has_to_do() {
    let mut view = SessionView {
        id: "s_1".into(),
        agent_id: "demo".into(),
        user_id: "usr_1".into(),
        user_external_id: "u1".to_owned(),
        started_at: AT,
        last_active_at: AT,
        ended_at: None,
        message_count: 4,
        last_received_at: None,
        hitl: HitlView {
            mode: Some("pending_confirm".to_owned()),
            escalation_id: None,
            proxy_id: None,
            pending_since: Some(AT),
        },
        flow: Some(ActiveFlowView {
            flow_id: "booking".into(),
            flow_run_id: RunId::new("run-1"),
            is_paused: true,
            paused_on: Some("confirm".to_owned()),
            deadline: Some(LATER),
            answers: BTreeMap::from([("date".to_owned(), "Monday".to_owned())]),
        }),
        summary: None,
    };
    let time = "2026-01-01T09:00:09.000Z";
    let expected = json!({
        "id": "s_1", "agentId": "demo", "userId": "usr_1", "userExternalId": "u1",
        "startedAt": time, "lastActiveAt": time, "endedAt": null, "messageCount": 4,
        "hitl": {"mode": "pending_confirm", "escalationId": null, "proxyId": null,
            "pendingSince": time},
        "flow": {"flowId": "booking", "flowRunId": "run-1", "status": "paused",
            "pausedOn": "confirm", "deadline": "2026-01-01T09:05:09.000Z",
            "answers": {"date": "Monday"}},
    });
    assert_eq!(session(&view), expected);
    view.flow = None;
    assert_eq!(session(&view)["flow"], Value::Null);
}

/// §4.7
#[test]
fn escalation_shows_its_conversation_and_its_resolution() {
    let mut record = escalation_record();
    let open = escalation(&record, &"s_1".into(), &"demo".into(), "u1");
    assert_eq!(open["status"], "open");
    assert_eq!(open["detached"], false);
    assert_eq!(
        (&open["agentId"], &open["sessionId"]),
        (&json!("demo"), &json!("s_1"))
    );
    assert_eq!(open["userExternalId"], "u1");
    assert_eq!(open.get("resolution"), None);
    record.status = EscalationStatus::Resolved;
    record.resolution = Some(resolution());
    let closed = escalation(&record, &"s_1".into(), &"demo".into(), "u1");
    assert_eq!(
        closed["resolution"],
        json!({"approved": true, "message": "fine", "resolvedBy": "ana", "claimedBy": "admin_42",
            "resolvedAt": "2026-01-01T09:05:09.000Z", "channel": "ui_api"})
    );
    record.votes = vec![EscalationVote {
        by: "ana".to_owned(),
        message: Some("fine".to_owned()),
        action_data: None,
        at: LATER,
    }];
    let voted = escalation(&record, &"s_1".into(), &"demo".into(), "u1");
    assert_eq!(
        voted["votes"],
        json!([{"by": "ana", "message": "fine", "at": "2026-01-01T09:05:09.000Z"}])
    );
}

#[test]
fn user_message_and_outbox_entry_are_plain() {
    assert_eq!(
        user(&chat_user(), &"demo".into(), AT, LATER),
        json!({"id": "usr_1", "agentId": "demo", "externalUserId": "u1", "displayName": "Zoë",
            "tags": ["vip"], "preferences": {"preferredReplyFormat": "text"},
            "createdAt": "2026-01-01T09:00:09.000Z", "lastActiveAt": "2026-01-01T09:05:09.000Z"})
    );
    let written = LedgerMessage {
        id: "m-1".to_owned(),
        role: MessageRole::Assistant,
        text: "Ana here.".to_owned(),
        author: Some(Author {
            kind: "human".to_owned(),
            actor_id: "ana".to_owned(),
        }),
        at: AT,
    };
    assert_eq!(
        message(&written),
        json!({"id": "m-1", "role": "assistant", "text": "Ana here.",
            "author": {"kind": "human", "actorId": "ana"}, "at": "2026-01-01T09:00:09.000Z"})
    );
    let intent = OutboxIntent {
        key: "s_1:9".into(),
        turn: Some(2),
        to: "u1".to_owned(),
        transport: "loopback".to_owned(),
        text: "hi".to_owned(),
        origin: CandidateOrigin::Say,
        status: IntentStatus::Failed,
        provider_message_id: None,
        template: None,
        reason: Some("refused".to_owned()),
        at: AT,
    };
    assert_eq!(
        outbox_entry(&"s_1".into(), &intent),
        json!({"key": "s_1:9", "sessionId": "s_1", "turnId": "s_1-t2", "to": "u1",
            "transport": "loopback", "text": "hi", "origin": "say", "status": "failed",
            "reason": "refused", "at": "2026-01-01T09:00:09.000Z"})
    );
}

#[test]
fn answer_to_a_message_lists_what_the_turn_sends() {
    let answer = InboundAnswer {
        turn_id: Some("t_1".to_owned()),
        session_id: Some("s_1".into()),
        status: InboundStatus::Processed,
        outbound: vec![OutboundText {
            id: "m_1".into(),
            to: "u1".to_owned(),
            text: "When?".to_owned(),
            origin: CandidateOrigin::Ask,
        }],
    };
    assert_eq!(
        json!(answer),
        json!({"turnId": "t_1", "sessionId": "s_1", "status": "processed",
            "outbound": [{"id": "m_1", "to": "u1", "text": "When?", "origin": "ask"}]})
    );
}

#[test]
fn journal_record_names_its_kind_outside() {
    let recorded = Recorded {
        seq: Seq(3),
        at: AT,
        cause: None,
        event: FlowRecord::Result {
            step: 1,
            value: Some(Value::Null),
            error: None,
        },
    };
    assert_eq!(
        journal_record(&RunId::new("run-1"), &recorded),
        json!({"flowRunId": "run-1", "sequence": 3, "type": "flow.result",
            "at": "2026-01-01T09:00:09.000Z", "record": {"step": 1, "value": null}})
    );
}
