//! Every effect with its fields and defaults.

use super::{minimal, parsed};
use crate::flow::effect::{
    ConfirmEffect, EscalateEffect, EscalationMode, EscalationPriority, ProxyFlags, ProxyMode,
    ProxyStartEffect, ProxyTimeoutBehavior, ProxyWaitEffect, ToolErrorMode, WaitEffect, WaitFor,
    WorkflowRunEffect,
};
use crate::flow::{FlowEffect, Reminder, SchemaSource};
use serde_json::{Value, json};

#[test]
fn every_effect_is_read_from_its_required_fields() {
    // Z-47 (half: valid effects are accepted), Z-77 (half: the fields of an escalation)
    for (effect, pauses) in minimal() {
        let read = parsed(&effect);
        assert_eq!(read.type_name(), effect["type"], "{effect}");
        assert_eq!(read.pauses(), pauses, "{effect}");
    }
}

#[test]
fn every_optional_field_is_read() {
    let confirm = json!({"type": "interrupt.confirm", "question": "Sure?", "id": "c1",
        "timeoutSeconds": 1.5, "positiveKeywords": ["go"], "negativeKeywords": ["halt"],
        "responseSchema": {"type": "number"}, "reminders": [{"afterSeconds": 60, "text": "Hm?"}]});
    assert_eq!(
        parsed(&confirm),
        FlowEffect::Confirm(ConfirmEffect {
            question: "Sure?".into(),
            id: Some("c1".into()),
            timeout_ms: Some(1_500),
            positive_keywords: Some(vec!["go".into()]),
            negative_keywords: Some(vec!["halt".into()]),
            response_schema: Some(SchemaSource::Json(json!({"type": "number"}))),
            reminders: vec![Reminder {
                after_ms: 60_000,
                text: "Hm?".into()
            }],
        })
    );
    let escalate = json!({"type": "interrupt.escalate", "mode": "async_resolution",
        "reason": "High amount", "id": "e1", "priority": "critical", "metadata": {"amount": 700},
        "timeoutSeconds": 86_400, "requiredApprovals": 2, "approvers": ["ana"], "queue": "money",
        "assignee": "ben"});
    assert_eq!(
        parsed(&escalate),
        FlowEffect::Escalate(EscalateEffect {
            mode: EscalationMode::AsyncResolution,
            reason: "High amount".into(),
            id: Some("e1".into()),
            priority: EscalationPriority::Critical,
            metadata: json!({"amount": 700}).as_object().cloned(),
            timeout_ms: Some(86_400_000),
            required_approvals: 2,
            approvers: vec!["ana".into()],
            queue: Some("money".into()),
            assignee: Some("ben".into()),
        })
    );
    let start = json!({"type": "interrupt.proxy.start", "target": "t", "mode": "shadow",
        "replace": true, "timeoutSeconds": 1, "forwardUserMessages": false,
        "forwardAdminMessages": true, "autoPrefix": false});
    assert_eq!(
        parsed(&start),
        FlowEffect::ProxyStart(ProxyStartEffect {
            target: "t".into(),
            mode: ProxyMode::Shadow,
            replace: true,
            timeout_ms: Some(1_000),
            forward_user_messages: Some(false),
            forward_admin_messages: Some(true),
            auto_prefix: Some(false),
        })
    );
    let wait = json!({"type": "interrupt.proxy.wait", "timeoutSeconds": 1,
        "timeoutBehavior": "fallback_escalation", "timeoutMessageToUser": "Nobody is there.",
        "processBeforeForward": {"$fn": true}});
    assert_eq!(
        parsed(&wait),
        FlowEffect::ProxyWait(ProxyWaitEffect {
            timeout_ms: Some(1_000),
            timeout_behavior: ProxyTimeoutBehavior::FallbackEscalation,
            timeout_message_to_user: Some("Nobody is there.".into()),
            process_before_forward: true,
        })
    );
    let sleep = json!({"type": "interrupt.wait", "waitFor": "timeout", "timeoutSeconds": 5});
    assert_eq!(
        parsed(&sleep),
        FlowEffect::Wait(WaitEffect {
            wait_for: WaitFor::Timeout,
            timeout_ms: Some(5_000)
        })
    );
    let run = json!({"type": "workflow.run", "workflowId": "w", "input": [1], "wait": false,
        "timeoutSeconds": 5, "cancelOnTimeout": true, "surfaceInterrupts": true});
    assert_eq!(
        parsed(&run),
        FlowEffect::WorkflowRun(WorkflowRunEffect {
            workflow_id: "w".into(),
            input: Some(json!([1])),
            wait: false,
            timeout_ms: Some(5_000),
            cancel_on_timeout: true,
            surface_interrupts: true,
        })
    );
    // Z-58 (half: `onError: 'return'` is read)
    let tool = json!({"type": "tool", "name": "t", "args": {"a": 1}, "onError": "return"});
    let FlowEffect::Tool { on_error, args, .. } = parsed(&tool) else {
        panic!("a tool");
    };
    assert_eq!((on_error, &args["a"]), (ToolErrorMode::Return, &json!(1)));
}

#[test]
fn unknown_fields_and_null_are_ignored() {
    // Z-47 (half: unknown extra fields)
    let effect = json!({"type": "say", "text": "x", "mood": {"a": 1}, "reason": null});
    assert_eq!(parsed(&effect), FlowEffect::Say { text: "x".into() });
    let effect = json!({"type": "end", "reason": null});
    assert_eq!(parsed(&effect), FlowEffect::End { reason: None });
}

#[test]
fn blank_text_of_say_is_valid() {
    // Z-53 (half: the effect is accepted)
    assert_eq!(
        parsed(&json!({"type": "say", "text": " "})),
        FlowEffect::Say { text: " ".into() }
    );
}

#[test]
fn mode_of_a_proxy_sets_the_defaults_of_its_flags() {
    // Z-97 (half: modes and flags)
    let flags = |more: Value| {
        let mut effect = json!({"type": "interrupt.proxy.start", "target": "t"});
        effect
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().expect("fields"));
        match parsed(&effect) {
            FlowEffect::ProxyStart(start) => {
                let ProxyFlags {
                    forward_user_messages,
                    forward_admin_messages,
                    auto_prefix,
                } = start.flags();
                (forward_user_messages, forward_admin_messages, auto_prefix)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(flags(json!({})), (true, true, true));
    assert_eq!(
        flags(json!({"mode": "mirror", "autoPrefix": false})),
        (true, true, false)
    );
    assert_eq!(flags(json!({"mode": "shadow"})), (true, false, true));
    assert_eq!(
        flags(json!({"mode": "shadow", "forwardAdminMessages": true})),
        (true, true, true)
    );
}

#[test]
fn standard_schema_is_kept_for_its_realm() {
    let marker = json!({"$standard": true, "vendor": "zod"});
    let effect = json!({"type": "interrupt.confirm", "question": "?", "responseSchema": marker});
    let FlowEffect::Confirm(confirm) = parsed(&effect) else {
        panic!("a confirm");
    };
    assert_eq!(confirm.response_schema, Some(SchemaSource::Realm(marker)));
}

#[test]
fn stored_form_is_read_back() {
    for (effect, _) in minimal() {
        let read = parsed(&effect);
        let stored = serde_json::to_value(&read).expect("JSON");
        assert_eq!(
            serde_json::from_value::<FlowEffect>(stored).expect("an effect"),
            read
        );
    }
}
