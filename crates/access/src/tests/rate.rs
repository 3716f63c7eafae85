use crate::{RateKey, RateLimiter, RetryAfter};
use std::net::IpAddr;

fn key(name: &str) -> RateKey {
    RateKey::credential(name)
}

#[test]
fn token_bucket_refills_at_the_configured_rate() {
    // 4 per second, burst 2: a token every 250 ms.
    let limiter = RateLimiter::new(4, 2);
    let wait = |ms| Err(RetryAfter { ms, limit: 4 });
    let table: &[(u64, Result<(), RetryAfter>)] = &[
        (1_000, Ok(())),
        (1_000, Ok(())),
        (1_000, wait(250)),
        (1_100, wait(150)),
        (1_249, wait(1)),
        (1_250, Ok(())),
        (1_250, wait(250)),
        // A clock that went back adds no tokens, neither now nor later.
        (1_000, wait(250)),
        (1_499, wait(1)),
        (1_500, Ok(())),
        // Idle time fills the bucket to the burst and no further.
        (99_000, Ok(())),
        (99_000, Ok(())),
        (99_000, wait(250)),
    ];
    for (step, (now, expected)) in table.iter().enumerate() {
        assert_eq!(limiter.check(key("a"), *now), *expected, "step {step}");
    }
}

#[test]
fn rates_that_do_not_divide_a_second_lose_nothing() {
    let limiter = RateLimiter::new(3, 2);
    let passed = (0..=9_000)
        .filter(|now| limiter.check(key("a"), *now).is_ok())
        .count();
    assert_eq!(passed, 2 + 9 * 3);

    let refused = RateLimiter::new(3, 1);
    refused.check(key("a"), 0).unwrap();
    assert_eq!(refused.check(key("a"), 0).unwrap_err().ms, 334);
    assert!(refused.check(key("a"), 334).is_ok());
}

#[test]
fn zero_is_off_and_a_burst_of_zero_is_one() {
    let off = RateLimiter::new(0, 0);
    assert!((0..1_000).all(|_| off.check(key("a"), 0).is_ok()));
    assert_eq!(off.tracked(), 0);

    let one = RateLimiter::new(1, 0);
    assert!(one.check(key("a"), 0).is_ok());
    assert_eq!(one.check(key("a"), 0).unwrap_err().ms, 1_000);
}

#[test]
fn callers_do_not_share_a_bucket() {
    let limiter = RateLimiter::new(1, 1);
    assert!(limiter.check(key("a"), 0).is_ok());
    assert!(limiter.check(key("b"), 0).is_ok());
    assert!(limiter.check(key("a"), 0).is_err());
}

#[test]
fn ipv6_addresses_share_a_bucket_per_64_bit_prefix() {
    let of = |text: &str| RateKey::address(text.parse::<IpAddr>().unwrap());
    assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
    assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
    for (one, other) in [
        ("10.0.0.1", "10.0.0.2"),
        ("2001:db8:1:2::1", "2001:db8:1:3::1"),
        ("::1", "127.0.0.1"),
    ] {
        assert_ne!(of(one), of(other));
    }
}

#[test]
fn bucket_map_is_bounded_and_retains_the_busiest() {
    let limiter = RateLimiter::with_capacity(1, 10, 8);
    for _ in 0..10 {
        limiter.check(key("busy"), 0).unwrap();
    }
    for guest in 0..1_000 {
        let _ = limiter.check(key(&format!("guest-{guest}")), 0);
        assert!(limiter.tracked() <= 8);
    }
    assert!(limiter.check(key("busy"), 0).is_err());
}

#[test]
fn full_buckets_are_evicted_first() {
    let limiter = RateLimiter::with_capacity(1, 1, 4);
    for name in ["a", "b", "c", "d"] {
        limiter.check(key(name), 0).unwrap();
    }
    limiter.check(key("e"), 1_000).unwrap();
    assert_eq!(limiter.tracked(), 1);
}
