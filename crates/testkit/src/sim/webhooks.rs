//! One webhook that wants to hear of every beginning and every good end, whatever goes wrong.

use super::Simulation;
use super::check::{ensure, store_failed};
use super::client::tenant;
use std::collections::BTreeSet;
use tandem_record::{Recorded, RunId, Timestamp, Webhook, WebhookId};
use tandem_runtime::{Courier as _, DeliveryState, Runtime};

const EVENTS: [&str; 2] = ["run.started", "run.completed"];

pub(super) fn id() -> WebhookId {
    WebhookId::new("wh-sim")
}

/// Until it stands; registering the same one twice changes nothing.
pub(super) async fn register(runtime: &Runtime) {
    let webhook = Webhook {
        id: id(),
        tenant: tenant(),
        workspace: None,
        url: "https://example.com/".to_owned(),
        events: EVENTS.map(str::to_owned).into(),
        tags: Vec::new(),
        created_at: Timestamp(0),
        created_by: None,
        generation: 0,
        overlap_until: None,
    };
    while runtime.register_webhook(&webhook, None).await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// Every event it asked for was taken at least once, nothing else ever was, and its log says so.
pub(super) async fn heard_of_everything<'a>(
    sim: &Simulation,
    runtime: &Runtime,
    logs: impl Iterator<Item = (&'a RunId, &'a [Recorded])>,
) -> Result<(), String> {
    let mut wanted = BTreeSet::new();
    for (run, log) in logs {
        let named = |recorded: &&Recorded| {
            let name = sim.courier.event_type(&recorded.event);
            EVENTS.contains(&name)
        };
        wanted.extend(log.iter().filter(named).map(|r| (run.clone(), r.seq)));
    }
    let taken = sim.courier.taken(&id());
    let heard: BTreeSet<_> = taken.into_iter().map(|p| (p.run, p.seq)).collect();
    ensure(heard == wanted, || {
        let missed: Vec<_> = wanted.difference(&heard).collect();
        let made_up: Vec<_> = heard.difference(&wanted).collect();
        format!("the webhook missed {missed:?} and was told {made_up:?}, which never happened")
    })?;
    let log = runtime
        .webhook_deliveries(&id(), None, usize::MAX - 1)
        .await;
    let rows = log.map_err(store_failed)?.rows;
    let delivered = rows
        .iter()
        .filter(|row| row.progress.state == DeliveryState::Delivered);
    let delivered = delivered.count();
    ensure(delivered == wanted.len(), || {
        format!("{delivered} of {} deliveries are recorded", wanted.len())
    })
}
