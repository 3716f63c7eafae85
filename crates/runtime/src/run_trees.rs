//! How many runs each run tree has, so that one request cannot start runs without end. A decision that
//! starts child runs first reserves places for them. The number is that of the runs in the store; it is
//! read once, kept up to date while a tree grows, and read again before a run is refused.
//!
//! One lock for all trees, held only while numbers are added. With several processes, each knows what
//! the others started from its last reading.

use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tandem_record::{RunId, TenantId, Timestamp};
use tandem_store::Fault;

/// Trees whose numbers are kept; those without a reservation are read again when they are needed.
const MAX_TREES: usize = 4_096;
/// How old a reading may be on which a refusal is based.
const RECOUNT_MS: u64 = 1_000;
/// Runs added to a tree after which its number is read again, if other processes add to it too.
const RECOUNT_AFTER: u64 = 64;

/// Tenants whose turns are kept; those that nobody has are forgotten first.
const MAX_TURNS: usize = 4_096;

#[derive(Default)]
pub(crate) struct RunTrees {
    trees: Mutex<HashMap<RunId, Counted>>,
    /// One reading at a time for each tenant: those who wait for it use it, too, and the readers of the
    /// store stay free for others.
    turns: Mutex<HashMap<TenantId, Arc<tokio::sync::Mutex<()>>>>,
}

struct Counted {
    descendants: u64,
    /// Places of decisions under way.
    reserved: u64,
    read_at: Timestamp,
    added: u64,
}

/// Places of one decision in its run tree. What it does not use is given back when this is dropped.
pub(crate) struct ReservedPlaces<'r> {
    trees: &'r RunTrees,
    root: RunId,
    places: u64,
    used: u64,
}

impl ReservedPlaces<'_> {
    pub(crate) fn places(&self) -> u64 {
        self.places
    }

    /// The decision starts this many runs.
    pub(crate) fn use_places(&mut self, started: usize) {
        self.used = started as u64;
    }
}

impl Drop for ReservedPlaces<'_> {
    fn drop(&mut self) {
        if self.places == 0 && self.used == 0 {
            return;
        }
        if let Some(tree) = self.trees.trees.lock().get_mut(&self.root) {
            tree.reserved = tree.reserved.saturating_sub(self.places);
            tree.descendants = tree.descendants.saturating_add(self.used);
            tree.added = tree.added.saturating_add(self.used);
        }
    }
}

impl RunTrees {
    pub(crate) fn reservation(&self, root: RunId) -> ReservedPlaces<'_> {
        ReservedPlaces {
            trees: self,
            root,
            places: 0,
            used: 0,
        }
    }

    /// Reserves up to `wanted` places; all or none, unless `partly`.
    fn take(&self, root: &RunId, wanted: u64, limit: u64, partly: bool) -> Option<u64> {
        let mut trees = self.trees.lock();
        let tree = trees.get_mut(root)?;
        let used = tree.descendants.saturating_add(tree.reserved);
        let free = limit.saturating_sub(used);
        if free < wanted && !partly {
            return None;
        }
        let taken = wanted.min(free);
        tree.reserved += taken;
        Some(taken)
    }

    fn is_recent(&self, root: &RunId, now: Timestamp) -> bool {
        let trees = self.trees.lock();
        let tree = trees.get(root);
        tree.is_some_and(|tree| now.ms_since(tree.read_at) < RECOUNT_MS)
    }

    fn has_grown(&self, root: &RunId) -> bool {
        let trees = self.trees.lock();
        trees
            .get(root)
            .is_some_and(|tree| tree.added >= RECOUNT_AFTER)
    }

    fn turn(&self, tenant: &TenantId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock();
        if turns.len() >= MAX_TURNS && !turns.contains_key(tenant) {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(turns.entry(tenant.clone()).or_default())
    }

    /// Reads the number of runs of a tree, unless somebody else did meanwhile. It is as old as its end: a
    /// reading that takes longer than it is good for would never be good.
    async fn read(
        &self,
        (tenant, root): (&TenantId, &RunId),
        others_add: bool,
        now: impl Fn() -> Timestamp,
        count: impl Future<Output = Result<u64, Fault>>,
    ) -> Result<(), Fault> {
        let is_good = || self.is_recent(root, now()) && !(others_add && self.has_grown(root));
        if is_good() {
            return Ok(());
        }
        let turn = self.turn(tenant);
        let _turn = turn.lock().await;
        if !is_good() {
            let counted = count.await?;
            self.note_reading(root, counted, now());
        }
        Ok(())
    }

    fn note_reading(&self, root: &RunId, descendants: u64, now: Timestamp) {
        let mut trees = self.trees.lock();
        if trees.len() >= MAX_TREES && !trees.contains_key(root) {
            trees.retain(|_, tree| tree.reserved > 0);
        }
        let reserved = trees.get(root).map_or(0, |tree| tree.reserved);
        let read = Counted {
            descendants,
            reserved,
            read_at: now,
            added: 0,
        };
        trees.insert(root.clone(), read);
    }
}

impl Runtime {
    /// Extends a reservation to `wanted` places, as far as the tree has them. `is_new`: the tree has no
    /// run besides its root.
    pub(crate) async fn reserve_places(
        &self,
        tenant: &TenantId,
        reserved: &mut ReservedPlaces<'_>,
        wanted: u64,
        is_new: bool,
    ) -> Result<(), Fault> {
        let trees = reserved.trees;
        let root = &reserved.root;
        let limit = self.limits().max_descendants;
        let more = wanted.saturating_sub(reserved.places);
        let now = self.clock().now();
        if is_new {
            trees.note_reading(root, 0, now);
        }
        let others_add = !self.inner.config.is_single_process;
        let is_known = !(others_add && trees.has_grown(root));
        let taken = is_known
            .then(|| trees.take(root, more, limit, false))
            .flatten();
        let taken = match taken {
            Some(taken) => taken,
            None => {
                let clock = || self.clock().now();
                let count = self.store().count_descendants(tenant, root, limit);
                trees.read((tenant, root), others_add, clock, count).await?;
                trees.take(root, more, limit, true).unwrap_or_default()
            }
        };
        reserved.places += taken;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    const NOW: Timestamp = Timestamp(1);

    #[test]
    fn places_that_are_not_used_are_given_back() {
        let trees = RunTrees::default();
        let root = RunId::new("root");
        trees.note_reading(&root, 5, NOW);
        assert_eq!(trees.take(&root, 6, 10, false), None);
        assert_eq!(trees.take(&root, 6, 10, true), Some(5));
        let mut reserved = trees.reservation(root.clone());
        reserved.places = 5;
        reserved.use_places(2);
        assert_eq!(trees.take(&root, 1, 10, true), Some(0), "all are taken");
        drop(reserved);
        assert_eq!(trees.take(&root, 9, 10, true), Some(3));
    }

    #[tokio::test]
    async fn slow_reading_serves_all_that_wait_for_it() {
        let trees = RunTrees::default();
        let (tenant, root) = (TenantId::new("t"), RunId::new("root"));
        let (clock, readings) = (AtomicI64::new(1), AtomicU64::new(0));
        let now = || Timestamp(clock.load(Ordering::Relaxed));
        let decision = || {
            trees.read((&tenant, &root), false, now, async {
                readings.fetch_add(1, Ordering::Relaxed);
                clock.fetch_add(5_000, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok(10)
            })
        };
        let (a, b, c) = tokio::join!(decision(), decision(), decision());
        assert!(a.is_ok() && b.is_ok() && c.is_ok());
        assert_eq!(readings.load(Ordering::Relaxed), 1);
        assert_eq!(trees.take(&root, 1, 10, true), Some(0), "the tree is full");
        let later = clock.load(Ordering::Relaxed) + 5_000;
        clock.store(later, Ordering::Relaxed);
        assert!(decision().await.is_ok());
        assert_eq!(readings.load(Ordering::Relaxed), 2, "it is read again");
    }

    #[test]
    fn trees_without_reservations_are_forgotten_first() {
        let trees = RunTrees::default();
        let held = RunId::new("held");
        trees.note_reading(&held, 0, NOW);
        trees.take(&held, 1, 10, false);
        for n in 0..2 * MAX_TREES {
            trees.note_reading(&RunId::new(format!("r{n}")), 0, NOW);
        }
        assert!(trees.trees.lock().len() <= MAX_TREES + 1);
        assert!(trees.trees.lock().contains_key(&held));
    }
}
