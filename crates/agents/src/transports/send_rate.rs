//! How many messages a network takes: a token bucket for the whole account, and one for each address.
//!
//! Nothing waits here. A message that comes too early is told how long to wait, and its outbox entry does that. The
//! buckets are in memory: after a restart, and with several processes, the network's own answer decides.

use parking_lot::Mutex;
use std::collections::HashMap;
use tandem_record::Timestamp;

/// Addresses that are counted. Beyond that, those that may send anyway are forgotten.
const MAX_ADDRESSES: usize = 10_000;

/// So many messages at once, refilled over so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) messages: u32,
    pub(super) per_ms: u32,
}

impl Rate {
    pub(super) const fn new(messages: u32, per_ms: u32) -> Self {
        Self { messages, per_ms }
    }

    fn interval_ms(self) -> i64 {
        i64::from(self.per_ms.div_ceil(self.messages.max(1))).max(1)
    }

    /// When a bucket is full whose next message is due at `due`, and how long a message has to wait.
    fn wait_ms(self, due: i64, now: i64) -> i64 {
        let burst = self.interval_ms() * (i64::from(self.messages.max(1)) - 1);
        (due - burst - now).max(0)
    }

    fn after_message(self, due: i64, now: i64) -> i64 {
        due.max(now) + self.interval_ms()
    }
}

#[derive(Default)]
struct Due {
    overall: i64,
    /// The place after those that were told to come back. Each gets a place of its own, so that many messages that
    /// wait do not all come back for the same one.
    promised: i64,
    addresses: HashMap<String, i64>,
}

impl Due {
    /// How long the next message of the account has to wait.
    fn wait_ms(&mut self, rate: Rate, now: i64) -> i64 {
        if rate.wait_ms(self.overall, now) == 0 {
            return 0;
        }
        let place = self.promised.max(self.overall);
        self.promised = place + rate.interval_ms();
        rate.wait_ms(place, now)
    }
}

pub(super) struct SendRate {
    overall: Option<Rate>,
    per_address: Option<Rate>,
    /// When each bucket is full again, in milliseconds since 1970.
    due: Mutex<Due>,
}

impl SendRate {
    pub(super) fn new(overall: Option<Rate>, per_address: Option<Rate>) -> Self {
        Self {
            overall,
            per_address,
            due: Mutex::default(),
        }
    }

    /// Counts a message to an address, or says in how many milliseconds it may be sent.
    pub(super) fn take(&self, to: &str, now: Timestamp) -> Result<(), u64> {
        let now = now.0;
        let mut due = self.due.lock();
        let of_address = due.addresses.get(to).copied().unwrap_or(0);
        let overall = self.overall.map_or(0, |rate| due.wait_ms(rate, now));
        let own = self
            .per_address
            .map_or(0, |rate| rate.wait_ms(of_address, now));
        let wait = overall.max(own);
        if wait > 0 {
            return Err(wait.unsigned_abs());
        }
        if let Some(rate) = self.overall {
            due.overall = rate.after_message(due.overall, now);
        }
        if let Some(rate) = self.per_address {
            if due.addresses.len() >= MAX_ADDRESSES {
                due.addresses.retain(|_, due| *due > now);
            }
            if due.addresses.len() >= MAX_ADDRESSES {
                due.addresses.clear();
            }
            let next = rate.after_message(of_address, now);
            due.addresses.insert(to.to_owned(), next);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_taken_and_the_rest_waits() {
        let rate = SendRate::new(Some(Rate::new(10, 1_000)), Some(Rate::new(2, 2_000)));
        let at = |ms: i64| Timestamp(1_000_000 + ms);
        assert_eq!(rate.take("a", at(0)), Ok(()));
        assert_eq!(rate.take("a", at(0)), Ok(()));
        assert_eq!(
            rate.take("a", at(0)),
            Err(1_000),
            "two at once to one address"
        );
        assert_eq!(rate.take("a", at(999)), Err(1));
        assert_eq!(rate.take("a", at(1_000)), Ok(()));
        for other in 0..10 {
            assert_eq!(rate.take(&format!("b{other}"), at(2_000)), Ok(()));
        }
        assert_eq!(rate.take("c", at(2_000)), Err(100), "ten at once in all");
        assert_eq!(rate.take("c", at(2_100)), Ok(()));
    }

    #[test]
    fn those_who_wait_come_back_one_after_the_other() {
        let rate = SendRate::new(Some(Rate::new(1, 1_000)), None);
        let at = |ms: i64| Timestamp(1_000_000 + ms);
        assert_eq!(rate.take("a", at(0)), Ok(()));
        let waits = [1, 2, 3].map(|n: u64| rate.take(&n.to_string(), at(0)));
        assert_eq!(waits, [Err(1_000), Err(2_000), Err(3_000)]);
        for n in 1..=3 {
            assert_eq!(rate.take("b", at(n * 1_000)), Ok(()), "at its place");
        }
    }

    #[test]
    fn no_rate_is_no_limit() {
        let rate = SendRate::new(None, None);
        for _ in 0..1_000 {
            assert_eq!(rate.take("a", Timestamp(0)), Ok(()));
        }
    }

    #[test]
    fn addresses_are_bounded() {
        let rate = SendRate::new(None, Some(Rate::new(1, 1_000)));
        for address in 0..3 * MAX_ADDRESSES {
            assert_eq!(rate.take(&address.to_string(), Timestamp(0)), Ok(()));
        }
        assert!(rate.due.lock().addresses.len() <= MAX_ADDRESSES);
    }
}
