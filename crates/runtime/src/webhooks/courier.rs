//! The seam to whoever really delivers: knows the wire, the secrets and the network.

use async_trait::async_trait;
use tandem_record::{Event, Recorded, Sensitivity, Timestamp, TraceContext, Webhook, WebhookId};
use tandem_store::RunRow;

/// One attempt at one delivery.
pub struct Parcel<'a> {
    pub webhook: &'a Webhook,
    pub run: &'a RunRow,
    pub recorded: &'a Recorded,
    /// What must not leave the house as it is.
    pub sensitivity: &'a Sensitivity,
    pub trace: Option<&'a TraceContext>,
    pub sent_at: Timestamp,
}

impl Parcel<'_> {
    /// The same for every attempt at this delivery.
    pub fn id(&self) -> String {
        let event = self.run.run_id.event_id(self.recorded.seq);
        format!("{}:{event}", self.webhook.id)
    }
}

#[async_trait]
pub trait Courier: Send + Sync {
    /// The public name of an event, which subscriptions choose by.
    fn event_type(&self, event: &Event) -> &'static str;

    /// Whether a target may be called at all; the reason if not.
    async fn vet(&self, url: &str) -> Result<(), String>;

    /// The secret of one generation of a subscription. Shown to its owner once.
    fn secret(&self, webhook: &WebhookId, generation: u32) -> String;

    /// Attempts a delivery once, within a bounded time. What came of it, in words that hold no
    /// secret.
    async fn deliver(&self, parcel: &Parcel<'_>) -> Result<String, String>;
}
