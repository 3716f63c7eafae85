//! What this host sent itself, as far as it tells echoes of that from answers that a person gave past it.
//!
//! A network reports every text of the agent's account. Its id says whose it is; an echo that overtakes the answer to the
//! send has an id that nobody knows yet, and is known by its text.

use super::state::ChatSession;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use tandem_record::{EffectId, Timestamp};

const MAX_IDS: usize = 200;
const MAX_TEXTS: usize = 20;
/// How long a text without an id of its own is known after it was sent.
const MOMENT_MS: u64 = 60_000;
/// A shorter echo is not a part of a text that was split.
const MIN_PART_BYTES: usize = 500;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OwnSends {
    /// Hashes of the ids that networks gave, the newest last.
    ids: VecDeque<u64>,
    texts: VecDeque<OwnText>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OwnText {
    effect: EffectId,
    to: String,
    text: String,
    sent_at: Option<Timestamp>,
    has_id: bool,
}

impl OwnSends {
    pub(super) fn add(&mut self, effect: &EffectId, to: &str, text: &str) {
        self.texts.push_back(OwnText {
            effect: effect.clone(),
            to: to.to_owned(),
            text: text.to_owned(),
            sent_at: None,
            has_id: false,
        });
        if self.texts.len() > MAX_TEXTS {
            self.texts.pop_front();
        }
    }

    /// A text that was split has the ids of all its parts.
    pub(super) fn note_sent(&mut self, effect: &EffectId, ids: &[&str], at: Timestamp) {
        self.ids.extend(ids.iter().map(|id| hash(id)));
        let surplus = self.ids.len().saturating_sub(MAX_IDS);
        self.ids.drain(..surplus);
        let mut texts = self.texts.iter_mut();
        if let Some(text) = texts.find(|text| text.effect == *effect) {
            text.sent_at = Some(at);
            text.has_id = !ids.is_empty();
        }
    }

    pub(super) fn forget(&mut self, effect: &EffectId) {
        self.texts.retain(|text| text.effect != *effect);
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.ids.contains(&hash(id))
    }

    pub(super) fn bytes(&self) -> usize {
        let texts = self.texts.iter().map(|text| text.text.len() + 100);
        texts.sum::<usize>() + self.ids.len() * size_of::<u64>()
    }
}

impl OwnText {
    fn is_echoed_by(&self, to: &str, echo: &str, now: Timestamp) -> bool {
        let is_recent = self
            .sent_at
            .is_none_or(|sent| now.ms_since(sent) <= MOMENT_MS);
        let is_whole = !self.has_id && self.text.trim() == echo.trim();
        // Its parts have ids of their own.
        let is_part = echo.len() >= MIN_PART_BYTES
            && self.text.len() > echo.len()
            && self.text.contains(echo.trim());
        self.to == to && is_recent && (is_whole || is_part)
    }
}

impl ChatSession {
    /// Whether a text of the agent's account is one that this session sent.
    pub fn sent_itself(&self, id: &str, to: &str, text: &str, now: Timestamp) -> bool {
        let sends = &self.own_sends;
        let mut texts = sends.texts.iter();
        sends.has_id(id) || texts.any(|own| own.is_echoed_by(to, text, now))
    }
}

fn hash(id: &str) -> u64 {
    let digest = Sha256::digest(id.as_bytes());
    let bytes = digest.iter().take(size_of::<u64>());
    bytes.fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}
