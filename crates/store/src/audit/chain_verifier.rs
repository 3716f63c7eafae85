//! The only implementation of chain verification: entry by entry, in constant memory, from rows or
//! from an export.

use super::hash::Hash;
use super::key::PublicKey;
use super::merkle::Tree;
use super::{AuditHead, Checkpoint};
use serde::Deserialize;
use std::borrow::Cow;

/// Limit of reported breaks.
const MAX_REPORTED_BREAKS: usize = 100;

/// A broken link: the entry at `at_seq` does not contain the hash of the previous entry, or is
/// missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBreak {
    pub at_seq: u64,
    /// The hash of the previous entry; `null` for the first entry.
    pub expected: String,
    /// The hash it contains; empty when the entry is missing or unreadable.
    pub actual: String,
}

#[derive(Debug)]
pub struct ChainVerifier {
    next: u64,
    /// Hash of the entry before `next`; `None` when it is unknown or does not exist.
    before: Option<Hash>,
    /// Sequence of the last checkpoint.
    sealed: u64,
    /// Hash tree over the entries since then.
    tree: Tree,
    breaks: Vec<ChainBreak>,
}

/// The only field of an entry that a link needs.
#[derive(Deserialize)]
struct Link<'a> {
    #[serde(borrow, rename = "prevHash")]
    before: Option<Cow<'a, str>>,
}

impl ChainVerifier {
    /// Starts at the first entry.
    pub fn new() -> Self {
        Self::after(0, None)
    }

    /// Starts at the entry after `sealed`, the sequence of a checkpoint (or 0), whose hash is
    /// `before`.
    pub fn after(sealed: u64, before: Option<Hash>) -> Self {
        Self {
            next: sealed + 1,
            before,
            sealed,
            tree: Tree::default(),
            breaks: Vec::new(),
        }
    }

    pub fn entry(&mut self, seq: u64, body: &[u8]) {
        self.reach(seq);
        let link = serde_json::from_slice::<Link<'_>>(body).ok();
        let carried = link.as_ref().map(|link| link.before.as_deref());
        if self.next == 1 {
            if carried != Some(None) {
                let actual = carried.flatten().unwrap_or_default().to_owned();
                self.broken("null".to_owned(), actual);
            }
        } else if let Some(before) = self.before {
            let expected = before.to_string();
            let actual = carried.flatten().unwrap_or_default();
            if actual != expected {
                self.broken(expected, actual.to_owned());
            }
        } else if carried.is_none() {
            self.broken("unknown".to_owned(), String::new());
        }
        self.step(Hash::of(body));
    }

    /// An entry of which only the hash is known. The next known entry or the next checkpoint shows
    /// whether the hash is right.
    pub fn withheld(&mut self, seq: u64, hash: Hash) {
        self.reach(seq);
        self.step(hash);
    }

    /// Whether the checkpoint seals exactly the entries read since the previous checkpoint.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint, key: PublicKey) -> bool {
        let here = checkpoint.at_sequence == self.next - 1;
        let complete = Some(self.tree.leaves()) == checkpoint.at_sequence.checked_sub(self.sealed);
        let root = self.tree.root();
        let sound = root.is_some_and(|root| {
            root.to_string() == checkpoint.merkle_root
                && key.verifies_root(root, &checkpoint.signature)
        });
        self.sealed = checkpoint.at_sequence;
        self.tree = Tree::default();
        here && complete && sound
    }

    /// The chain is declared to end here.
    pub fn end(&mut self, head: AuditHead) {
        self.reach(head.seq + 1);
        if let Some(before) = self.before.filter(|before| *before != head.hash) {
            self.broken(before.to_string(), head.hash.to_string());
        }
    }

    /// The chain continues at least to `seq`.
    pub(super) fn missing_until(&mut self, seq: u64) {
        self.reach(seq.saturating_add(1));
    }

    /// The last entry read and its hash.
    pub fn last(&self) -> Option<AuditHead> {
        let hash = self.before?;
        let seq = self.next - 1;
        Some(AuditHead { seq, hash })
    }

    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// The root over the entries since the last checkpoint, if none is missing.
    pub(super) fn root(&self) -> Option<Hash> {
        let whole = self.sealed + self.tree.leaves() == self.next - 1;
        self.tree.root().filter(|_| whole)
    }

    pub fn breaks(&self) -> &[ChainBreak] {
        &self.breaks
    }

    /// Entries up to `seq` that were not read are missing.
    fn reach(&mut self, seq: u64) {
        if self.next < seq {
            let expected = match self.before {
                Some(before) => before.to_string(),
                None if self.next == 1 => "null".to_owned(),
                None => "unknown".to_owned(),
            };
            self.broken(expected, String::new());
            self.next = seq;
            self.before = None;
        }
    }

    fn step(&mut self, hash: Hash) {
        self.tree.push(hash);
        self.before = Some(hash);
        self.next += 1;
    }

    fn broken(&mut self, expected: String, actual: String) {
        if self.breaks.len() < MAX_REPORTED_BREAKS {
            self.breaks.push(ChainBreak {
                at_seq: self.next,
                expected,
                actual,
            });
        }
    }
}

impl Default for ChainVerifier {
    fn default() -> Self {
        Self::new()
    }
}
