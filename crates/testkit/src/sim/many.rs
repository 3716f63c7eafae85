//! Many seeds on all cores.

use super::{SimulationStats, run};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A seed that violated an invariant, and how to reproduce it.
#[derive(Debug)]
pub struct SeedFailure {
    pub seed: u64,
    pub message: String,
}

impl std::fmt::Display for SeedFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "seed {seed}: {message}\n  cargo run -p tandem-testkit --example sim -- --seed {seed}",
            seed = self.seed,
            message = self.message
        )
    }
}

#[derive(Debug, Default)]
pub struct Summary {
    pub seeds: u64,
    pub stats: SimulationStats,
    pub failures: Vec<SeedFailure>,
}

/// Runs every seed of the range. Stops starting new ones after a few failures.
pub fn run_many(seeds: Range<u64>) -> Summary {
    let next = AtomicU64::new(seeds.start);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<Summary> = thread::scope(|scope| {
        let work = || {
            let mut part = Summary::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end || part.failures.len() >= 3 {
                    return part;
                }
                part.seeds += 1;
                match run_caught(seed) {
                    Ok(stats) => part.stats.add(&stats),
                    Err(message) => part.failures.push(SeedFailure { seed, message }),
                }
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|part| part.expect("panics are caught"))
            .collect()
    });
    let mut whole = Summary::default();
    for part in parts {
        whole.seeds += part.seeds;
        whole.stats.add(&part.stats);
        whole.failures.extend(part.failures);
    }
    whole
}

fn run_caught(seed: u64) -> Result<SimulationStats, String> {
    catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

impl SimulationStats {
    fn add(&mut self, other: &Self) {
        self.incarnations += other.incarnations;
        self.runs += other.runs;
        self.events += other.events;
        self.calls += other.calls;
    }
}
