//! The interface to the sender of webhooks, which owns the wire format, the secrets and the
//! network.

use async_trait::async_trait;
use tandem_record::{
    EffectId, Event, InterruptView, Owner, Principal, RecordedEvent, RunId, Sensitivity, Timestamp,
    TraceContext, Webhook, WebhookId, WorkflowId,
};
use tandem_store::{Fault, RunRow};

/// One attempt at one delivery.
pub struct WebhookDelivery<'a> {
    pub webhook: &'a Webhook,
    pub run: &'a RunRow,
    pub recorded: &'a RecordedEvent,
    /// Values that must be masked before sending.
    pub sensitivity: &'a Sensitivity,
    pub trace: Option<&'a TraceContext>,
    pub sent_at: Timestamp,
}

impl WebhookDelivery<'_> {
    /// The same for every attempt at this delivery.
    pub fn id(&self) -> String {
        let event = self.run.run_id.event_id(self.recorded.seq);
        format!("{}:{event}", self.webhook.id)
    }
}

/// One attempt to notify a run's callback of a question.
pub struct Announcement<'a> {
    /// The same for every attempt.
    pub id: &'a EffectId,
    pub url: &'a str,
    pub run: &'a RunId,
    pub workflow: &'a WorkflowId,
    /// The parent run, and the root of the run tree.
    pub parent_and_root: Option<(&'a RunId, &'a RunId)>,
    pub question: &'a InterruptView,
    /// Whether the link in it may decide, or only show.
    pub may_answer: bool,
    /// Who started the run, and so whom the link is issued to.
    pub issued_to: Option<&'a Principal>,
    pub trace: Option<&'a TraceContext>,
    pub sent_at: Timestamp,
}

/// What whoever started a run may do, judged by their good keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StarterAccess {
    pub may_read: bool,
    pub may_answer: bool,
}

#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// The public name of an event, by which subscriptions filter.
    fn event_type(&self, event: &Event) -> &'static str;

    /// Whether a target may be called at all; the reason if not.
    async fn vet(&self, url: &str) -> Result<(), String>;

    /// The secret of one generation of a subscription. Shown to its owner once.
    fn secret(&self, webhook: &WebhookId, generation: u32) -> String;

    /// Whether the principal that registered the subscription may still read its events.
    async fn may_receive(&self, webhook: &Webhook, now: Timestamp) -> Result<bool, Fault>;

    /// What whoever started a run may do with its questions now.
    async fn starter_access(&self, owner: &Owner, now: Timestamp) -> Result<StarterAccess, Fault>;

    /// Attempts a delivery once, within a bounded time. What came of it, in words that hold no
    /// secret.
    async fn deliver(&self, delivery: &WebhookDelivery<'_>) -> Result<String, String>;

    /// Attempts an announcement once, under the same rules.
    async fn announce(&self, announcement: &Announcement<'_>) -> Result<String, String>;
}
