//! Wakes the loop that fires timers when a timer is set that is due before the loop looks again. A
//! later timer wakes nobody: the loop finds it in the store.

use std::sync::atomic::{AtomicI64, Ordering};
use tandem_record::Timestamp;
use tokio::sync::Notify;

pub(crate) struct TimerBell {
    wake: Notify,
    /// When the loop reads the store next. While it reads, every timer wakes it again: the timer may
    /// be missing from what it has read.
    next_read: AtomicI64,
}

impl Default for TimerBell {
    fn default() -> Self {
        Self {
            wake: Notify::new(),
            next_read: AtomicI64::new(i64::MAX),
        }
    }
}

impl TimerBell {
    /// Call after the commit that sets the timer.
    pub(crate) fn timer_set(&self, due: Timestamp) {
        if due.0 < self.next_read.load(Ordering::SeqCst) {
            self.wake.notify_one();
        }
    }

    /// The clock was moved, or timers changed in another way.
    pub(crate) fn ring(&self) {
        self.wake.notify_one();
    }

    /// Call before the store is read.
    pub(crate) fn begin_read(&self) {
        self.next_read.store(i64::MAX, Ordering::SeqCst);
    }

    /// Nothing that was read is due before this time.
    pub(crate) fn sleep_until(&self, next_read: Timestamp) {
        self.next_read.store(next_read.0, Ordering::SeqCst);
    }

    pub(crate) async fn notified(&self) {
        self.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_woken(bell: &TimerBell) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(bell.notified()).poll(&mut context).is_ready()
    }

    #[test]
    fn only_timers_before_the_next_read_wake_the_loop() {
        let bell = TimerBell::default();
        bell.begin_read();
        bell.sleep_until(Timestamp(1_000));
        bell.timer_set(Timestamp(1_000));
        bell.timer_set(Timestamp(i64::MAX - 1));
        assert!(!is_woken(&bell));
        bell.timer_set(Timestamp(999));
        assert!(is_woken(&bell));
    }

    #[test]
    fn timers_set_during_a_read_wake_the_loop_after_it() {
        let bell = TimerBell::default();
        bell.sleep_until(Timestamp(1_000));
        bell.begin_read();
        bell.timer_set(Timestamp(5_000));
        bell.sleep_until(Timestamp(2_000));
        assert!(is_woken(&bell));
    }
}
