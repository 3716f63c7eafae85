//! Request rate limits: one token bucket per key.
//!
//! Runs before authentication, so a bucket is keyed by what is known then: a digest of the
//! presented credential, or the client's address. A client that guesses credentials gets a new
//! bucket with each guess, so failed attempts must be limited by address as well.
//!
//! Arithmetic is in thousandths of a token: a rate per second adds exactly `rate` parts per
//! millisecond, without rounding.

use crate::digest::Digest;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;

const PARTS_PER_TOKEN: u64 = 1_000;
const CAPACITY: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey([u8; 16]);

impl RateKey {
    pub fn credential(presented: &str) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&Digest::of(presented).bytes()[..16]);
        Self(key)
    }

    /// IPv6 callers are counted by their /64 prefix, which one customer usually owns.
    pub fn address(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => (u128::from(v6) >> 64 << 64).to_be_bytes(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests; the limit is {limit} per second, try again in {ms} ms")]
pub struct RetryAfter {
    /// Time until one request is accepted; at least 1.
    pub ms: u64,
    /// The sustained rate, in requests per second.
    pub limit: u32,
}

pub struct RateLimiter {
    per_second: u32,
    /// Parts in a full bucket.
    full: u64,
    capacity: usize,
    buckets: Mutex<HashMap<RateKey, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    parts: u64,
    at_ms: u64,
}

impl RateLimiter {
    /// `per_second` of 0 turns limiting off. A burst below 1 would refuse everything, so it counts
    /// as 1.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self::with_capacity(per_second, burst, CAPACITY)
    }

    pub(crate) fn with_capacity(per_second: u32, burst: u32, capacity: usize) -> Self {
        Self {
            per_second,
            full: u64::from(burst.max(1)) * PARTS_PER_TOKEN,
            capacity,
            buckets: Mutex::default(),
        }
    }

    /// Takes one token. A refused request costs nothing.
    pub fn check(&self, key: RateKey, now_ms: u64) -> Result<(), RetryAfter> {
        if self.per_second == 0 {
            return Ok(());
        }
        let mut buckets = self.buckets.lock();
        if buckets.len() >= self.capacity && !buckets.contains_key(&key) {
            self.evict(&mut buckets, now_ms);
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            parts: self.full,
            at_ms: now_ms,
        });
        bucket.parts = self.level(bucket, now_ms);
        // Time never goes back, so that no interval is credited twice.
        bucket.at_ms = bucket.at_ms.max(now_ms);
        match bucket.parts.checked_sub(PARTS_PER_TOKEN) {
            Some(rest) => {
                bucket.parts = rest;
                Ok(())
            }
            None => Err(RetryAfter {
                ms: (PARTS_PER_TOKEN - bucket.parts).div_ceil(u64::from(self.per_second)),
                limit: self.per_second,
            }),
        }
    }

    fn level(&self, bucket: &Bucket, now_ms: u64) -> u64 {
        now_ms
            .saturating_sub(bucket.at_ms)
            .saturating_mul(u64::from(self.per_second))
            .saturating_add(bucket.parts)
            .min(self.full)
    }

    /// Full buckets hold no information, so they are evicted first. If that frees too little, the
    /// fullest quarter is evicted: its callers lose the least, and evicting a quarter at once keeps
    /// the cost per request small.
    fn evict(&self, buckets: &mut HashMap<RateKey, Bucket>, now_ms: u64) {
        buckets.retain(|_, bucket| self.level(bucket, now_ms) < self.full);
        let keep = self.capacity - self.capacity.div_ceil(4);
        if buckets.len() <= keep {
            return;
        }
        let mut levels: Vec<_> = buckets
            .iter()
            .map(|(key, bucket)| (self.level(bucket, now_ms), *key))
            .collect();
        levels.sort_unstable_by_key(|(level, _)| *level);
        for (_, key) in &levels[keep..] {
            buckets.remove(key);
        }
    }

    #[cfg(test)]
    pub(crate) fn tracked(&self) -> usize {
        self.buckets.lock().len()
    }
}
