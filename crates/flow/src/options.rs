//! Effects with options, as data. The fields are those of the TypeScript helpers; what is not given is left
//! out, so that the agent's defaults apply.

use serde_json::{Value, json};
use tandem_record::Object;

/// The fields of an effect.
#[derive(Debug, Clone, PartialEq)]
struct Fields(Object);

impl Fields {
    fn new(kind: &str) -> Self {
        Self(Object::new()).with("type", kind)
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    fn with_reminder(mut self, after_seconds: u64, text: String) -> Self {
        let reminder = json!({ "afterSeconds": after_seconds, "text": text });
        let reminders = self.0.entry("reminders").or_insert_with(|| json!([]));
        if let Value::Array(reminders) = reminders {
            reminders.push(reminder);
        }
        self
    }
}

/// A question whose answer is any text.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask(Fields);

impl Ask {
    pub fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        let fields = Fields::new("ask").with("key", key.into());
        Self(fields.with("text", text.into()))
    }

    /// Sent when there is no answer by then.
    #[must_use]
    pub fn reminder(self, after_seconds: u64, text: impl Into<String>) -> Self {
        Self(self.0.with_reminder(after_seconds, text.into()))
    }

    pub(crate) fn into_effect(self) -> Value {
        Value::Object(self.0.0)
    }
}

/// A question that is answered by yes or no, or by a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirm(Fields);

impl Confirm {
    pub fn new(question: impl Into<String>) -> Self {
        Self(Fields::new("interrupt.confirm").with("question", question.into()))
    }

    /// Unique within the run; shown as the question's `clientId`.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        Self(self.0.with("id", id.into()))
    }

    #[must_use]
    pub fn timeout_seconds(self, seconds: u64) -> Self {
        Self(self.0.with("timeoutSeconds", seconds))
    }

    /// Replaces the agent's words for yes.
    #[must_use]
    pub fn positive<W: Into<String>>(self, words: impl IntoIterator<Item = W>) -> Self {
        Self(self.0.with("positiveKeywords", texts(words)))
    }

    /// Replaces the agent's words for no.
    #[must_use]
    pub fn negative<W: Into<String>>(self, words: impl IntoIterator<Item = W>) -> Self {
        Self(self.0.with("negativeKeywords", texts(words)))
    }

    /// A JSON Schema that the reply must fit. For [`confirm_as`](crate::FlowContext::confirm_as).
    #[must_use]
    pub fn response_schema(self, schema: Value) -> Self {
        Self(self.0.with("responseSchema", schema))
    }

    /// Sent when there is no answer by then.
    #[must_use]
    pub fn reminder(self, after_seconds: u64, text: impl Into<String>) -> Self {
        Self(self.0.with_reminder(after_seconds, text.into()))
    }

    pub(crate) fn into_effect(self) -> Value {
        Value::Object(self.0.0)
    }
}

impl From<&str> for Confirm {
    fn from(question: &str) -> Self {
        Self::new(question)
    }
}

impl From<String> for Confirm {
    fn from(question: String) -> Self {
        Self::new(question)
    }
}

/// A request for the decision of an admin.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalate(Fields);

impl Escalate {
    /// An admin decides; the flow waits with [`Wait::admin_resolution`].
    pub fn async_resolution(reason: impl Into<String>) -> Self {
        Self::in_mode("async_resolution", reason.into())
    }

    /// A person takes the conversation over; the flow waits with [`Wait::live_handback`].
    pub fn live_takeover(reason: impl Into<String>) -> Self {
        Self::in_mode("live_takeover", reason.into())
    }

    fn in_mode(mode: &str, reason: String) -> Self {
        let fields = Fields::new("interrupt.escalate").with("mode", mode);
        Self(fields.with("reason", reason))
    }

    /// Unique within the run.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        Self(self.0.with("id", id.into()))
    }

    /// `low`, `normal`, `high` or `critical`.
    #[must_use]
    pub fn priority(self, priority: &str) -> Self {
        Self(self.0.with("priority", priority))
    }

    /// An object that is shown to the admin.
    #[must_use]
    pub fn metadata(self, metadata: Value) -> Self {
        Self(self.0.with("metadata", metadata))
    }

    #[must_use]
    pub fn timeout_seconds(self, seconds: u64) -> Self {
        Self(self.0.with("timeoutSeconds", seconds))
    }

    pub(crate) fn into_effect(self) -> Value {
        Value::Object(self.0.0)
    }
}

/// A pause until one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait(Fields);

impl Wait {
    /// For the decision about the run's escalation.
    pub fn admin_resolution() -> Self {
        Self::of("admin_resolution")
    }

    /// For the end of the run's takeover.
    pub fn live_handback() -> Self {
        Self::of("live_handback")
    }

    /// For the user's next reply, read as that to a confirmation.
    pub fn confirm_response() -> Self {
        Self::of("confirm_response")
    }

    /// A durable sleep.
    pub fn timeout(seconds: u64) -> Self {
        Self::of("timeout").timeout_seconds(seconds)
    }

    fn of(event: &str) -> Self {
        Self(Fields::new("interrupt.wait").with("waitFor", event))
    }

    #[must_use]
    pub fn timeout_seconds(self, seconds: u64) -> Self {
        Self(self.0.with("timeoutSeconds", seconds))
    }

    pub(crate) fn into_effect(self) -> Value {
        Value::Object(self.0.0)
    }
}

/// A bridge between the user and a desk.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyStart(Fields);

impl ProxyStart {
    /// Both sides see each other. `target` is a key of the agent's `hitl.targets`.
    pub fn mirror(target: impl Into<String>) -> Self {
        Self::in_mode("mirror", target.into())
    }

    /// The desk watches and advises the flow; the user is not addressed.
    pub fn shadow(target: impl Into<String>) -> Self {
        Self::in_mode("shadow", target.into())
    }

    fn in_mode(mode: &str, target: String) -> Self {
        let fields = Fields::new("interrupt.proxy.start").with("mode", mode);
        Self(fields.with("target", target))
    }

    /// Takes the place of an active bridge.
    #[must_use]
    pub fn replace(self) -> Self {
        Self(self.0.with("replace", true))
    }

    /// The time of the whole bridge.
    #[must_use]
    pub fn timeout_seconds(self, seconds: u64) -> Self {
        Self(self.0.with("timeoutSeconds", seconds))
    }

    #[must_use]
    pub fn forward_user_messages(self, forwards: bool) -> Self {
        Self(self.0.with("forwardUserMessages", forwards))
    }

    #[must_use]
    pub fn forward_admin_messages(self, forwards: bool) -> Self {
        Self(self.0.with("forwardAdminMessages", forwards))
    }

    #[must_use]
    pub fn auto_prefix(self, is_on: bool) -> Self {
        Self(self.0.with("autoPrefix", is_on))
    }

    pub(crate) fn into_effect(self) -> Value {
        Value::Object(self.0.0)
    }
}

/// A pause until an admin writes for the bridge.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyWait(Fields);

impl Default for ProxyWait {
    fn default() -> Self {
        Self::new()
    }
}

impl ProxyWait {
    pub fn new() -> Self {
        Self(Fields::new("interrupt.proxy.wait"))
    }

    #[must_use]
    pub fn timeout_seconds(self, seconds: u64) -> Self {
        Self(self.0.with("timeoutSeconds", seconds))
    }

    /// When nobody writes in time, the bridge stays.
    #[must_use]
    pub fn continue_on_timeout(self) -> Self {
        Self(self.0.with("timeoutBehavior", "continue"))
    }

    /// When nobody writes in time, the bridge is stopped.
    #[must_use]
    pub fn end_proxy_on_timeout(self) -> Self {
        Self(self.0.with("timeoutBehavior", "end_proxy"))
    }

    /// When nobody writes in time, the bridge is stopped and an escalation is opened.
    #[must_use]
    pub fn escalate_on_timeout(self) -> Self {
        Self(self.0.with("timeoutBehavior", "fallback_escalation"))
    }

    /// What the user is told then.
    #[must_use]
    pub fn timeout_message_to_user(self, text: impl Into<String>) -> Self {
        Self(self.0.with("timeoutMessageToUser", text.into()))
    }

    pub(crate) fn into_effect(self) -> Value {
        Value::Object(self.0.0)
    }
}

/// A workflow to run.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowRun(Fields);

impl WorkflowRun {
    pub fn new(workflow_id: impl Into<String>) -> Self {
        Self(Fields::new("workflow.run").with("workflowId", workflow_id.into()))
    }

    #[must_use]
    pub fn input(self, input: Value) -> Self {
        Self(self.0.with("input", input))
    }

    /// The flow goes on while the workflow runs.
    #[must_use]
    pub fn detached(self) -> Self {
        Self(self.0.with("wait", false))
    }

    #[must_use]
    pub fn timeout_seconds(self, seconds: u64) -> Self {
        Self(self.0.with("timeoutSeconds", seconds))
    }

    pub(crate) fn into_effect(self) -> Value {
        Value::Object(self.0.0)
    }
}

fn texts<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Vec<String> {
    words.into_iter().map(Into::into).collect()
}
