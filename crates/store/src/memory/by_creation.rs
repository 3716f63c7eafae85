//! Rows in order of creation, found by their id.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

pub(super) struct ByCreation<I, T> {
    /// By position, from 1 up. Positions are not reused.
    rows: BTreeMap<i64, T>,
    positions: HashMap<I, i64>,
    last: i64,
}

impl<I, T> Default for ByCreation<I, T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            positions: HashMap::new(),
            last: 0,
        }
    }
}

impl<I: Eq + Hash, T> ByCreation<I, T> {
    pub(super) fn position(&self, id: &I) -> Option<i64> {
        self.positions.get(id).copied()
    }

    pub(super) fn get(&self, id: &I) -> Option<&T> {
        self.rows.get(&self.position(id)?)
    }

    pub(super) fn get_mut(&mut self, id: &I) -> Option<&mut T> {
        self.rows.get_mut(self.positions.get(id)?)
    }

    pub(super) fn add(&mut self, id: I, row: T) {
        self.last += 1;
        self.positions.insert(id, self.last);
        self.rows.insert(self.last, row);
    }

    /// With their positions, oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &T)> {
        self.rows.iter().map(|(position, row)| (*position, row))
    }

    /// Rows older than the named one, or all, newest first.
    pub(super) fn older(&self, than: Option<&I>) -> impl Iterator<Item = &T> {
        let end = than.and_then(|id| self.position(id));
        let older = self.rows.range(..end.unwrap_or(i64::MAX)).rev();
        older.map(|(_, row)| row)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.rows.retain(|_, row| keep(row));
        let rows = &self.rows;
        self.positions
            .retain(|_, position| rows.contains_key(position));
    }
}
