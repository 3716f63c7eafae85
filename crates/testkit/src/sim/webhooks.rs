//! One webhook that must get every start and every successful end, whatever fails.

use super::Simulation;
use super::check::{ensure, store_failed};
use super::client::tenant;
use std::collections::BTreeSet;
use tandem_record::{RecordedEvent, RunId, Timestamp, Webhook, WebhookId};
use tandem_runtime::{DeliveryState, Runtime, WebhookSender as _};

const EVENTS: [&str; 2] = ["run.started", "run.completed"];

pub(super) fn id() -> WebhookId {
    WebhookId::new("wh-sim")
}

/// Retried until it succeeds; registering the same one twice changes nothing.
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
        earlier_overlaps: Vec::new(),
    };
    while runtime.register_webhook(&webhook, None).await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// Every subscribed event was accepted at least once, no other event ever, and the delivery log
/// agrees.
pub(super) async fn check_all_events_delivered<'a>(
    sim: &Simulation,
    runtime: &Runtime,
    logs: impl Iterator<Item = (&'a RunId, &'a [RecordedEvent])>,
) -> Result<(), String> {
    let mut expected = BTreeSet::new();
    let mut kept = BTreeSet::new();
    for (run, log) in logs {
        kept.insert(run);
        let named = |recorded: &&RecordedEvent| {
            let name = sim.webhook_sender.event_type(&recorded.event);
            EVENTS.contains(&name)
        };
        expected.extend(log.iter().filter(named).map(|r| (run.clone(), r.seq)));
    }
    let accepted = sim.webhook_sender.accepted(&id());
    let accepted = accepted.into_iter().filter(|p| kept.contains(&p.run));
    let delivered_events: BTreeSet<_> = accepted.map(|p| (p.run, p.seq)).collect();
    ensure(delivered_events == expected, || {
        let missed: Vec<_> = expected.difference(&delivered_events).collect();
        let unexpected: Vec<_> = delivered_events.difference(&expected).collect();
        format!("the webhook missed {missed:?} and got unexpected {unexpected:?}")
    })?;
    let log = runtime
        .webhook_deliveries(&id(), None, usize::MAX - 1)
        .await;
    let rows = log.map_err(store_failed)?.rows;
    let delivered = rows
        .iter()
        .filter(|row| row.progress.state == DeliveryState::Delivered && kept.contains(&row.run_id));
    let delivered = delivered.count();
    ensure(delivered == expected.len(), || {
        format!("{delivered} of {} deliveries are recorded", expected.len())
    })
}
