//! An amount that tenants share, such as bytes of memory. Nobody holds more than exists, a tenant has a
//! maximum of its own, and it gets more only while at least as much is left for others.
//!
//! Requests of one tenant are served in their order. A request that waits holds nothing.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use tandem_record::TenantId;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

pub struct FairShares {
    total: usize,
    max_per_tenant: usize,
    taken: Mutex<Taken>,
    released: Notify,
}

#[derive(Default)]
struct Taken {
    total: usize,
    tenants: HashMap<TenantId, TenantShare>,
}

#[derive(Default)]
struct TenantShare {
    held: usize,
    waiting: usize,
    /// Orders the requests of the tenant: only its first one looks for room.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Taken {
    fn remove_if_unused(&mut self, tenant: &TenantId) {
        let unused = |share: &TenantShare| share.held == 0 && share.waiting == 0;
        if self.tenants.get(tenant).is_some_and(unused) {
            self.tenants.remove(tenant);
        }
    }
}

impl FairShares {
    pub fn new(total: usize, max_per_tenant: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            max_per_tenant,
            taken: Mutex::default(),
            released: Notify::new(),
        })
    }

    /// A share, or `None` if there is no room now. More than a tenant may hold counts as its maximum.
    pub fn try_acquire(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Option<HeldShare> {
        let amount = amount.min(self.max_per_tenant);
        self.try_take(tenant, amount).then(|| HeldShare {
            shares: Arc::clone(self),
            tenant: tenant.clone(),
            amount: Mutex::new(amount),
        })
    }

    /// The same, but waits for room; `None` if there is none until then.
    pub async fn acquire(
        self: &Arc<Self>,
        tenant: &TenantId,
        amount: usize,
        until: Instant,
    ) -> Option<HeldShare> {
        let waiting = Waiting::begin(self, tenant);
        let taking = async {
            let _turn = waiting.turn.lock().await;
            loop {
                let mut released = pin!(self.released.notified());
                // From here on no release is missed.
                released.as_mut().enable();
                if let Some(share) = self.try_acquire(tenant, amount) {
                    return share;
                }
                released.await;
            }
        };
        timeout_at(until, taking).await.ok()
    }

    fn try_take(&self, tenant: &TenantId, amount: usize) -> bool {
        let mut taken = self.taken.lock();
        let held = taken.tenants.get(tenant).map_or(0, |share| share.held);
        let left_for_others = self.total.saturating_sub(taken.total);
        if !has_room(held, amount, self.max_per_tenant, left_for_others) {
            return false;
        }
        taken.total += amount;
        taken.tenants.entry(tenant.clone()).or_default().held += amount;
        true
    }
}

/// The rule of a fair share: a holder gets more only while at least as much is left for others.
pub(crate) fn has_room(held: usize, amount: usize, max: usize, left_for_others: usize) -> bool {
    held + amount <= max.min(left_for_others)
}

/// Released when dropped.
pub struct HeldShare {
    shares: Arc<FairShares>,
    tenant: TenantId,
    amount: Mutex<usize>,
}

impl HeldShare {
    /// Makes the share at least this large; `false` if there is no room now.
    pub fn try_grow(&self, amount: usize) -> bool {
        let mut held = self.amount.lock();
        let wanted = amount.min(self.shares.max_per_tenant);
        let missing = wanted.saturating_sub(*held);
        let grown = missing == 0 || self.shares.try_take(&self.tenant, missing);
        if grown {
            *held += missing;
        }
        grown
    }
}

impl Drop for HeldShare {
    fn drop(&mut self) {
        let amount = *self.amount.get_mut();
        let mut taken = self.shares.taken.lock();
        taken.total -= amount;
        if let Some(share) = taken.tenants.get_mut(&self.tenant) {
            share.held -= amount;
        }
        taken.remove_if_unused(&self.tenant);
        drop(taken);
        self.shares.released.notify_waiters();
    }
}

/// Counts a waiting request, also when its caller disconnects.
struct Waiting<'a> {
    shares: &'a FairShares,
    tenant: &'a TenantId,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> Waiting<'a> {
    fn begin(shares: &'a FairShares, tenant: &'a TenantId) -> Self {
        let mut taken = shares.taken.lock();
        let share = taken.tenants.entry(tenant.clone()).or_default();
        share.waiting += 1;
        let turn = Arc::clone(&share.turn);
        Self {
            shares,
            tenant,
            turn,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        if let Some(share) = taken.tenants.get_mut(self.tenant) {
            share.waiting -= 1;
        }
        taken.remove_if_unused(self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::time::Duration;

    fn fill(shares: &Arc<FairShares>, tenant: &str) -> Vec<HeldShare> {
        let tenant = TenantId::new(tenant);
        std::iter::from_fn(|| shares.try_acquire(&tenant, 1)).collect()
    }

    #[test]
    fn tenant_gets_more_only_while_as_much_is_left_for_others() {
        let shares = FairShares::new(64, 24);
        let held = ["a", "b", "c", "d"].map(|tenant| fill(&shares, tenant));
        assert_eq!(held.each_ref().map(Vec::len), [24, 20, 10, 5]);
        drop(held);
        assert!(shares.taken.lock().tenants.is_empty(), "nothing is kept");
    }

    #[test]
    fn share_larger_than_the_maximum_counts_as_the_maximum() {
        let shares = FairShares::new(64, 8);
        let tenant = TenantId::new("a");
        let whole = shares.try_acquire(&tenant, 1_000).expect("there is room");
        assert!(whole.try_grow(2_000), "it already counts as the maximum");
        assert!(shares.try_acquire(&tenant, 1).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_tenant_are_served_in_order_and_give_up_in_time() {
        let shares = FairShares::new(64, 8);
        let tenant = TenantId::new("a");
        let until = Instant::now() + Duration::from_secs(10);
        let held = shares.try_acquire(&tenant, 6).expect("there is room");
        let mut large = pin!(shares.acquire(&tenant, 8, until));
        let mut small = pin!(shares.acquire(&tenant, 1, until));
        assert!(large.as_mut().now_or_never().is_none());
        let overtakes = small.as_mut().now_or_never();
        assert!(overtakes.is_none(), "it is behind the large one");
        drop(held);
        let large = large.await.expect("there is room again");
        assert!(small.await.is_none(), "none in time");
        drop(large);
        assert!(shares.taken.lock().tenants.is_empty(), "nothing is kept");
    }
}
