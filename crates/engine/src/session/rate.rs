//! How many messages a sender may write: a sliding window of 60 seconds, as plain state.
//!
//! Only messages of users are counted; the caller asks for nothing else.

use std::collections::{HashMap, VecDeque};

const WINDOW_MS: u64 = 60_000;
const SWEEP_MS: u64 = 1_000;
/// Senders remembered at the same time. Above it, those whose window is empty are forgotten.
const MAX_SENDERS: usize = 100_000;

/// The messages of one sender within the last minute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RateWindow {
    /// Times of admitted messages, oldest first.
    admitted: VecDeque<u64>,
}

impl RateWindow {
    /// Whether one more message may be processed now. A refused message is not counted.
    pub fn admit(&mut self, now_ms: u64, limit: u32) -> bool {
        self.forget_before(now_ms);
        if self.admitted.len() >= limit as usize {
            return false;
        }
        // A clock that is behind must not put times out of order.
        let newest = self.admitted.back().copied().unwrap_or(0);
        self.admitted.push_back(now_ms.max(newest));
        true
    }

    pub fn is_empty(&self) -> bool {
        self.admitted.is_empty()
    }

    fn forget_before(&mut self, now_ms: u64) {
        while self
            .admitted
            .front()
            .is_some_and(|at| at.saturating_add(WINDOW_MS) <= now_ms)
        {
            self.admitted.pop_front();
        }
    }
}

/// The windows of all senders of one agent.
#[derive(Debug, Default)]
pub struct SenderRates {
    windows: HashMap<String, RateWindow>,
    swept_at_ms: u64,
}

impl SenderRates {
    pub fn admit(&mut self, sender: &str, now_ms: u64, limit: u32) -> bool {
        if let Some(window) = self.windows.get_mut(sender) {
            return window.admit(now_ms, limit);
        }
        // Looking through all senders is expensive: at most once in a second.
        if self.windows.len() >= MAX_SENDERS && now_ms >= self.swept_at_ms.saturating_add(SWEEP_MS)
        {
            self.swept_at_ms = now_ms;
            self.windows.retain(|_, window| {
                window.forget_before(now_ms);
                !window.is_empty()
            });
        }
        // With so many active senders, a further one is not admitted: the bound holds.
        if self.windows.len() >= MAX_SENDERS {
            return false;
        }
        let window = self.windows.entry(sender.to_owned()).or_default();
        window.admit(now_ms, limit)
    }
}
