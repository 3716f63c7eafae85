//! The body sent to a run's `callbackUrl` when an interrupt is opened: the interrupt as in the
//! run's snapshot, with a signed link to read and answer it.

use super::project::{SignedLink, interrupt};
use crate::fields::{Fields, WriteFields};
use serde_json::Value;
use tandem_record::{InterruptView, RunId, WorkflowId};

const TYPE: &str = "interrupt.requested";

pub struct CallbackNotification<'a> {
    pub run: &'a RunId,
    pub workflow: &'a WorkflowId,
    /// The parent run and the root of the run tree.
    pub parent_and_root: Option<(&'a RunId, &'a RunId)>,
    pub question: &'a InterruptView,
    pub link: &'a SignedLink,
    /// The public URL of this host, or empty.
    pub base: &'a str,
}

pub fn body(notification: &CallbackNotification<'_>) -> Value {
    let mut out = Fields::default();
    out.set("type", TYPE);
    out.set("runId", notification.run);
    out.set("workflowId", notification.workflow);
    if let Some((parent, root)) = notification.parent_and_root {
        out.set("parentRunId", parent);
        out.set("rootRunId", root);
    }
    let question = interrupt(
        notification.question,
        Some(notification.link),
        notification.base,
    );
    out.set("interrupt", question);
    Value::Object(out.0)
}

/// The webhook headers that apply without a subscription: there is no secret to sign with. `id` is
/// the same for every attempt.
pub fn headers(id: &str, timestamp: &str) -> Vec<(&'static str, String)> {
    [
        ("X-openwop-Event-Type", TYPE),
        ("X-openwop-Timestamp", timestamp),
        ("OpenWOP-Event-Type", TYPE),
        ("OpenWOP-Timestamp", timestamp),
        ("Idempotency-Key", id),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}
