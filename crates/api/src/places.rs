//! Requests that change something, under way at once: tenants share the places, and large requests of one
//! tenant are worked on one after the other, so that parsing and checking them leaves the processors to
//! others.

use crate::large_requests::LARGE_BYTES;
use crate::problem::Problem;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one tenant's large bodies that are worked on at once.
const ROOM_BYTES: usize = 1024 * 1024;
/// Large requests of one tenant that may wait for it.
const MAX_WAITING: usize = 32;

pub(crate) struct Places {
    total: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    requests: usize,
    tenants: HashMap<TenantId, Share>,
}

struct Share {
    requests: usize,
    waiting: usize,
    room: Arc<Semaphore>,
}

impl Default for Share {
    fn default() -> Self {
        Self {
            requests: 0,
            waiting: 0,
            room: Arc::new(Semaphore::new(ROOM_BYTES)),
        }
    }
}

impl Places {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            held: Mutex::default(),
        })
    }

    /// A place for a request of this size, or the answer that there is none. A tenant gets another place
    /// only while more are free than it holds, so that a newcomer always finds one.
    pub(crate) async fn take(
        self: &Arc<Self>,
        tenant: &TenantId,
        bytes: usize,
    ) -> Result<Place, Problem> {
        let mut place = self.take_one(tenant).ok_or_else(Problem::busy)?;
        if bytes > LARGE_BYTES {
            let waiting = Waiting::begin(self, tenant).ok_or_else(Problem::busy)?;
            let wanted = u32::try_from(bytes.min(ROOM_BYTES)).unwrap_or(u32::MAX);
            let room = Arc::clone(&waiting.room).acquire_many_owned(wanted).await;
            place.room = room.ok();
        }
        Ok(place)
    }

    fn take_one(self: &Arc<Self>, tenant: &TenantId) -> Option<Place> {
        let mut held = self.held.lock();
        let mine = held.tenants.get(tenant).map_or(0, |share| share.requests);
        if mine >= self.total.saturating_sub(held.requests) {
            return None;
        }
        held.requests += 1;
        held.tenants.entry(tenant.clone()).or_default().requests += 1;
        Some(Place {
            places: Arc::clone(self),
            tenant: tenant.clone(),
            room: None,
        })
    }
}

/// Given back when dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    tenant: TenantId,
    room: Option<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.room.take());
        let mut held = self.places.held.lock();
        held.requests -= 1;
        if let Some(share) = held.tenants.get_mut(&self.tenant) {
            share.requests -= 1;
            if share.requests == 0 {
                held.tenants.remove(&self.tenant);
            }
        }
    }
}

/// Counted while it waits, also when its caller goes away. Its request holds a place, so the share is there.
struct Waiting<'a> {
    places: &'a Places,
    tenant: &'a TenantId,
    room: Arc<Semaphore>,
}

impl<'a> Waiting<'a> {
    fn begin(places: &'a Places, tenant: &'a TenantId) -> Option<Self> {
        let mut held = places.held.lock();
        let share = held.tenants.get_mut(tenant)?;
        if share.waiting >= MAX_WAITING {
            return None;
        }
        share.waiting += 1;
        Some(Self {
            places,
            tenant,
            room: Arc::clone(&share.room),
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(share) = self.places.held.lock().tenants.get_mut(self.tenant) {
            share.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fill(places: &Arc<Places>, tenant: &str) -> Vec<Place> {
        let tenant = TenantId::new(tenant);
        let mut taken = Vec::new();
        while let Ok(place) = places.take(&tenant, 10).await {
            taken.push(place);
        }
        taken
    }

    #[tokio::test]
    async fn one_tenant_leaves_half_of_the_places_to_others() {
        let places = Places::new(64);
        let first = fill(&places, "a").await;
        let second = fill(&places, "b").await;
        assert_eq!((first.len(), second.len()), (32, 16));
        drop((first, second));
        assert!(places.held.lock().tenants.is_empty());
    }

    #[tokio::test]
    async fn large_requests_of_one_tenant_follow_one_another_and_others_pass() {
        let places = Places::new(64);
        let (a, b) = (TenantId::new("a"), TenantId::new("b"));
        let first = places.take(&a, 900_000).await;
        let second = tokio::spawn({
            let (places, a) = (Arc::clone(&places), a.clone());
            async move { places.take(&a, 900_000).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(places.take(&b, 900_000).await.is_ok(), "another tenant");
        assert!(places.take(&a, 100).await.is_ok(), "a small one");
        assert!(!second.is_finished());
        drop(first);
        assert!(second.await.expect("it ends").is_ok());
    }

    #[tokio::test]
    async fn too_many_large_requests_are_refused() {
        let places = Places::new(1_000);
        let tenant = TenantId::new("a");
        let first = places.take(&tenant, ROOM_BYTES).await;
        let waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| {
                let (places, tenant) = (Arc::clone(&places), tenant.clone());
                tokio::spawn(async move { places.take(&tenant, ROOM_BYTES).await.map(drop) })
            })
            .collect();
        tokio::task::yield_now().await;
        let refused = places.take(&tenant, ROOM_BYTES).await.err();
        assert_eq!(refused.map(|problem| problem.status()), Some(503));
        drop(first);
        for one in waiting {
            assert!(one.await.expect("it ends").is_ok());
        }
    }
}
