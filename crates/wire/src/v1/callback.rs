//! What a run's `callbackUrl` receives when somebody is waited for: the question as the run's snapshot
//! shows it, with a link of its own to look at it and to answer.

use super::payload::Fields;
use super::project::{SignedLink, interrupt};
use serde_json::Value;
use tandem_record::{InterruptView, RunId, WorkflowId};

const TYPE: &str = "interrupt.requested";

pub struct CallbackNotification<'a> {
    pub run: &'a RunId,
    pub workflow: &'a WorkflowId,
    /// The run that started this one, and the one at the top of the family.
    pub parent_and_root: Option<(&'a RunId, &'a RunId)>,
    pub question: &'a InterruptView,
    pub link: &'a SignedLink,
    /// Where this host is reached, if it knows.
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

/// The headers of a webhook's delivery that make sense without a subscription: there is nobody's secret
/// to sign with. `id` is the same for every attempt.
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
