//! Which call meets which mishap.

use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tandem_store::Fault;
use tokio::sync::Notify;

/// What happens to a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    None,
    /// Refused before anything was written.
    FailsBefore,
    /// Refused for good: what was to be written never fits.
    NeverFits,
    /// Durable, but the caller is told it failed.
    FailsAfter,
    /// The process dies before the commit reached the disk.
    CrashesBefore,
    /// The process dies after it did; the caller never hears.
    CrashesAfter,
    /// Takes its time, before or after it is durable.
    SlowBefore(u64),
    SlowAfter(u64),
}

/// Rolled per call from a seed, or scripted. Healed, it lets everything pass.
pub struct Faults {
    rng: Mutex<SmallRng>,
    /// For the next commits, before anything is rolled.
    script: Mutex<VecDeque<Mishap>>,
    /// For every commit after the script.
    always: Option<Mishap>,
    healed: AtomicBool,
    crash: Notify,
    /// Of a thousand commits, how many meet a mishap of each kind.
    per_mille: u32,
    crashes: bool,
}

impl Faults {
    pub fn seeded(seed: u64, per_mille: u32, crashes: bool) -> Self {
        Self {
            rng: Mutex::new(SmallRng::seed_from_u64(seed)),
            script: Mutex::default(),
            always: None,
            healed: AtomicBool::new(false),
            crash: Notify::new(),
            per_mille,
            crashes,
        }
    }

    /// Nothing goes wrong until a test says so.
    pub fn none() -> Self {
        Self::seeded(0, 0, false)
    }

    /// Every commit meets this mishap.
    pub fn always(mishap: Mishap) -> Self {
        Self {
            always: Some(mishap),
            ..Self::none()
        }
    }

    /// The next commits meet these, in order.
    pub fn next(&self, mishaps: impl IntoIterator<Item = Mishap>) {
        self.script.lock().extend(mishaps);
    }

    pub fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
    }

    fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// Returns when a commit met its death and the process has to follow.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Tells the test to let the process die, and never returns.
    pub(super) async fn die(&self) -> ! {
        self.crash.notify_one();
        loop {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn of_commit(&self) -> Mishap {
        if self.is_healed() {
            return Mishap::None;
        }
        if let Some(scripted) = self.script.lock().pop_front().or(self.always) {
            return scripted;
        }
        let mut rng = self.rng.lock();
        let roll = rng.random_range(0..1000);
        let ms = rng.random_range(1..50);
        let mishaps = [
            Mishap::FailsBefore,
            Mishap::FailsAfter,
            Mishap::SlowBefore(ms),
            Mishap::SlowAfter(ms),
            Mishap::CrashesBefore,
            Mishap::CrashesAfter,
        ];
        let which = usize::try_from(roll / self.per_mille.max(1)).unwrap_or(usize::MAX);
        match mishaps.get(which) {
            Some(Mishap::CrashesBefore | Mishap::CrashesAfter) if !self.crashes => Mishap::None,
            Some(mishap) if self.per_mille > 0 => *mishap,
            _ => Mishap::None,
        }
    }

    /// A read or a lease: passes, fails, or lets others go first.
    pub(super) async fn of_read(&self) -> Result<(), Fault> {
        if self.is_healed() {
            return Ok(());
        }
        let (roll, ms) = {
            let mut rng = self.rng.lock();
            (rng.random_range(0..1000), rng.random_range(1..20))
        };
        if roll < self.per_mille / 2 {
            return Err(trouble());
        }
        if roll < self.per_mille * 2 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(())
    }
}

pub(super) fn trouble() -> Fault {
    Fault::retryable("io", "the simulated disk is in trouble")
}
