//! When to retry, when to pause a target, and when to give up. Pure functions.
//!
//! | Failures in a row | Until the next attempt |
//! |---|---|
//! | 1, 2, 3 | 1 s, 4 s, 30 s |
//! | 4 and more | 1 h: the circuit is open; then one probe |
//!
//! A success closes the circuit. A hundred failures within seven days end the subscription. One
//! delivery that fails while others succeed has the same pauses.

use crate::jitter::with_jitter;
use tandem_record::{Timestamp, WebhookHealth, WebhookId};

const OPENS_AFTER: u32 = 4;
const OPEN_MS: u64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;
const COUNTED_DAYS: i64 = 7;
const FAILS_AFTER: u32 = 100;
/// Attempts after which a delivery is given up.
pub(super) const MAX_ATTEMPTS: u32 = 24;
/// Age after which a delivery is given up.
pub(super) const MAX_AGE_MS: u64 = 3 * 86_400_000;

/// Status of a subscription as shown to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookStatus {
    Active,
    /// The circuit is open, or a retry is pending.
    Paused,
    Failed,
}

impl WebhookStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Failed => "failed",
        }
    }
}

pub fn webhook_status(health: &WebhookHealth, now: Timestamp) -> WebhookStatus {
    if health.failed_at.is_some() {
        WebhookStatus::Failed
    } else if hold_until_after(health, now).is_some() {
        WebhookStatus::Paused
    } else {
        WebhookStatus::Active
    }
}

/// Time before which nothing may be attempted, if that is in the future.
pub(super) fn hold_until_after(health: &WebhookHealth, now: Timestamp) -> Option<Timestamp> {
    health.hold_until.filter(|until| *until > now)
}

/// Health after a successful attempt.
pub(super) fn succeeded(health: &WebhookHealth) -> WebhookHealth {
    WebhookHealth {
        consecutive_failures: 0,
        hold_until: None,
        ..health.clone()
    }
}

/// Health after a failed attempt.
pub(super) fn failed(health: &WebhookHealth, webhook: &WebhookId, now: Timestamp) -> WebhookHealth {
    let mut after = health.clone();
    after.consecutive_failures = after.consecutive_failures.saturating_add(1);
    let nth = after.consecutive_failures;
    after.hold_until = Some(now.plus_ms(pause_ms(nth, webhook, nth.into())));
    let today = now.0.div_euclid(DAY_MS);
    *after.failures_by_day.entry(today).or_default() += 1;
    let counted = after.failures_by_day.split_off(&(today - COUNTED_DAYS + 1));
    after.failures_by_day = counted;
    if after.failures_by_day.values().sum::<u32>() >= FAILS_AFTER {
        after.failed_at = Some(now);
        after.hold_until = None;
    }
    after
}

/// The pause after the n-th failure. `salt` varies the jitter and makes it repeatable.
pub(super) fn pause_ms(nth: u32, webhook: &WebhookId, salt: u64) -> u64 {
    let base = match nth {
        0 => 0,
        1 => 1_000,
        2 => 4_000,
        3 => 30_000,
        OPENS_AFTER.. => OPEN_MS,
    };
    with_jitter(base, &format!("{webhook}:{salt}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn after(failures: u32, from: WebhookHealth) -> WebhookHealth {
        let id = WebhookId::new("wh-1");
        (0..failures).fold(from, |health, _| failed(&health, &id, NOW))
    }

    #[test]
    fn pauses_grow_and_the_fourth_failure_opens_the_circuit() {
        for (failures, least) in [
            (1, 1_000),
            (2, 4_000),
            (3, 30_000),
            (4, OPEN_MS),
            (9, OPEN_MS),
        ] {
            let health = after(failures, WebhookHealth::default());
            let pause = hold_until_after(&health, NOW).unwrap().ms_since(NOW);
            assert!(
                (least..=least + least / 5).contains(&pause),
                "{failures}: {pause}"
            );
            assert_eq!(webhook_status(&health, NOW), WebhookStatus::Paused);
            assert_eq!(
                webhook_status(&health, NOW.plus_ms(pause)),
                WebhookStatus::Active
            );
        }
    }

    #[test]
    fn success_closes_the_circuit_and_keeps_the_failure_count() {
        let health = succeeded(&after(5, WebhookHealth::default()));
        assert_eq!((health.consecutive_failures, health.hold_until), (0, None));
        assert_eq!(health.failures_by_day.values().sum::<u32>(), 5);
        assert_eq!(webhook_status(&health, NOW), WebhookStatus::Active);
    }

    #[test]
    fn a_hundred_failures_in_a_week_fail_the_subscription() {
        let health = after(99, WebhookHealth::default());
        assert_eq!(health.failed_at, None);
        assert_eq!(
            webhook_status(&after(1, health.clone()), NOW),
            WebhookStatus::Failed
        );
        let id = WebhookId::new("wh-1");
        let later = NOW.plus_ms(7 * 86_400_000);
        let health = failed(&health, &id, later);
        assert_eq!(health.failed_at, None, "the week is over");
        assert_eq!(health.failures_by_day.values().sum::<u32>(), 1);
    }
}
