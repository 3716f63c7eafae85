//! Which call gets which fault.

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
pub enum InjectedFault {
    None,
    /// Fails before anything was written.
    FailsBefore,
    /// Refused permanently: the data never fits.
    NeverFits,
    /// Durable, but the caller gets an error.
    FailsAfter,
    /// The process crashes before the commit is durable.
    CrashesBefore,
    /// The process crashes after the commit is durable; the caller gets no response.
    CrashesAfter,
    /// Delayed, before or after it is durable.
    SlowBefore(u64),
    SlowAfter(u64),
}

/// Whether a process reaches its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreConnection {
    Up,
    /// Every call fails.
    Down,
    /// Calls wait until the connection is up again and then take effect, as if the process had been
    /// paused.
    Stalled,
    /// Calls never return, as if the process had ended. No other state follows.
    Crashed,
}

/// Chosen per call from a seed, or scripted. After healing, no call fails.
pub struct Faults {
    rng: Mutex<SmallRng>,
    /// For the next commits, before random faults.
    script: Mutex<VecDeque<InjectedFault>>,
    /// For every commit after the script.
    always: Option<InjectedFault>,
    disabled: AtomicBool,
    connection: Mutex<StoreConnection>,
    /// Wakes those who wait in the order in which they came, so that a seed repeats its history.
    changed: Notify,
    crash: Notify,
    /// How many of a thousand commits get a fault of each kind.
    per_mille: u32,
    crashes: bool,
}

impl Faults {
    pub fn seeded(seed: u64, per_mille: u32, crashes: bool) -> Self {
        Self {
            rng: Mutex::new(SmallRng::seed_from_u64(seed)),
            script: Mutex::default(),
            always: None,
            disabled: AtomicBool::new(false),
            connection: Mutex::new(StoreConnection::Up),
            changed: Notify::new(),
            crash: Notify::new(),
            per_mille,
            crashes,
        }
    }

    /// No faults unless a test scripts them.
    pub fn none() -> Self {
        Self::seeded(0, 0, false)
    }

    /// Every commit gets this fault.
    pub fn always(fault: InjectedFault) -> Self {
        Self {
            always: Some(fault),
            ..Self::none()
        }
    }

    /// The next commits get these faults, in order.
    pub fn next(&self, faults: impl IntoIterator<Item = InjectedFault>) {
        self.script.lock().extend(faults);
    }

    pub fn set_connection(&self, connection: StoreConnection) {
        {
            let mut now = self.connection.lock();
            if *now == StoreConnection::Crashed {
                return;
            }
            *now = connection;
        }
        self.changed.notify_waiters();
    }

    /// Returns when a call may reach the store.
    pub(super) async fn reach(&self) -> Result<(), Fault> {
        match self.running().await {
            StoreConnection::Down => Err(io_fault()),
            _ => Ok(()),
        }
    }

    /// Waits while the process is paused, and for ever when it has ended.
    async fn running(&self) -> StoreConnection {
        loop {
            let changed = self.changed.notified();
            let now = *self.connection.lock();
            match now {
                StoreConnection::Up | StoreConnection::Down => return now,
                StoreConnection::Stalled | StoreConnection::Crashed => changed.await,
            }
        }
    }

    pub fn disable(&self) {
        self.disabled.store(true, Ordering::Relaxed);
    }

    fn is_disabled(&self) -> bool {
        self.disabled.load(Ordering::Relaxed)
    }

    /// Returns when a commit got a crash fault and the process must end.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Returns while the process runs: not while it is paused, and never after it has ended.
    pub(crate) async fn lives(&self) {
        self.running().await;
    }

    /// A call to the outside ends the process, while there are faults.
    pub(crate) async fn crash_on_call(&self) {
        if self.crashes && !self.is_disabled() {
            self.crash_process().await;
        }
    }

    /// Signals the test to end the process, and never returns.
    pub(super) async fn crash_process(&self) -> ! {
        self.crash.notify_one();
        loop {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn of_commit(&self) -> InjectedFault {
        if self.is_disabled() {
            return InjectedFault::None;
        }
        if let Some(scripted) = self.script.lock().pop_front().or(self.always) {
            return scripted;
        }
        let mut rng = self.rng.lock();
        let roll = rng.random_range(0..1000);
        let ms = rng.random_range(1..50);
        let faults = [
            InjectedFault::FailsBefore,
            InjectedFault::FailsAfter,
            InjectedFault::SlowBefore(ms),
            InjectedFault::SlowAfter(ms),
            InjectedFault::CrashesBefore,
            InjectedFault::CrashesAfter,
        ];
        let which = usize::try_from(roll / self.per_mille.max(1)).unwrap_or(usize::MAX);
        match faults.get(which) {
            Some(InjectedFault::CrashesBefore | InjectedFault::CrashesAfter) if !self.crashes => {
                InjectedFault::None
            }
            Some(fault) if self.per_mille > 0 => *fault,
            _ => InjectedFault::None,
        }
    }

    /// A read or a lease: succeeds, fails, or yields to other tasks first.
    pub(super) async fn of_read(&self) -> Result<(), Fault> {
        self.reach().await?;
        if self.is_disabled() {
            return Ok(());
        }
        let (roll, ms) = {
            let mut rng = self.rng.lock();
            (rng.random_range(0..1000), rng.random_range(1..20))
        };
        if roll < self.per_mille / 2 {
            return Err(io_fault());
        }
        if roll < self.per_mille * 2 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(())
    }
}

pub(super) fn io_fault() -> Fault {
    Fault::retryable("io", "the simulated disk is in trouble")
}
