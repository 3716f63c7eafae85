//! A courier that answers by script and remembers what it was given.

use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tandem_record::{Event, InterruptId, RunId, Seq, Timestamp, Webhook, WebhookId};
use tandem_runtime::{Announcement, Courier, Parcel};
use tandem_store::Fault;

/// How a target behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Well,
    /// Answers with an error until this moment.
    DownUntil(Timestamp),
    /// Refuses one event for ever, and takes the others.
    Poisoned(Seq),
    /// Never answers; the call gives up after a while.
    Hangs,
}

/// One attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    pub parcel: String,
    pub webhook: WebhookId,
    pub run: RunId,
    pub seq: Seq,
    pub at: Timestamp,
    pub taken: bool,
}

/// One attempt to tell a callback of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    pub id: String,
    pub url: String,
    pub run: RunId,
    /// Its parent and the top of its family.
    pub family: Option<(RunId, RunId)>,
    pub interrupt: InterruptId,
    pub may_answer: bool,
    pub at: Timestamp,
    pub taken: bool,
}

#[derive(Default)]
pub struct ScriptedCourier {
    targets: Mutex<HashMap<WebhookId, Target>>,
    carried: Mutex<Vec<Carried>>,
    callbacks: Mutex<HashMap<String, Target>>,
    announced: Mutex<Vec<Announced>>,
}

impl ScriptedCourier {
    /// How long a call to a hanging target takes.
    pub const PATIENCE: Duration = Duration::from_secs(5);

    pub fn set(&self, webhook: &WebhookId, target: Target) {
        self.targets.lock().insert(webhook.clone(), target);
    }

    /// Whether a target takes what is sent to it now. Time is the simulation's: its clock is paused.
    async fn takes(target: Option<Target>, sent_at: Timestamp, seq: Option<Seq>) -> bool {
        match target.unwrap_or(Target::Well) {
            Target::Well => true,
            Target::DownUntil(until) => sent_at >= until,
            Target::Poisoned(poison) => seq != Some(poison),
            Target::Hangs => {
                tokio::time::sleep(Self::PATIENCE).await;
                false
            }
        }
    }

    /// How the callback at an address behaves.
    pub fn set_callback(&self, url: &str, target: Target) {
        self.callbacks.lock().insert(url.to_owned(), target);
    }

    pub fn announced(&self) -> Vec<Announced> {
        self.announced.lock().clone()
    }

    pub fn carried(&self) -> Vec<Carried> {
        self.carried.lock().clone()
    }

    /// What a target took, in order.
    pub fn taken(&self, webhook: &WebhookId) -> Vec<Carried> {
        let mut carried = self.carried();
        carried.retain(|parcel| parcel.taken && parcel.webhook == *webhook);
        carried
    }
}

#[async_trait]
impl Courier for ScriptedCourier {
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

    async fn deliver(&self, parcel: &Parcel<'_>) -> Result<String, String> {
        let id = &parcel.webhook.id;
        let target = self.targets.lock().get(id).copied();
        let taken = Self::takes(target, parcel.sent_at, Some(parcel.recorded.seq)).await;
        self.carried.lock().push(Carried {
            parcel: parcel.id(),
            webhook: id.clone(),
            run: parcel.run.run_id.clone(),
            seq: parcel.recorded.seq,
            at: parcel.sent_at,
            taken,
        });
        if taken {
            Ok("answered 200".to_owned())
        } else {
            Err("answered 500".to_owned())
        }
    }

    async fn announce(&self, told: &Announcement<'_>) -> Result<String, String> {
        let target = self.callbacks.lock().get(told.url).copied();
        let taken = Self::takes(target, told.sent_at, None).await;
        self.announced.lock().push(Announced {
            id: told.id.to_string(),
            url: told.url.to_owned(),
            run: told.run.clone(),
            family: told.family.map(|(p, r)| (p.clone(), r.clone())),
            interrupt: told.question.interrupt.id.clone(),
            may_answer: told.may_answer,
            at: told.sent_at,
            taken,
        });
        if taken {
            Ok("answered 200".to_owned())
        } else {
            Err("answered 500".to_owned())
        }
    }
}
