//! Texts on their way to people.

use super::{Logs, ensure};
use crate::sim::conversations::{Conversations, TENANTS};
use std::collections::BTreeMap;
use tandem_record::conversation::SessionEventBody as Body;
use tandem_record::{AgentId, EffectId, TenantId};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Final {
    Sent,
    Failed,
    /// A person took over before.
    Suppressed,
}

struct Queued<'a> {
    text: &'a str,
    to: &'a str,
    tenant: &'a TenantId,
    agent: &'a AgentId,
    is: Option<Final>,
}

/// Z-197, Z-198, Z-199: every text is final once, what was recorded as sent was taken, only what was queued was
/// taken, and each address got its texts in the order in which they were queued.
pub(super) fn check(sim: &Conversations, logs: &Logs) -> Result<(), String> {
    let mut queued: BTreeMap<&EffectId, Queued<'_>> = BTreeMap::new();
    let mut order: Vec<&EffectId> = Vec::new();
    for (session, event) in logs.order.iter().flatten() {
        let log = &logs.sessions[session];
        let (key, is) = match &event.event.body {
            Body::ResponseQueued {
                effect_id,
                to,
                candidate,
                ..
            } => {
                let text = Queued {
                    text: &candidate.text,
                    to,
                    tenant: &log.tenant,
                    agent: &log.agent,
                    is: None,
                };
                order.push(effect_id);
                ensure(queued.insert(effect_id, text).is_none(), || {
                    format!("{effect_id} is queued twice")
                })?;
                continue;
            }
            Body::ResponseSent { effect_id, .. } => (effect_id, Final::Sent),
            Body::SendFailed { effect_id, .. } => (effect_id, Final::Failed),
            Body::ResponseSuppressed {
                effect_id: Some(effect_id),
                ..
            } => (effect_id, Final::Suppressed),
            _ => continue,
        };
        let text = queued
            .get_mut(key)
            .ok_or_else(|| format!("{key} was never queued"))?;
        ensure(text.is.is_none(), || format!("{key} is final twice"))?;
        text.is = Some(is);
    }
    let happened = sim.outside.happened.lock();
    let mut first_taken: Vec<&EffectId> = Vec::new();
    for taken in &happened.texts {
        let key = &taken.key;
        let text = queued
            .get(key)
            .ok_or_else(|| format!("{key} was sent and never queued"))?;
        let is_same = text.text == taken.text
            && text.to == taken.to
            && *text.tenant == taken.tenant
            && *text.agent == taken.agent;
        ensure(is_same, || {
            format!("{taken:?} is not what was queued: {:?}", text.text)
        })?;
        let others = TENANTS
            .iter()
            .filter(|other| **other != taken.tenant.as_str());
        for other in others {
            ensure(!taken.text.contains(other), || {
                format!("{taken:?} is of {other}")
            })?;
        }
        if !first_taken.contains(&key) {
            first_taken.push(key);
        }
    }
    for (key, text) in &queued {
        ensure(text.is.is_some(), || format!("{key} is not final"))?;
        let is_taken = first_taken.contains(key);
        ensure(text.is != Some(Final::Sent) || is_taken, || {
            format!("{key} is recorded as sent and was not taken")
        })?;
    }
    let mut by_address: BTreeMap<_, Vec<&EffectId>> = BTreeMap::new();
    for taken in &happened.texts {
        let address = (&taken.tenant, &taken.agent, &taken.transport, &taken.to);
        let keys = by_address.entry(address).or_default();
        // One that was given up may have been taken at any time.
        if !keys.contains(&&taken.key) && queued[&taken.key].is == Some(Final::Sent) {
            keys.push(&taken.key);
        }
    }
    let place = |key: &EffectId| order.iter().position(|of| *of == key);
    for (address, keys) in by_address {
        let places: Vec<_> = keys.iter().map(|key| place(key)).collect();
        ensure(places.is_sorted(), || {
            format!("{address:?} got {keys:?} in another order than they were queued")
        })?;
    }
    Ok(())
}
