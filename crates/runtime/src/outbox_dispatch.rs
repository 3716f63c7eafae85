//! Leases outbox entries that no process works on: left by an ended process, rescheduled, or
//! written while their tenant's slots or all workers were in use. Tenants are served round robin,
//! and so are the targets of each tenant.

use crate::machine_driver::not_driven;
use crate::runtime::Runtime;
use crate::webhooks;
use crate::worker_slots::WorkerSlot;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{TenantId, Timestamp};
use tandem_store::{DueLane, Fault, Lane, LaneQuery, Lease, LeaseRequest, OutboxEntry, WorkClass};

/// Poll interval of the outbox without a notification.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Poll interval while entries wait that may not be leased yet: others behind them may become due
/// unnoticed.
const BUSY_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Limit of tenants considered for one lease.
const TENANTS: usize = 64;
/// Limit of targets considered for each tenant.
const TARGETS: usize = 16;
/// Limit of tenants whose last target is remembered.
const MAX_TRACKED_TENANTS: usize = 1024;

/// Tenants and targets served last, for one class of work.
#[derive(Default)]
struct RoundRobin {
    tenant: Option<TenantId>,
    targets: HashMap<TenantId, String>,
}

impl RoundRobin {
    fn served(&mut self, lane: &Lane) {
        if self.targets.len() >= MAX_TRACKED_TENANTS {
            self.targets.clear();
        }
        self.tenant = Some(lane.tenant.clone());
        self.targets
            .insert(lane.tenant.clone(), lane.target.clone());
    }
}

impl Runtime {
    pub(crate) async fn dispatch_outbox(self) {
        let mut pause = Duration::ZERO;
        let mut round_robin = WorkClass::ALL.map(|class| (class, RoundRobin::default()));
        loop {
            tokio::select! {
                biased;
                () = self.stopped() => return,
                () = self.inner.effects.bell.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = match self.lease_and_start(&mut round_robin).await {
                Ok(pause) => pause,
                Err(fault) => {
                    tracing::warn!(error = %fault, "cannot read the outbox");
                    Duration::from_secs(1)
                }
            };
        }
    }

    async fn lease_and_start(
        &self,
        round_robin: &mut [(WorkClass, RoundRobin)],
    ) -> Result<Duration, Fault> {
        let now = self.clock().now();
        match self.store().next_due().await? {
            Some(due) if due <= now => {}
            Some(due) => {
                return Ok(IDLE_POLL_INTERVAL.min(Duration::from_millis(due.ms_since(now))));
            }
            None => return Ok(IDLE_POLL_INTERVAL),
        }
        // After a pause of this process, or a jump of its clock, leases of work under way may look
        // expired to it.
        self.renew_leases(now, now).await?;
        let mut started = 0;
        for (class, round_robin) in round_robin {
            started += self.lease_of_class(*class, now, round_robin).await?;
        }
        // A finished effect notifies this loop.
        Ok(if started > 0 {
            Duration::ZERO
        } else {
            BUSY_POLL_INTERVAL
        })
    }

    async fn lease_of_class(
        &self,
        class: WorkClass,
        now: Timestamp,
        round_robin: &mut RoundRobin,
    ) -> Result<usize, Fault> {
        let slots = self.inner.effects.slots(class);
        let free = slots.free();
        if free == 0 {
            return Ok(0);
        }
        let query = LaneQuery {
            class,
            now,
            after_tenant: round_robin.tenant.clone(),
            after_target: round_robin.targets.clone(),
            tenants: TENANTS,
            targets: TARGETS,
            count_up_to: free,
        };
        let lanes = self.store().due_lanes(query).await?;
        // Acquire workers before leasing: a leased entry that then waited for a worker could be
        // dropped by its run in the meantime, and would still be performed.
        // In the order of the turns: the store leases in this order.
        let mut taken: Vec<(Lane, Vec<WorkerSlot>)> = Vec::new();
        for lane in round_robin_order(&lanes) {
            if let Some(slot) = slots.take(lane) {
                round_robin.served(lane);
                match taken.iter_mut().find(|(of, _)| of == lane) {
                    Some((_, slots)) => slots.push(slot),
                    None => taken.push((lane.clone(), vec![slot])),
                }
            }
        }
        if taken.is_empty() {
            return Ok(0);
        }
        let lease = self.inner.effects.new_lease(&self.inner.config.owner, now);
        let request = LeaseRequest {
            lease: lease.id.clone(),
            now,
            until: lease.until,
            lane_limits: taken
                .iter()
                .map(|(lane, slots)| (lane.clone(), slots.len()))
                .collect(),
        };
        let entries = self.store().lease(request).await?;
        let count = entries.len();
        for entry in entries {
            let of_lane = taken.iter_mut().find(|(lane, _)| *lane == entry.lane);
            if let Some(slot) = of_lane.and_then(|(_, slots)| slots.pop()) {
                self.start_entry(entry, slot, lease.clone()).await;
            }
        }
        Ok(count)
    }

    async fn start_entry(&self, entry: OutboxEntry, slot: WorkerSlot, lease: Lease) {
        if entry.kind == webhooks::KIND {
            return self.start_deliveries(entry, slot, lease);
        }
        if entry.kind == webhooks::FEED_KIND {
            return self.start_expansion(entry, slot, lease);
        }
        match self.inner.machines.driver_of(&entry.stream) {
            Some(driver) => {
                let driver = Arc::clone(driver);
                driver.start_entry(self, entry, slot, lease).await;
            }
            None => {
                let fault = not_driven(&entry.stream);
                self.park_effect(&entry.effect, &lease.id, "not_driven", &fault)
                    .await;
            }
        }
    }
}

/// One entry of one target of each tenant in turn, until each lane is named as often as it has
/// entries.
fn round_robin_order(lanes: &[DueLane]) -> Vec<&Lane> {
    let mut tenants: Vec<Vec<(&Lane, usize)>> = Vec::new();
    for due in lanes {
        let place = (&due.lane, due.due);
        match tenants.last_mut() {
            Some(targets) if targets[0].0.tenant == due.lane.tenant => targets.push(place),
            _ => tenants.push(vec![place]),
        }
    }
    let mut order = Vec::new();
    while !tenants.is_empty() {
        for targets in &mut tenants {
            let (lane, left) = targets.remove(0);
            order.push(lane);
            if left > 1 {
                targets.push((lane, left - 1));
            }
        }
        tenants.retain(|targets| !targets.is_empty());
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(tenant: &str, target: &str, due: usize) -> DueLane {
        DueLane {
            lane: Lane {
                class: WorkClass::Call,
                tenant: TenantId::new(tenant),
                target: target.to_owned(),
            },
            due,
        }
    }

    #[test]
    fn tenants_and_their_targets_are_served_round_robin() {
        let lanes = [due("a", "x", 3), due("a", "y", 1), due("b", "x", 2)];
        let order: Vec<String> = round_robin_order(&lanes)
            .into_iter()
            .map(|lane| format!("{}{}", lane.tenant, lane.target))
            .collect();
        assert_eq!(order, ["ax", "bx", "ay", "bx", "ax", "ax"]);
    }
}
