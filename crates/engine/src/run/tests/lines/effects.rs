//! Effects, timers and children as one line each.

use super::text;
use crate::run::NewChildRun;
use tandem_record::{ChildOutcome, Effect, EffectKind, TimerKey, Timestamp, ToolOperation, Work};

/// A new effect, marked to distinguish it from an event.
pub(in crate::run::tests) fn effect(effect: &Effect) -> String {
    match &effect.kind {
        EffectKind::Http {
            node,
            attempt,
            request,
        } => format!(
            "> http {node} {} {} attempt={attempt}",
            request.method, request.url
        ),
        EffectKind::Model {
            node,
            attempt,
            request,
            ..
        } => format!(
            "> model {node} {}/{} messages={} budget={:?} attempt={attempt}",
            request.provider,
            request.model,
            request.messages.len(),
            request.max_output_tokens
        ),
        EffectKind::Tool {
            node,
            attempt,
            request,
        } => {
            let operation = match &request.operation {
                ToolOperation::Call { tool, arguments } => format!("{tool} {}", text(arguments)),
                ToolOperation::List { cursor } => format!("list {cursor:?}"),
                ToolOperation::Read { uri } => format!("read {uri}"),
            };
            format!(
                "> tool {node} {}/{operation} attempt={attempt}",
                request.server
            )
        }
        EffectKind::Pack {
            node,
            attempt,
            call,
        } => format!(
            "> pack {node} {} {} attempt={attempt}",
            call.type_id,
            text(&call.inputs)
        ),
        EffectKind::SecretEcho {
            node, secret_id, ..
        } => format!("> secret {node} {secret_id}"),
        EffectKind::NotifySession { to, result } => format!(
            "> notify_session {} {} {} {:?} {:?}",
            to.session_id, to.interrupt_id, result.status, result.output, result.error
        ),
        EffectKind::AskSession { to, question } => format!(
            "> ask_session {} {} {}",
            to.session_id, question.kind, question.interrupt_id
        ),
        EffectKind::CloseSessionQuestion { to, closed } => format!(
            "> close_session_question {} {} {}",
            to.session_id, closed.interrupt_id, closed.outcome
        ),
        EffectKind::NotifyParent { node, outcome, .. } => match outcome {
            ChildOutcome::Ended {
                status, variables, ..
            } => format!(
                "> tell parent {node} {} {}",
                status.as_str(),
                text(variables)
            ),
            ChildOutcome::Waiting { .. } => format!("> tell parent {node} waiting"),
            ChildOutcome::Resumed { .. } => format!("> tell parent {node} resumed"),
        },
        EffectKind::CancelChild { .. } => "> cancel child".to_owned(),
        EffectKind::StartFlow { node, .. } => format!("> start flow {node}"),
        EffectKind::CancelFlow { node, .. } => format!("> cancel flow {node}"),
        EffectKind::NotifyCallback { .. } => "> announce".to_owned(),
        EffectKind::NotifyPeople { to, .. } => format!("> tell {to}"),
        EffectKind::Continue => "> continue".to_owned(),
    }
}

/// A child that is created.
pub(in crate::run::tests) fn new_child(new_child: &NewChildRun) -> String {
    format!(
        "> start {} {} erased={:?}{}",
        new_child.definition.id(),
        text(&new_child.request.inputs),
        new_child.request.erased_defaults,
        if new_child.cancelled_at_creation {
            " given up"
        } else {
            ""
        }
    )
}

pub(in crate::run::tests) fn timer(key: &TimerKey) -> String {
    match key {
        TimerKey::RunDeadline => "run-deadline".to_owned(),
        TimerKey::NodeWake { node, attempt } => format!("wake {node} {attempt}"),
        TimerKey::NodeDeadline { node, attempt } => format!("deadline {node} {attempt}"),
        TimerKey::InterruptDeadline { node } => format!("interrupt {node}"),
        TimerKey::Trigger { id } => format!("trigger {id}"),
    }
}

pub(super) fn waits(work: &Work, at: Timestamp) -> String {
    match work {
        Work::Sleep { until, .. } => format!("sleep={}", until.ms_since(at)),
        Work::Http { .. } => "http".to_owned(),
        Work::Model { mock: Some(_), .. } => "mock".to_owned(),
        Work::Model { .. } => "model".to_owned(),
        Work::Tool { .. } => "tool".to_owned(),
        Work::SecretEcho { .. } => "secret".to_owned(),
        Work::Pack { pack, .. } => pack.clone(),
        Work::Child { .. } => "child".to_owned(),
        Work::Flow { .. } => "flow".to_owned(),
    }
}
