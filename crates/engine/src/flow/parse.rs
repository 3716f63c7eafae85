//! Reads a yielded value as an effect. Every problem is listed; fields that no effect has are ignored.

use super::effect::{
    ConfirmEffect, EscalateEffect, EscalationMode, EscalationPriority, ProxyMode, ProxyStartEffect,
    ProxyTimeoutBehavior, ProxyWaitEffect, ToolErrorMode, WaitEffect, WaitFor, WorkflowRunEffect,
};
use super::{BadEffect, FlowEffect, MAX_REMINDERS, Reminder};
use crate::definition::nearest;
use crate::object_reader::{FieldProblems, ObjectReader};
use crate::value_kind::kind_of;
use serde_json::{Value, json};
use tandem_schema::Budget;

/// Ten years. A longer wait is a mistake in the unit.
pub(crate) const MAX_TIMEOUT_SECONDS: u64 = 10 * 366 * 24 * 60 * 60;
/// Keywords of one list.
pub(crate) const MAX_KEYWORDS: usize = 100;
/// People who may be named as approvers of one escalation.
const MAX_APPROVERS: usize = 50;

/// Stands for a yielded value that cannot be written as data. Its text says why.
const NOT_AN_EFFECT: &str = "$notAnEffect";

/// What the journal holds for a yielded value that is no data: it is refused with this problem.
pub fn not_an_effect(problem: &str) -> Value {
    json!({ NOT_AN_EFFECT: problem })
}

impl FlowEffect {
    pub fn parse(value: &Value) -> Result<Self, BadEffect> {
        let problems = FieldProblems::default();
        let effect = match value {
            Value::Object(_) => read(value, &problems),
            other => {
                let kind = kind_of(other);
                problems.report(
                    "",
                    format!("an effect is an object with a type, not {kind}"),
                );
                None
            }
        };
        let problems = problems.into_inner();
        match effect {
            Some(effect) if problems.is_empty() => Ok(effect),
            _ => Err(BadEffect {
                problems: problems
                    .into_iter()
                    .map(|p| line(&p.path, &p.message))
                    .collect(),
            }),
        }
    }
}

fn line(path: &str, message: &str) -> String {
    match path.strip_prefix('/') {
        Some(field) => format!("{field}: {message}"),
        None => message.to_owned(),
    }
}

fn read(value: &Value, problems: &FieldProblems) -> Option<FlowEffect> {
    if let Some(problem) = value.get(NOT_AN_EFFECT).and_then(Value::as_str) {
        problems.report("", problem);
        return None;
    }
    let fields = ObjectReader::new(value, "", problems)?;
    let type_name = fields.required_text("type");
    let effect = match type_name.as_str() {
        "say" => FlowEffect::Say {
            text: fields.any_text("text"),
        },
        "ask" => FlowEffect::Ask {
            key: fields.required_text("key"),
            text: fields.any_text("text"),
            reminders: reminders(&fields),
        },
        "tool" => tool(&fields),
        "handoff" => FlowEffect::Handoff {
            to: fields.required_text("to"),
            input: fields.get("input").cloned(),
        },
        "end" => FlowEffect::End {
            reason: fields.text("reason"),
        },
        "interrupt.confirm" => confirm(&fields),
        "interrupt.escalate" => escalate(&fields),
        "interrupt.wait" => wait(&fields),
        "interrupt.proxy.start" => proxy_start(&fields),
        "interrupt.proxy.wait" => proxy_wait(&fields),
        "interrupt.proxy.stop" => FlowEffect::ProxyStop {
            reason: fields.text("reason"),
        },
        "workflow.run" => workflow_run(&fields),
        "" => return None,
        unknown => {
            fields.report("type", unknown_type(unknown));
            return None;
        }
    };
    Some(effect)
}

fn unknown_type(name: &str) -> String {
    let short: String = name.chars().take(100).collect();
    match nearest(&short, FlowEffect::TYPES) {
        Some(meant) => format!("{short:?} is not an effect; did you mean `{meant}`?"),
        None => format!(
            "{short:?} is not an effect; there are {}",
            FlowEffect::TYPES.join(", ")
        ),
    }
}

fn timeout(fields: &ObjectReader<'_>) -> Option<u64> {
    fields.seconds_as_ms("timeoutSeconds", MAX_TIMEOUT_SECONDS)
}

fn required_choice<T: Copy>(fields: &ObjectReader<'_>, name: &str, among: &[(&str, T)]) -> T {
    if fields.get(name).is_none() {
        fields.report(name, "is required");
    }
    // The first stands in; with a problem reported the effect is refused.
    fields.choice(name, among).unwrap_or(among[0].1)
}

fn reminders(fields: &ObjectReader<'_>) -> Vec<Reminder> {
    let read = fields.objects("reminders", MAX_REMINDERS).into_iter();
    let read = read.map(|entry| {
        let after_ms = entry.seconds_as_ms("afterSeconds", MAX_TIMEOUT_SECONDS);
        if entry.get("afterSeconds").is_none() {
            entry.report("afterSeconds", "is required");
        }
        Reminder {
            after_ms: after_ms.unwrap_or_default(),
            text: entry.required_text("text"),
        }
    });
    read.collect()
}

fn tool(fields: &ObjectReader<'_>) -> FlowEffect {
    if fields.get("args").is_none() {
        fields.report("args", "is required; a tool without arguments takes {}");
    }
    let modes = [
        ("throw", ToolErrorMode::Throw),
        ("return", ToolErrorMode::Return),
    ];
    FlowEffect::Tool {
        name: fields.required_text("name"),
        args: fields.json_object("args").unwrap_or_default(),
        on_error: fields.choice("onError", &modes).unwrap_or_default(),
    }
}

fn confirm(fields: &ObjectReader<'_>) -> FlowEffect {
    let schema = fields.schema("responseSchema", &mut Budget::default());
    FlowEffect::Confirm(ConfirmEffect {
        question: fields.required_text("question"),
        id: fields.text("id"),
        timeout_ms: timeout(fields),
        positive_keywords: fields.texts("positiveKeywords", MAX_KEYWORDS),
        negative_keywords: fields.texts("negativeKeywords", MAX_KEYWORDS),
        response_schema: schema.map(|(source, _)| source),
        reminders: reminders(fields),
    })
}

fn escalate(fields: &ObjectReader<'_>) -> FlowEffect {
    let modes = [
        ("async_resolution", EscalationMode::AsyncResolution),
        ("live_takeover", EscalationMode::LiveTakeover),
    ];
    let priorities = [
        ("low", EscalationPriority::Low),
        ("normal", EscalationPriority::Normal),
        ("high", EscalationPriority::High),
        ("critical", EscalationPriority::Critical),
    ];
    let approvals = fields.integer("requiredApprovals", 1..=MAX_APPROVERS as u64);
    FlowEffect::Escalate(EscalateEffect {
        mode: required_choice(fields, "mode", &modes),
        reason: fields.required_text("reason"),
        id: fields.text("id"),
        priority: fields.choice("priority", &priorities).unwrap_or_default(),
        metadata: fields.json_object("metadata"),
        timeout_ms: timeout(fields),
        required_approvals: approvals.map_or(1, |count| count as u32),
        approvers: fields.texts("approvers", MAX_APPROVERS).unwrap_or_default(),
        queue: fields.text("queue"),
        assignee: fields.text("assignee"),
    })
}

fn wait(fields: &ObjectReader<'_>) -> FlowEffect {
    let kinds = [
        ("admin_resolution", WaitFor::AdminResolution),
        ("live_handback", WaitFor::LiveHandback),
        ("confirm_response", WaitFor::ConfirmResponse),
        ("timeout", WaitFor::Timeout),
    ];
    let wait_for = required_choice(fields, "waitFor", &kinds);
    if wait_for == WaitFor::Timeout && fields.get("timeoutSeconds").is_none() {
        fields.report("timeoutSeconds", "is required when waitFor is timeout");
    }
    FlowEffect::Wait(WaitEffect {
        wait_for,
        timeout_ms: timeout(fields),
    })
}

fn proxy_start(fields: &ObjectReader<'_>) -> FlowEffect {
    let modes = [("mirror", ProxyMode::Mirror), ("shadow", ProxyMode::Shadow)];
    FlowEffect::ProxyStart(ProxyStartEffect {
        target: fields.required_text("target"),
        mode: fields.choice("mode", &modes).unwrap_or_default(),
        replace: fields.flag("replace").unwrap_or_default(),
        timeout_ms: timeout(fields),
        forward_user_messages: fields.flag("forwardUserMessages"),
        forward_admin_messages: fields.flag("forwardAdminMessages"),
        auto_prefix: fields.flag("autoPrefix"),
    })
}

fn proxy_wait(fields: &ObjectReader<'_>) -> FlowEffect {
    let behaviors = [
        ("continue", ProxyTimeoutBehavior::Continue),
        ("end_proxy", ProxyTimeoutBehavior::EndProxy),
        (
            "fallback_escalation",
            ProxyTimeoutBehavior::FallbackEscalation,
        ),
    ];
    let hook = "processBeforeForward";
    let generator = fields.get(hook).and_then(|marker| marker.get("generator"));
    if generator.is_some_and(|generator| generator == true) {
        fields.report(hook, "must be an async function, not a generator function");
    }
    FlowEffect::ProxyWait(ProxyWaitEffect {
        timeout_ms: timeout(fields),
        timeout_behavior: fields
            .choice("timeoutBehavior", &behaviors)
            .unwrap_or_default(),
        timeout_message_to_user: fields.text("timeoutMessageToUser"),
        process_before_forward: fields.function(hook),
    })
}

fn workflow_run(fields: &ObjectReader<'_>) -> FlowEffect {
    FlowEffect::WorkflowRun(WorkflowRunEffect {
        workflow_id: fields.required_text("workflowId"),
        input: fields.get("input").cloned(),
        wait: fields.flag("wait").unwrap_or(true),
        timeout_ms: timeout(fields),
        cancel_on_timeout: fields.flag("cancelOnTimeout").unwrap_or_default(),
        surface_interrupts: fields.flag("surfaceInterrupts").unwrap_or_default(),
    })
}
