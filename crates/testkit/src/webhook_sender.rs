//! A scripted webhook sender that records every attempt.

use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tandem_record::{Event, InterruptId, Owner, RunId, Seq, Timestamp, Webhook, WebhookId};
use tandem_runtime::{Announcement, StarterAccess, WebhookDelivery, WebhookSender};
use tandem_store::Fault;

/// How a target behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetBehavior {
    Healthy,
    /// Replies with an error until this time.
    DownUntil(Timestamp),
    /// Rejects one event always, and accepts the others.
    Poisoned(Seq),
    /// Never replies; the call times out.
    Hangs,
}

/// One attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub delivery_id: String,
    pub webhook: WebhookId,
    pub run: RunId,
    pub seq: Seq,
    pub at: Timestamp,
    pub accepted: bool,
}

/// One attempt to notify a callback of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncementAttempt {
    pub id: String,
    pub url: String,
    pub run: RunId,
    /// Its parent and the root of the run tree.
    pub parent_and_root: Option<(RunId, RunId)>,
    pub interrupt: InterruptId,
    pub may_answer: bool,
    pub at: Timestamp,
    pub accepted: bool,
}

#[derive(Default)]
pub struct ScriptedWebhookSender {
    targets: Mutex<HashMap<WebhookId, TargetBehavior>>,
    attempts: Mutex<Vec<DeliveryAttempt>>,
    callbacks: Mutex<HashMap<String, TargetBehavior>>,
    announcements: Mutex<Vec<AnnouncementAttempt>>,
    starter_access: Mutex<Option<StarterAccess>>,
}

impl ScriptedWebhookSender {
    /// How long a call to a hanging target takes.
    pub const HANG_TIMEOUT: Duration = Duration::from_secs(5);

    pub fn set(&self, webhook: &WebhookId, target: TargetBehavior) {
        self.targets.lock().insert(webhook.clone(), target);
    }

    /// Whether a target accepts what is sent now. Uses the simulation's time: the real clock is
    /// paused.
    async fn takes(target: Option<TargetBehavior>, sent_at: Timestamp, seq: Option<Seq>) -> bool {
        match target.unwrap_or(TargetBehavior::Healthy) {
            TargetBehavior::Healthy => true,
            TargetBehavior::DownUntil(until) => sent_at >= until,
            TargetBehavior::Poisoned(poison) => seq != Some(poison),
            TargetBehavior::Hangs => {
                tokio::time::sleep(Self::HANG_TIMEOUT).await;
                false
            }
        }
    }

    /// Sets the behaviour of the callback at a URL.
    pub fn set_callback(&self, url: &str, target: TargetBehavior) {
        self.callbacks.lock().insert(url.to_owned(), target);
    }

    /// What those who started runs may do from now on; everything when this is not called.
    pub fn set_starter_access(&self, access: StarterAccess) {
        *self.starter_access.lock() = Some(access);
    }

    pub fn announcements(&self) -> Vec<AnnouncementAttempt> {
        self.announcements.lock().clone()
    }

    pub fn attempts(&self) -> Vec<DeliveryAttempt> {
        self.attempts.lock().clone()
    }

    /// Accepted deliveries of a webhook, in order.
    pub fn accepted(&self, webhook: &WebhookId) -> Vec<DeliveryAttempt> {
        let mut attempts = self.attempts();
        attempts.retain(|attempt| attempt.accepted && attempt.webhook == *webhook);
        attempts
    }
}

#[async_trait]
impl WebhookSender for ScriptedWebhookSender {
    fn event_type(&self, event: &Event) -> &'static str {
        match event {
            Event::RunStarted { .. } => "run.started",
            Event::RunCompleted { .. } => "run.completed",
            Event::NodeCompleted { .. } => "node.completed",
            _ => "other",
        }
    }

    async fn vet(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn secret(&self, webhook: &WebhookId, generation: u32) -> String {
        format!("secret-{generation}-of-{webhook}")
    }

    async fn may_receive(&self, _: &Webhook, _: Timestamp) -> Result<bool, Fault> {
        Ok(true)
    }

    async fn starter_access(&self, _: &Owner, _: Timestamp) -> Result<StarterAccess, Fault> {
        let everything = StarterAccess {
            may_read: true,
            may_answer: true,
        };
        Ok(self.starter_access.lock().unwrap_or(everything))
    }

    async fn deliver(&self, delivery: &WebhookDelivery<'_>) -> Result<String, String> {
        let id = &delivery.webhook.id;
        let target = self.targets.lock().get(id).copied();
        let accepted = Self::takes(target, delivery.sent_at, Some(delivery.recorded.seq)).await;
        self.attempts.lock().push(DeliveryAttempt {
            delivery_id: delivery.id(),
            webhook: id.clone(),
            run: delivery.run.run_id.clone(),
            seq: delivery.recorded.seq,
            at: delivery.sent_at,
            accepted,
        });
        if accepted {
            Ok("answered 200".to_owned())
        } else {
            Err("answered 500".to_owned())
        }
    }

    async fn announce(&self, announcement: &Announcement<'_>) -> Result<String, String> {
        let target = self.callbacks.lock().get(announcement.url).copied();
        let accepted = Self::takes(target, announcement.sent_at, None).await;
        self.announcements.lock().push(AnnouncementAttempt {
            id: announcement.id.to_string(),
            url: announcement.url.to_owned(),
            run: announcement.run.clone(),
            parent_and_root: announcement
                .parent_and_root
                .map(|(p, r)| (p.clone(), r.clone())),
            interrupt: announcement.question.interrupt.id.clone(),
            may_answer: announcement.may_answer,
            at: announcement.sent_at,
            accepted,
        });
        if accepted {
            Ok("answered 200".to_owned())
        } else {
            Err("answered 500".to_owned())
        }
    }
}
