//! Bridges to desks: what they relay, from their start to their end.

use super::{Logs, SessionLog, ensure, store_failed};
use crate::sim::conversations::{Conversations, tenants};
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::conversation::{
    FlowRecord, ProxyBridge, ProxyDirection, ProxyStatus, ProxyTimeoutScope,
    SessionEventBody as Body, TurnCause,
};
use tandem_record::{EffectId, MessageId, ProxyId};
use tandem_runtime::Runtime;
use tandem_store::{ListingPage, ProxyFilter};

/// Bridges that a session has had, and what they relayed.
#[derive(Default)]
pub(super) struct Relayed {
    pub(super) bridges: BTreeMap<ProxyId, ProxyBridge>,
    pub(super) forwarded: u64,
}

/// One session while it is read.
#[derive(Default)]
struct Reading<'a> {
    found: Relayed,
    open: Option<ProxyId>,
    /// Of this one and of those before it: what relayed what from which side.
    sources: BTreeSet<(&'a ProxyId, bool, &'a MessageId)>,
    /// Messages of the user.
    messages: BTreeSet<&'a MessageId>,
    inputs: BTreeSet<(&'a ProxyId, &'a MessageId)>,
    /// Input that waits for the flow, the oldest first.
    kept: Vec<(&'a ProxyId, &'a MessageId)>,
    queued: BTreeMap<&'a EffectId, (&'a str, Option<&'a str>)>,
}

/// Z-94, Z-95, Z-101, Z-107, Z-109: a session has one bridge at most; what a bridge relays came from the other side, is
/// relayed once, and never after the bridge has ended; kept input is used in order.
pub(super) fn check(log: &SessionLog) -> Result<Relayed, String> {
    let mut reading = Reading::default();
    let mut before = None;
    for event in &log.events {
        let body = &event.event.body;
        ensure(reading.follows(log, body, before), || {
            format!("{} does not keep its bridge: {body:?}", log.id)
        })?;
        if let Body::ProxyStarted { bridge, .. } = body {
            check_identity(log, bridge)?;
        }
        if let Body::ProxyStopped { proxy_id, reason } = body
            && let Some(bridge) = reading.found.bridges.get_mut(proxy_id)
        {
            bridge.status = ProxyStatus::Stopped;
            bridge.stopped_at = Some(event.at);
            bridge.stop_reason = Some(reason.clone());
        }
        before = Some(body);
    }
    ensure(reading.open.is_none(), || {
        format!("{} ended with the bridge {:?}", log.id, reading.open)
    })?;
    Ok(reading.found)
}

impl<'a> Reading<'a> {
    fn is_open(&self, proxy: &ProxyId) -> bool {
        self.open.as_ref() == Some(proxy)
    }

    fn follows(&mut self, log: &SessionLog, body: &'a Body, before: Option<&Body>) -> bool {
        match body {
            Body::MessageReceived { message, .. } => {
                self.messages.insert(&message.message_id);
                true
            }
            Body::ResponseQueued {
                effect_id,
                to,
                transport,
                ..
            } => {
                self.queued.insert(effect_id, (to, transport.as_deref()));
                true
            }
            Body::ProxyStarted { bridge, replaces } => {
                let stopped = match before {
                    Some(Body::ProxyStopped { proxy_id, reason }) if reason == "replaced" => {
                        Some(proxy_id)
                    }
                    _ => None,
                };
                let fits = self.open.is_none() && replaces.as_ref() == stopped;
                let known = self
                    .found
                    .bridges
                    .insert(bridge.id.clone(), (**bridge).clone());
                self.open = Some(bridge.id.clone());
                fits && known.is_none()
            }
            Body::ProxyStopped { proxy_id, .. } => {
                self.kept.clear();
                self.open.take().as_ref() == Some(proxy_id)
            }
            Body::ProxyInputReceived {
                proxy_id,
                input,
                kept,
                ..
            } => {
                if *kept {
                    self.kept.push((proxy_id, &input.id));
                }
                self.is_open(proxy_id) && self.inputs.insert((proxy_id, &input.id))
            }
            Body::ProxyInputTaken { proxy_id, input_id } => {
                let oldest = (!self.kept.is_empty()).then(|| self.kept.remove(0));
                self.is_open(proxy_id) && oldest == Some((proxy_id, input_id))
            }
            Body::ProxyForwarded {
                proxy_id,
                direction,
                source_message_id,
                effect_id,
                ..
            } => {
                self.found.forwarded += 1;
                let is_from_user = *direction == ProxyDirection::UserToAdmin;
                let source = (proxy_id, is_from_user, source_message_id);
                let came = match is_from_user {
                    true => self.messages.contains(source_message_id),
                    false => self.inputs.contains(&(proxy_id, source_message_id)),
                };
                let bridge = self.found.bridges.get(proxy_id);
                let start = log.folded.start();
                let goes_to = match (direction, bridge) {
                    (ProxyDirection::UserToAdmin, Some(bridge)) => {
                        Some((bridge.address.as_str(), Some(bridge.transport.as_str())))
                    }
                    (ProxyDirection::AdminToUser, _) => Some((start.address.as_str(), None)),
                    (ProxyDirection::UserToAdmin, None) => None,
                };
                let is_queued = goes_to.is_some() && self.queued.get(effect_id) == goes_to.as_ref();
                self.is_open(proxy_id) && self.sources.insert(source) && came && is_queued
            }
            Body::ProxyTimedOut {
                proxy_id,
                scope: ProxyTimeoutScope::Bridge,
                ..
            } => self.is_open(proxy_id),
            _ => true,
        }
    }
}

/// The flow that opened it was told the same id that the session has, however often its step was decided.
fn check_identity(log: &SessionLog, bridge: &ProxyBridge) -> Result<(), String> {
    let flow = log.flow_runs.get(&bridge.flow_run_id);
    let journal = flow.map(|flow| flow.journal.as_slice()).unwrap_or_default();
    let told = journal.iter().filter(|record| match &record.event {
        FlowRecord::Result {
            value: Some(value), ..
        } => value["proxyId"] == bridge.id.as_str() && value["startedAt"].is_string(),
        _ => false,
    });
    ensure(told.count() == 1, || {
        format!("the flow of {} was not told of {} once", log.id, bridge.id)
    })
}

/// The rows are those of the logs; what admins were shown and what was accepted of them is in the logs, once.
pub(super) async fn check_all(
    sim: &Conversations,
    runtime: &Runtime,
    logs: &Logs,
    relayed: &BTreeMap<&ProxyId, &ProxyBridge>,
) -> Result<(), String> {
    let page = ListingPage {
        after: None,
        limit: 10_000,
    };
    let mut rows = BTreeMap::new();
    for tenant in tenants() {
        let filter = ProxyFilter::default();
        let listed = runtime.store().list_proxies(&tenant, &filter, &page).await;
        let listed = listed.map_err(store_failed)?.map(|listing| listing.rows);
        for row in listed.unwrap_or_default() {
            let bridge: ProxyBridge = serde_json::from_str(&row.body).map_err(|e| e.to_string())?;
            let same = bridge.id == row.proxy_id && bridge.status == row.status;
            ensure(same, || format!("the row of {} is {row:?}", bridge.id))?;
            rows.insert(row.proxy_id, bridge);
        }
    }
    let stored: BTreeMap<_, _> = rows.iter().collect();
    ensure(stored == *relayed, || {
        format!("bridges are stored as {stored:?}, the logs have {relayed:?}")
    })?;
    let mut accepted = BTreeMap::new();
    for log in logs.sessions.values() {
        for event in &log.events {
            if let Body::TurnQueued {
                cause: TurnCause::ProxyInput { proxy, input },
            } = &event.event.body
            {
                let place = (log.id.clone(), event.event.turn);
                let again = accepted.insert((proxy.clone(), input.id.clone()), place);
                ensure(again.is_none(), || {
                    format!("{proxy} accepts {} twice", input.id)
                })?;
            }
        }
    }
    let observed = sim.observed.lock();
    for input in &observed.inputs {
        let found = accepted.get(&(input.proxy.clone(), input.id.clone()));
        let claimed = (input.claim.session_id.clone(), Some(input.claim.turn));
        ensure(found == Some(&claimed), || {
            format!("{input:?} was accepted, but the log has {found:?}")
        })?;
    }
    for proxy in observed.bridges.keys() {
        ensure(relayed.contains_key(proxy), || {
            format!("{proxy} was shown and is in no log")
        })?;
    }
    Ok(())
}
