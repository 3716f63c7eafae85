//! Many seeds on all cores.

use super::{SimulationStats, StoreKind, memory_store, run, run_conversations, run_processes};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A seed that violated an invariant, and how to reproduce it.
#[derive(Debug)]
pub struct SeedFailure {
    pub seed: u64,
    /// Which simulation it was, for the command line.
    pub kind: &'static str,
    pub message: String,
}

impl std::fmt::Display for SeedFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "seed {seed}: {message}\n  cargo xtask sim --seed {seed} --only {kind}",
            seed = self.seed,
            kind = self.kind,
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

/// Simulates one process at a time with every seed of the range.
pub fn run_many(seeds: Range<u64>) -> Summary {
    run_seeds(seeds, "incarnations", run)
}

/// Simulates several processes at a time with every seed of the range.
pub fn run_many_processes(seeds: Range<u64>) -> Summary {
    run_seeds(seeds, "processes", |seed| {
        run_processes(seed, memory_store(), StoreKind::Memory)
    })
}

/// Simulates conversations with every seed of the range.
pub fn run_many_conversations(seeds: Range<u64>) -> Summary {
    run_seeds(seeds, "conversations", |seed| {
        run_conversations(seed, memory_store(), StoreKind::Memory)
    })
}

/// Runs a simulation with every seed of the range. Stops starting new ones after a few failures.
pub fn run_seeds(
    seeds: Range<u64>,
    kind: &'static str,
    simulate: impl Fn(u64) -> Result<SimulationStats, String> + Sync,
) -> Summary {
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
                match caught(|| simulate(seed)) {
                    Ok(stats) => part.stats.add(&stats),
                    Err(message) => part.failures.push(SeedFailure {
                        seed,
                        kind,
                        message,
                    }),
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

fn caught(
    simulate: impl FnOnce() -> Result<SimulationStats, String>,
) -> Result<SimulationStats, String> {
    catch_unwind(AssertUnwindSafe(simulate)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

impl SimulationStats {
    pub(super) fn add(&mut self, other: &Self) {
        self.incarnations += other.incarnations;
        self.runs += other.runs;
        self.events += other.events;
        self.calls += other.calls;
        self.processes += other.processes;
        self.crashes += other.crashes;
        self.pauses += other.pauses;
        self.partitions += other.partitions;
        self.clock_differences += other.clock_differences;
        self.leases_lost += other.leases_lost;
        self.conflicts += other.conflicts;
        self.repeated_calls += other.repeated_calls;
        self.purged_runs += other.purged_runs;
        self.forks += other.forks;
        self.sessions += other.sessions;
        self.turns += other.turns;
        self.flow_runs += other.flow_runs;
        self.texts += other.texts;
        self.rebuilt_flows += other.rebuilt_flows;
        self.strict += other.strict;
        self.bridges += other.bridges;
        self.forwarded += other.forwarded;
        self.scheduled_turns += other.scheduled_turns;
        self.campaigns += other.campaigns;
    }
}
