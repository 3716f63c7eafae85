//! The outbox and its leases. An entry is due when its lease expires, or at `available_at` while it
//! is not leased. One with an order key is held back while another is before it.

use super::MemoryStore;
use super::state::State;
use crate::Outbox;
use crate::commit::{Committed, OutboxChange, OutboxEntry};
use crate::fault::Fault;
use crate::lane::{DueLane, Lane, LaneQuery, rotate_after};
use crate::lease::{Lease, LeaseId, LeaseRenewal, LeaseRequest};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{EffectId, TenantId, Timestamp};

fn due_at(entry: &OutboxEntry) -> Timestamp {
    entry
        .lease
        .as_ref()
        .map_or(entry.available_at, |lease| lease.until)
}

impl State {
    pub(super) fn change_outbox(&mut self, change: OutboxChange, committed: &mut Committed) {
        match change {
            OutboxChange::Put(entry) => self.put(entry, committed),
            OutboxChange::Wake(entry) => match self.outbox.get_mut(&entry.effect) {
                Some(there) => there.available_at = there.available_at.min(entry.available_at),
                None => self.put(entry, committed),
            },
            OutboxChange::Remove(effect) => {
                self.failed_effects.remove(&effect);
                if let Some(removed) = self.outbox.remove(&effect) {
                    committed.has_released |= self.remove_from_order(removed);
                }
            }
        }
    }

    fn put(&mut self, mut entry: OutboxEntry, committed: &mut Committed) {
        self.failed_effects.remove(&entry.effect);
        match self.outbox.get(&entry.effect) {
            Some(replaced) => entry.order_key.clone_from(&replaced.order_key),
            None => {
                if let Some(key) = &entry.order_key {
                    let place = (entry.lane.tenant.clone(), key.clone());
                    let order = self.ordered.entry(place).or_default();
                    order.push_back(entry.effect.clone());
                }
            }
        }
        if entry.lease.is_some() && self.is_held_back(&entry) {
            entry.lease = None;
            entry.attempts = 0;
            committed.held.push(entry.effect.clone());
        }
        self.outbox.insert(entry.effect.clone(), entry);
    }

    /// Whether others of the order are left.
    fn remove_from_order(&mut self, removed: OutboxEntry) -> bool {
        let Some(key) = removed.order_key else {
            return false;
        };
        let place = (removed.lane.tenant, key);
        let Some(order) = self.ordered.get_mut(&place) else {
            return false;
        };
        order.retain(|effect| *effect != removed.effect);
        if order.is_empty() {
            self.ordered.remove(&place);
            return false;
        }
        true
    }

    /// Whether another entry comes first.
    fn is_held_back(&self, entry: &OutboxEntry) -> bool {
        entry.order_key.as_ref().is_some_and(|key| {
            let place = (entry.lane.tenant.clone(), key.clone());
            let first = self.ordered.get(&place).and_then(|order| order.front());
            first != Some(&entry.effect)
        })
    }

    fn waiting(&self) -> impl Iterator<Item = &OutboxEntry> {
        let entries = self.outbox.values();
        entries.filter(|entry| !self.is_parked(&entry.effect) && !self.is_held_back(entry))
    }

    fn due_lanes(&self, query: &LaneQuery) -> Vec<DueLane> {
        let mut lanes: BTreeMap<&TenantId, BTreeMap<&String, usize>> = BTreeMap::new();
        for entry in self.waiting() {
            if entry.lane.class == query.class && due_at(entry) <= query.now {
                let targets = lanes.entry(&entry.lane.tenant).or_default();
                *targets.entry(&entry.lane.target).or_default() += 1;
            }
        }
        let tenants: Vec<&TenantId> = lanes.keys().copied().collect();
        let tenants = rotate_after(tenants, query.after_tenant.as_ref().as_ref());
        let mut found = Vec::new();
        for tenant in tenants.into_iter().take(query.tenants) {
            let targets: Vec<&String> = lanes[tenant].keys().copied().collect();
            let after = query.after_target.get(tenant);
            let targets = rotate_after(targets, after.as_ref());
            for target in targets.into_iter().take(query.targets) {
                found.push(DueLane {
                    lane: Lane {
                        class: query.class,
                        tenant: tenant.clone(),
                        target: target.clone(),
                    },
                    due: lanes[tenant][target].min(query.count_up_to),
                });
            }
        }
        found
    }

    fn due_in(&self, lane: &Lane, now: Timestamp, limit: usize) -> Vec<EffectId> {
        let mut due: BTreeSet<(Timestamp, &EffectId)> = BTreeSet::new();
        for entry in self.waiting() {
            if entry.lane == *lane && due_at(entry) <= now {
                due.insert((due_at(entry), &entry.effect));
            }
        }
        let earliest = due.into_iter().take(limit);
        earliest.map(|(_, effect)| effect.clone()).collect()
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn due_lanes(&self, query: LaneQuery) -> Result<Vec<DueLane>, Fault> {
        Ok(self.state()?.due_lanes(&query))
    }

    async fn lease(&self, request: LeaseRequest) -> Result<Vec<OutboxEntry>, Fault> {
        let mut state = self.state()?;
        let mut taken = Vec::new();
        for (lane, limit) in &request.lane_limits {
            for effect in state.due_in(lane, request.now, *limit) {
                let entry = state.outbox.get_mut(&effect).expect("it was just found");
                entry.lease = Some(Lease {
                    id: request.lease.clone(),
                    until: request.until,
                });
                entry.attempts += 1;
                taken.push(entry.clone());
            }
        }
        Ok(taken)
    }

    async fn release(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        available_at: Timestamp,
    ) -> Result<(), Fault> {
        let mut state = self.state()?;
        if let Some(entry) = state.outbox.get_mut(effect)
            && entry.lease.as_ref().is_some_and(|held| held.id == *lease)
        {
            entry.lease = None;
            entry.available_at = available_at;
        }
        Ok(())
    }

    async fn renew_leases(&self, renewal: LeaseRenewal) -> Result<Vec<EffectId>, Fault> {
        let mut state = self.state()?;
        let mut lost = Vec::new();
        for (effect, number) in renewal.leases {
            let entry = state.outbox.get_mut(&effect);
            match entry.and_then(|entry| entry.lease.as_mut()) {
                Some(held) if held.id.owner == renewal.owner && held.id.number == number => {
                    held.until = renewal.until;
                }
                _ => lost.push(effect),
            }
        }
        Ok(lost)
    }

    async fn break_leases(&self, owner: &str) -> Result<u64, Fault> {
        let mut broken = 0;
        for entry in self.state()?.outbox.values_mut() {
            if entry
                .lease
                .as_ref()
                .is_some_and(|held| held.id.owner != owner)
            {
                entry.lease = None;
                broken += 1;
            }
        }
        Ok(broken)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Fault> {
        Ok(self.state()?.waiting().map(due_at).min())
    }

    async fn depth(&self) -> Result<u64, Fault> {
        Ok(self.state()?.outbox.len() as u64)
    }
}
