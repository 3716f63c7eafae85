//! The root of a hash tree over entry hashes. A parent is the hash of its children's hex digits; an
//! odd last node moves up unchanged.

use super::hash::Hash;

/// Accepts any number of leaves in memory proportional to its height: it keeps complete subtrees,
/// tallest first.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    peaks: Vec<(u32, Hash)>,
    leaves: u64,
}

impl Tree {
    pub fn push(&mut self, leaf: Hash) {
        let mut peak = (0, leaf);
        while let Some((_, left)) = self.peaks.pop_if(|(height, _)| *height == peak.0) {
            peak = (peak.0 + 1, parent(left, peak.1));
        }
        self.peaks.push(peak);
        self.leaves += 1;
    }

    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// `None` without a leaf.
    pub fn root(&self) -> Option<Hash> {
        let peaks = self.peaks.iter().rev().map(|(_, hash)| *hash);
        peaks.reduce(|right, left| parent(left, right))
    }
}

fn parent(left: Hash, right: Hash) -> Hash {
    Hash::of(format!("{left}{right}").as_bytes())
}
