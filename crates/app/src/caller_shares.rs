//! Places that callers share, such as connections: first by tenant, then by key within the tenant.
//!
//! A tenant gets another place only while at least as many are left for others (see [`FairShares`]), so one
//! tenant has at most half of them, however many keys it uses. A key gets another place only while at least as
//! many of its tenant's places are left for the tenant's other keys.
//!
//! [`FairShares`]: crate::FairShares

use crate::fair_shares::has_room;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::TenantId;

/// How many places there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareLimits {
    pub total: usize,
    pub max_per_tenant: usize,
    pub max_per_key: usize,
}

/// Whose share is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareScope {
    Key,
    Tenant,
    /// Other tenants hold all places.
    Host,
}

/// No place is free. `limit` is the number of places the scope may hold now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRefused {
    pub scope: ShareScope,
    pub limit: usize,
}

/// Counts the places that are taken.
pub struct CallerShares {
    limits: ShareLimits,
    taken: usize,
    tenants: HashMap<TenantId, TenantPlaces>,
}

#[derive(Default)]
struct TenantPlaces {
    held: usize,
    keys: HashMap<Arc<str>, usize>,
}

impl CallerShares {
    pub fn new(limits: ShareLimits) -> Self {
        Self {
            limits,
            taken: 0,
            tenants: HashMap::new(),
        }
    }

    /// Places that are taken, by all tenants.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Places of one tenant.
    pub fn held_by(&self, tenant: &TenantId) -> usize {
        self.tenants.get(tenant).map_or(0, |places| places.held)
    }

    /// Whether the key may take another place.
    pub fn check(&self, tenant: &TenantId, key: &str) -> Result<(), ShareRefused> {
        let ShareLimits {
            total,
            max_per_tenant,
            max_per_key,
        } = self.limits;
        let places = self.tenants.get(tenant);
        let of_tenant = places.map_or(0, |places| places.held);
        let of_key = places.and_then(|places| places.keys.get(key));
        let of_key = of_key.copied().unwrap_or(0);
        let refused = |scope, limit| Err(ShareRefused { scope, limit });
        if !has_room(
            of_tenant,
            1,
            max_per_tenant,
            total.saturating_sub(self.taken),
        ) {
            return match of_tenant {
                0 => refused(ShareScope::Host, total),
                held => refused(ShareScope::Tenant, held),
            };
        }
        // What the tenant could hold if it took all it may.
        let left_by_others = total.saturating_sub(self.taken - of_tenant);
        let share = max_per_tenant.min(left_by_others.div_ceil(2));
        match has_room(of_key, 1, max_per_key, share.saturating_sub(of_tenant)) {
            true => Ok(()),
            false => refused(ShareScope::Key, of_key),
        }
    }

    /// Takes a place; [`Self::check`] says whether there is one.
    pub fn add(&mut self, tenant: &TenantId, key: &Arc<str>) {
        self.taken += 1;
        let places = self.tenants.entry(tenant.clone()).or_default();
        places.held += 1;
        *places.keys.entry(Arc::clone(key)).or_default() += 1;
    }

    /// Gives a place back.
    pub fn remove(&mut self, tenant: &TenantId, key: &str) {
        let Some(places) = self.tenants.get_mut(tenant) else {
            return;
        };
        let Some(of_key) = places.keys.get_mut(key) else {
            return;
        };
        *of_key -= 1;
        if *of_key == 0 {
            places.keys.remove(key);
        }
        places.held -= 1;
        if places.held == 0 {
            self.tenants.remove(tenant);
        }
        self.taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(total: usize) -> CallerShares {
        CallerShares::new(ShareLimits {
            total,
            max_per_tenant: total,
            max_per_key: total,
        })
    }

    /// Takes all a key may have.
    fn fill(shares: &mut CallerShares, tenant: &str, key: &str) -> (usize, ShareRefused) {
        let (tenant, key) = (TenantId::new(tenant), Arc::from(key));
        let mut count = 0;
        loop {
            match shares.check(&tenant, &key) {
                Ok(()) => shares.add(&tenant, &key),
                Err(refused) => return (count, refused),
            }
            count += 1;
        }
    }

    #[test]
    fn keys_of_one_tenant_leave_half_of_the_places_to_others() {
        let mut shares = shares(64);
        let taken =
            ["a1", "a2", "a3", "a4", "a5", "a6", "a7"].map(|key| fill(&mut shares, "a", key).0);
        assert_eq!(taken, [16, 8, 4, 2, 1, 1, 0]);
        assert_eq!(shares.held_by(&TenantId::new("a")), 32);
        let (count, refused) = fill(&mut shares, "b", "b1");
        assert_eq!(count, 8, "half of what b may have");
        assert_eq!((refused.scope, refused.limit), (ShareScope::Key, 8));
        assert_eq!(fill(&mut shares, "c", "c1").0, 6, "and a third tenant");
    }

    #[test]
    fn refusal_names_the_share_that_is_used_up() {
        let mut few = CallerShares::new(ShareLimits {
            total: 64,
            max_per_tenant: 4,
            max_per_key: 1,
        });
        let (count, refused) = fill(&mut few, "a", "a1");
        assert_eq!(
            (count, refused.scope, refused.limit),
            (1, ShareScope::Key, 1)
        );
        for key in ["a2", "a3", "a4"] {
            assert_eq!(fill(&mut few, "a", key).0, 1);
        }
        let (_, refused) = fill(&mut few, "a", "a5");
        assert_eq!((refused.scope, refused.limit), (ShareScope::Tenant, 4));
        let mut one = shares(1);
        fill(&mut one, "a", "a1");
        let (_, refused) = fill(&mut one, "b", "b1");
        assert_eq!((refused.scope, refused.limit), (ShareScope::Host, 1));
    }

    #[test]
    fn places_that_are_given_back_are_free() {
        let mut shares = shares(8);
        let tenant = TenantId::new("a");
        for _ in 0..3 {
            let (count, _) = fill(&mut shares, "a", "a1");
            assert_eq!(count, 2);
            for _ in 0..count {
                shares.remove(&tenant, "a1");
            }
        }
        assert_eq!(shares.taken(), 0);
        assert!(shares.tenants.is_empty(), "nothing is kept");
    }
}
