//! The catalogue of events: names and fields.

use super::{AT, LATER, escalation_record, named, resolution};
use serde_json::json;
use tandem_record::conversation::{
    AgentMode, ApprovalAsked, ApprovalRequest, Candidate, CandidateOrigin, ChatToolCall,
    ConfirmOutcome, DraftOutcome, EndedTakeover, EscalationVote, FlowFailure, FlowOrigin,
    FlowPause, ForwardedText, InboundMessage, LedgerMessage, MessageRole, Modality, ParentNode,
    ProfileChange, ResponseSource, RestartedTimeout, ResumedBy, SessionEventBody as Body,
    StoppedTimeout, TakeoverDirection, TakeoverEndReason, TakeoverOrigin, TurnOutcome, TurnTrigger,
    WaitFor, WorkflowResult,
};
use tandem_record::{RunId, Seq};

/// §9.7, §5.6, §6
#[test]
fn events_have_the_names_and_fields_of_the_catalogue() {
    let table = [
        (
            Body::MessageReceived {
                message: Box::new(InboundMessage {
                    message_id: "m-1".into(),
                    from: "u1".to_owned(),
                    body: "hi".to_owned(),
                    kind: None,
                    sender_profile: None,
                    media: None,
                    client_id: None,
                    quoted_id: None,
                    relayed: false,
                    received_at: AT,
                    sent_at: None,
                }),
                held_until: None,
            },
            "transport:inbound",
            json!({"messageId": "m-1", "from": "u1", "type": "text", "hasMedia": false, "text": "hi"}),
        ),
        (
            Body::TurnStarted {
                trigger: TurnTrigger::Inbound,
                message_ids: vec!["m-1".into()],
                remembered: true,
            },
            "runtime:inbound:received",
            json!({"trigger": "inbound", "messageIds": ["m-1"]}),
        ),
        (
            Body::TurnEnded(TurnOutcome::EndedByPolicy { reason: None }),
            "runtime:inbound:processed",
            json!({"outcome": "ended_by_policy"}),
        ),
        (
            Body::TurnEnded(TurnOutcome::Failed {
                reason: "model".to_owned(),
            }),
            "runtime:inbound:failed",
            json!({"outcome": "failed", "reason": "model"}),
        ),
        (
            Body::FlowStarted {
                origin: FlowOrigin::Router,
                input: Some(json!(1)),
                version: "abc".to_owned(),
                parent: None,
                attempt: 1,
            },
            "flow.started",
            json!({"origin": "router", "input": 1, "codeHash": "abc"}),
        ),
        (
            Body::FlowPaused {
                pause: FlowPause::Ask {
                    interrupt_id: "run-1:0".into(),
                    key: "date".to_owned(),
                    asked_at: AT,
                    reminded: 0,
                },
            },
            "flow.paused",
            json!({"kind": "ask", "interruptId": "run-1:0", "key": "date"}),
        ),
        (
            Body::FlowFailed {
                error: FlowFailure {
                    code: "exception".to_owned(),
                    message: "boom".to_owned(),
                    details: None,
                },
            },
            "flow.failed",
            json!({"error": {"code": "exception", "message": "boom"}}),
        ),
        (Body::FlowEnded { reason: None }, "flow.ended", json!({})),
        (
            Body::InterruptPaused {
                interrupt_id: "run-1:1".into(),
                kind: "wait".to_owned(),
                wait_for: Some(WaitFor::AdminResolution),
                deadline: Some(LATER),
            },
            "hitl.interrupt.paused",
            json!({"interruptId": "run-1:1", "kind": "wait", "waitFor": "admin_resolution",
                "deadline": "2026-01-01T09:05:09.000Z"}),
        ),
        (
            Body::InterruptResumed {
                interrupt_id: "run-1:1".into(),
                kind: "wait".to_owned(),
                by: ResumedBy::AdminResolution,
                outcome: "resolved".to_owned(),
                text: None,
            },
            "hitl.interrupt.resumed",
            json!({"interruptId": "run-1:1", "kind": "wait", "by": "admin_resolution",
                "outcome": "resolved"}),
        ),
        (
            Body::ConfirmResolved {
                interrupt_id: "run-1:1".into(),
                decision: ConfirmOutcome::Negative,
                reason: Some("unrecognized".to_owned()),
                text: "maybe".to_owned(),
                value: Some(json!(false)),
            },
            "hitl.confirm.resolved",
            json!({"interruptId": "run-1:1", "decision": "negative", "reason": "unrecognized",
                "text": "maybe", "value": false}),
        ),
        (
            Body::EscalationCreated(Box::new(escalation_record())),
            "hitl.escalation.created",
            json!({"escalationId": "esc-1", "mode": "async_resolution", "reason": "High refund",
                "priority": "high", "metadata": {"amount": "700"},
                "deadline": "2026-01-01T09:05:09.000Z"}),
        ),
        (
            Body::EscalationResolved {
                escalation_id: "esc-1".into(),
                resolution: resolution(),
                detached: true,
            },
            "hitl.escalation.resolved",
            json!({"escalationId": "esc-1", "approved": true, "message": "fine",
                "resolvedBy": "ana", "claimedBy": "admin_42", "detached": true}),
        ),
        (
            Body::PendingMessage {
                message_id: "m-2".into(),
                behavior: "ack".to_owned(),
            },
            "hitl.pending.message",
            json!({"messageId": "m-2", "behavior": "ack"}),
        ),
        (
            Body::ResponsePrepared {
                candidate: Candidate {
                    index: 0,
                    text: "hello".to_owned(),
                    origin: CandidateOrigin::Classic,
                    modality: Modality::Text,
                    structured: None,
                },
                source: ResponseSource::Classic,
            },
            "response:prepared",
            json!({"source": "classic", "index": 0, "origin": "classic", "text": "hello"}),
        ),
        (
            Body::ResponseFailed {
                stage: "beforeLLM".to_owned(),
                reason: "hitl_active".to_owned(),
                fatal: false,
            },
            "response:failed",
            json!({"stage": "beforeLLM", "reason": "hitl_active"}),
        ),
        (
            Body::RouterDecided {
                mode: "detector".to_owned(),
                flow: None,
                confidence: None,
                reason: tandem_record::conversation::RouterReason::ParseError,
                fallback_used: true,
            },
            "flow.router.decided",
            json!({"mode": "detector", "reason": "parse_error", "fallbackUsed": true}),
        ),
    ];
    for (body, name, payload) in table {
        assert_eq!(named(body), (name.to_owned(), payload));
    }
}

/// §9.7 (half: live takeovers), Z-201 (half: live takeovers)
#[test]
fn events_of_takeovers_have_the_names_and_fields_of_the_catalogue() {
    let said = LedgerMessage {
        id: "w-1".to_owned(),
        role: MessageRole::Assistant,
        text: "on my way".to_owned(),
        author: None,
        at: AT,
    };
    let table = [
        (
            Body::LiveTakeoverStarted {
                escalation_id: "esc-1".into(),
                by: TakeoverOrigin::Effect,
                idle_handback_ms: Some(60_000),
            },
            "hitl.live_takeover.started",
            json!({"escalationId": "esc-1", "by": "effect", "idleHandbackSeconds": 60}),
        ),
        (
            Body::LiveTakeoverMessage {
                direction: TakeoverDirection::UserToHuman,
                message_id: "m-1".into(),
            },
            "hitl.live_takeover.message",
            json!({"direction": "user_to_human", "messageId": "m-1"}),
        ),
        (
            Body::LiveTakeoverForwarded(Box::new(ForwardedText {
                effect_id: "s-1:9".into(),
                transport: "loopback".to_owned(),
                to: "desk".to_owned(),
                text: "[Ada #1] hi".to_owned(),
            })),
            "hitl.live_takeover.forwarded",
            json!({"messageId": "s-1:9", "transport": "loopback", "to": "desk", "text": "[Ada #1] hi"}),
        ),
        (
            Body::LiveTakeoverEnded(Box::new(EndedTakeover {
                escalation_id: "esc-1".into(),
                reason: TakeoverEndReason::Handback,
                note: Some("calm".to_owned()),
                held_items: 2,
                entry: said.clone(),
            })),
            "hitl.live_takeover.ended",
            json!({"escalationId": "esc-1", "reason": "handback", "note": "calm", "heldItems": 2}),
        ),
        (
            Body::ExternalReplyRecorded {
                message_id: "w-1".into(),
                message: Box::new(said),
            },
            "hitl.external_reply",
            json!({"messageId": "w-1", "text": "on my way"}),
        ),
    ];
    for (body, name, payload) in table {
        assert_eq!(named(body), (name.to_owned(), payload));
    }
}

/// Events that follow from settings of section 14, from approvals and from workflows.
#[test]
fn events_of_desks_have_names_and_fields_too() {
    let candidate = Candidate {
        index: 0,
        text: "hello".to_owned(),
        origin: CandidateOrigin::Draft,
        modality: Modality::Voice,
        structured: None,
    };
    let parent = ParentNode {
        run_id: RunId::new("run-9"),
        node_id: "ask".into(),
        flow_run_id: None,
        dispatched_at: Seq(0),
    };
    let table = [
        (Body::BurstClosed, "runtime:burst:closed", json!({})),
        (
            Body::MessageTranscribed { text: None },
            "transport:inbound:transcribed",
            json!({"failed": true}),
        ),
        (
            Body::TurnDropped {
                number: 3,
                message_ids: vec!["m-3".into()],
                reason: "session_ended".to_owned(),
            },
            "runtime:inbound:dropped",
            json!({"messageIds": ["m-3"], "reason": "session_ended"}),
        ),
        (
            Body::TurnEnded(TurnOutcome::Interrupted),
            "runtime:inbound:processed",
            json!({"outcome": "interrupted"}),
        ),
        (
            Body::ProfileChanged(Box::new(ProfileChange {
                proactive: Some(false),
                ..ProfileChange::default()
            })),
            "user:profile:changed",
            json!({"proactive": false}),
        ),
        (
            Body::ModeChanged {
                mode: AgentMode::DraftOnly,
            },
            "session:mode:changed",
            json!({"agentMode": "draft_only"}),
        ),
        (
            Body::DraftHeld {
                draft_id: "s_1:7".into(),
                candidate,
            },
            "response:draft:held",
            json!({"interruptId": "s_1:7", "index": 0, "origin": "draft", "modality": "voice",
                "text": "hello"}),
        ),
        (
            Body::DraftDecided {
                draft_id: "s_1:7".into(),
                outcome: DraftOutcome::Edited,
            },
            "response:draft:decided",
            json!({"interruptId": "s_1:7", "outcome": "edited"}),
        ),
        (
            Body::ReminderSent {
                interrupt_id: "run-1:1".into(),
                index: 2,
            },
            "hitl.reminder.sent",
            json!({"interruptId": "run-1:1", "index": 2}),
        ),
        (
            Body::ApprovalRequested(Box::new(ApprovalRequest {
                call: ChatToolCall {
                    id: "c1".to_owned(),
                    name: "refund".to_owned(),
                    args: json!({"eur": 5}),
                },
                interrupt_id: "s_1:9".into(),
                asked: ApprovalAsked::User {
                    question: "Refund 5 euro?".to_owned(),
                    deadline: LATER,
                    attempts: 0,
                    asked: Seq(9),
                },
            })),
            "tool:approval:requested",
            json!({"interruptId": "s_1:9", "callId": "c1", "name": "refund", "args": {"eur": 5},
                "asked": "user", "question": "Refund 5 euro?",
                "deadline": "2026-01-01T09:05:09.000Z"}),
        ),
        (
            Body::ApprovalDecided {
                call_id: "c1".to_owned(),
                approved: false,
            },
            "tool:approval:decided",
            json!({"callId": "c1", "approved": false}),
        ),
        (
            Body::EscalationVoted {
                escalation_id: "esc-1".into(),
                vote: EscalationVote {
                    by: "ana".to_owned(),
                    message: None,
                    action_data: None,
                    at: AT,
                },
            },
            "hitl.escalation.voted",
            json!({"escalationId": "esc-1", "by": "ana"}),
        ),
        (
            Body::EscalationClaimed {
                escalation_id: "esc-1".into(),
                by: "ana".to_owned(),
                stopped: Some(StoppedTimeout {
                    left_ms: Some(1_000),
                }),
                wait_left_ms: None,
            },
            "hitl.escalation.claimed",
            json!({"escalationId": "esc-1", "assignee": "ana", "timeoutStopped": true}),
        ),
        (
            Body::EscalationReleased {
                escalation_id: "esc-1".into(),
                restarted: Some(RestartedTimeout {
                    deadline: Some(LATER),
                    wait_deadline: None,
                }),
            },
            "hitl.escalation.released",
            json!({"escalationId": "esc-1", "deadline": "2026-01-01T09:05:09.000Z"}),
        ),
        (
            Body::EscalationAssigned {
                escalation_id: "esc-1".into(),
                assignee: "ben".to_owned(),
                restarted: None,
            },
            "hitl.escalation.assigned",
            json!({"escalationId": "esc-1", "assignee": "ben"}),
        ),
        (
            Body::DivergenceSettled {
                flow_run_id: RunId::new("run-1"),
                retried: true,
            },
            "flow.divergence_settled",
            json!({"divergedRunId": "run-1", "retried": true}),
        ),
        (
            Body::FlowStartDeferred {
                flow_id: "refund".into(),
                input: None,
                parent: parent.clone(),
            },
            "flow.start_deferred",
            json!({"deferredFlowId": "refund", "parent": {"runId": "run-9", "nodeId": "ask"}}),
        ),
        (
            Body::FlowStartWithdrawn { parent },
            "flow.start_withdrawn",
            json!({"parent": {"runId": "run-9", "nodeId": "ask"}}),
        ),
        (
            Body::WorkflowFinishedEarly {
                interrupt_id: "run-1:1".into(),
                result: WorkflowResult {
                    run_id: RunId::new("run-9"),
                    status: "completed".to_owned(),
                    output: None,
                    error: None,
                },
            },
            "flow.workflow_finished",
            json!({"interruptId": "run-1:1", "runId": "run-9", "status": "completed"}),
        ),
    ];
    for (body, name, payload) in table {
        assert_eq!(named(body), (name.to_owned(), payload));
    }
}
