//! Permits for mutating requests in progress. Tenants share the permits fairly. Large requests of
//! one tenant run one after the other, so that parsing and checking them does not take all
//! processors.

use crate::large_requests::LARGE_BYTES;
use crate::problem::Problem;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum total size of one tenant's large bodies in progress.
const LARGE_BODY_BUDGET_BYTES: usize = 1024 * 1024;
/// Maximum number of one tenant's large requests that wait.
const MAX_WAITING: usize = 32;

pub(crate) struct RequestPermits {
    total: usize,
    counts: Mutex<PermitCounts>,
}

#[derive(Default)]
struct PermitCounts {
    requests: usize,
    tenants: HashMap<TenantId, TenantPermits>,
}

struct TenantPermits {
    requests: usize,
    waiting: usize,
    byte_budget: Arc<Semaphore>,
}

impl Default for TenantPermits {
    fn default() -> Self {
        Self {
            requests: 0,
            waiting: 0,
            byte_budget: Arc::new(Semaphore::new(LARGE_BODY_BUDGET_BYTES)),
        }
    }
}

impl RequestPermits {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            counts: Mutex::default(),
        })
    }

    /// A permit for a request of this size, or the refusal. A tenant gets another permit only while
    /// more are free than it holds, so that a new tenant always finds one.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        tenant: &TenantId,
        bytes: usize,
    ) -> Result<RequestPermit, Problem> {
        let mut permit = self.try_acquire(tenant).ok_or_else(Problem::busy)?;
        if bytes > LARGE_BYTES {
            let waiting = Waiting::begin(self, tenant).ok_or_else(Problem::busy)?;
            let needed_bytes =
                u32::try_from(bytes.min(LARGE_BODY_BUDGET_BYTES)).unwrap_or(u32::MAX);
            let byte_budget = Arc::clone(&waiting.byte_budget)
                .acquire_many_owned(needed_bytes)
                .await;
            permit.byte_budget = byte_budget.ok();
        }
        Ok(permit)
    }

    fn try_acquire(self: &Arc<Self>, tenant: &TenantId) -> Option<RequestPermit> {
        let mut counts = self.counts.lock();
        let mine = counts.tenants.get(tenant).map_or(0, |share| share.requests);
        if mine >= self.total.saturating_sub(counts.requests) {
            return None;
        }
        counts.requests += 1;
        counts.tenants.entry(tenant.clone()).or_default().requests += 1;
        Some(RequestPermit {
            permits: Arc::clone(self),
            tenant: tenant.clone(),
            byte_budget: None,
        })
    }
}

/// Released when dropped.
pub(crate) struct RequestPermit {
    permits: Arc<RequestPermits>,
    tenant: TenantId,
    byte_budget: Option<OwnedSemaphorePermit>,
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        drop(self.byte_budget.take());
        let mut counts = self.permits.counts.lock();
        counts.requests -= 1;
        if let Some(share) = counts.tenants.get_mut(&self.tenant) {
            share.requests -= 1;
            if share.requests == 0 {
                counts.tenants.remove(&self.tenant);
            }
        }
    }
}

/// Counts a waiting request, also when its caller disconnects. The request holds a permit, so the
/// tenant's share exists.
struct Waiting<'a> {
    permits: &'a RequestPermits,
    tenant: &'a TenantId,
    byte_budget: Arc<Semaphore>,
}

impl<'a> Waiting<'a> {
    fn begin(permits: &'a RequestPermits, tenant: &'a TenantId) -> Option<Self> {
        let mut counts = permits.counts.lock();
        let share = counts.tenants.get_mut(tenant)?;
        if share.waiting >= MAX_WAITING {
            return None;
        }
        share.waiting += 1;
        Some(Self {
            permits,
            tenant,
            byte_budget: Arc::clone(&share.byte_budget),
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(share) = self.permits.counts.lock().tenants.get_mut(self.tenant) {
            share.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fill(permits: &Arc<RequestPermits>, tenant: &str) -> Vec<RequestPermit> {
        let tenant = TenantId::new(tenant);
        let mut taken = Vec::new();
        while let Ok(permit) = permits.acquire(&tenant, 10).await {
            taken.push(permit);
        }
        taken
    }

    #[tokio::test]
    async fn one_tenant_takes_at_most_half_of_the_permits() {
        let permits = RequestPermits::new(64);
        let first = fill(&permits, "a").await;
        let second = fill(&permits, "b").await;
        assert_eq!((first.len(), second.len()), (32, 16));
        drop((first, second));
        assert!(permits.counts.lock().tenants.is_empty());
    }

    #[tokio::test]
    async fn large_requests_of_one_tenant_are_serialized_without_blocking_others() {
        let permits = RequestPermits::new(64);
        let (a, b) = (TenantId::new("a"), TenantId::new("b"));
        let first = permits.acquire(&a, 900_000).await;
        let second = tokio::spawn({
            let (permits, a) = (Arc::clone(&permits), a.clone());
            async move { permits.acquire(&a, 900_000).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(permits.acquire(&b, 900_000).await.is_ok(), "another tenant");
        assert!(permits.acquire(&a, 100).await.is_ok(), "a small one");
        assert!(!second.is_finished());
        drop(first);
        assert!(second.await.expect("it ends").is_ok());
    }

    #[tokio::test]
    async fn too_many_large_requests_are_refused() {
        let permits = RequestPermits::new(1_000);
        let tenant = TenantId::new("a");
        let first = permits.acquire(&tenant, LARGE_BODY_BUDGET_BYTES).await;
        let waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| {
                let (permits, tenant) = (Arc::clone(&permits), tenant.clone());
                tokio::spawn(async move {
                    permits
                        .acquire(&tenant, LARGE_BODY_BUDGET_BYTES)
                        .await
                        .map(drop)
                })
            })
            .collect();
        tokio::task::yield_now().await;
        let refused = permits
            .acquire(&tenant, LARGE_BODY_BUDGET_BYTES)
            .await
            .err();
        assert_eq!(refused.map(|problem| problem.status()), Some(503));
        drop(first);
        for one in waiting {
            assert!(one.await.expect("it ends").is_ok());
        }
    }
}
