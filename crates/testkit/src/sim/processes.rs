//! Several processes on one store at the same time. Processes crash and are replaced, lose their store
//! for a while, are paused past their leases and come back, and their clocks differ. Then all faults end,
//! the processes that are left finish every run together, and the same invariants are checked.
//!
//! Everything runs on one tokio runtime, so a seed repeats its history. A crashed process is one whose
//! calls to the store never return.

use super::{
    EPOCH, OpenStore, Simulation, SimulationStats, callbacks, check, client, purge, webhooks,
};
use crate::clock::SimClock;
use crate::failing::{Faults, StoreConnection};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_runtime::Runtime;
use tokio::time::Instant;

/// Largest difference of two clocks.
const MAX_CLOCK_DIFFERENCE_MS: u64 = 5_000;
/// Until leases of crashed processes have ended, work was taken over, and old logs are purged.
const RECOVERY: Duration = Duration::from_secs(300);

/// Faults of processes in one simulation.
#[derive(Default)]
pub(super) struct ProcessFaults {
    crashes: AtomicU64,
    pauses: AtomicU64,
    partitions: AtomicU64,
}

impl ProcessFaults {
    pub(super) fn any(&self) -> bool {
        let counts = [&self.crashes, &self.pauses, &self.partitions];
        counts.iter().any(|count| count.load(Ordering::Relaxed) > 0)
    }
}

struct Process {
    runtime: Runtime,
    faults: Arc<Faults>,
}

/// Virtual time that passes while a store on disk makes one write: during faults, and after them.
const STEP: Duration = Duration::from_millis(250);
const RECOVERY_STEP: Duration = Duration::from_secs(2);

/// Runs one simulation of several processes. `Err` names the violated invariant. With a store on disk
/// the history depends on its speed too, so a seed repeats only workflows, clients and faults.
pub fn run_processes(
    seed: u64,
    open: OpenStore,
    kind: StoreKind,
) -> Result<SimulationStats, String> {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x9e37_79b9);
    let mut sim = Simulation::new(seed, &mut rng, open);
    sim.shares_store = true;
    if rng.random_bool(0.5) {
        sim.clock_difference_ms = MAX_CLOCK_DIFFERENCE_MS;
    }
    sim.documents.push(purge::workflow());
    let sim = Arc::new(sim);
    let tokio = super::paused_tokio()?;
    tokio.block_on(async {
        match kind {
            StoreKind::Memory => sim.run_together(rng).await,
            StoreKind::Disk => {
                let clock = Arc::clone(&sim);
                tokio::select! {
                    biased;
                    done = sim.run_together(rng) => done,
                    stopped = clock.pass_time() => stopped,
                }
            }
        }
    })
}

/// Where a simulated store keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    Memory,
    Disk,
}

impl Simulation {
    async fn run_together(self: Arc<Self>, mut rng: SmallRng) -> Result<SimulationStats, String> {
        let mut processes = Vec::new();
        for _ in 0..rng.random_range(2..4) {
            processes.push(self.start_process(&mut rng).await);
        }
        let first = &processes[0].runtime;
        webhooks::register(first).await;
        self.register(first).await;
        // Longer than another process may miss the registration.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for process in &processes {
            for _ in 0..rng.random_range(1..3) {
                self.start_client(process, &mut rng);
            }
        }
        let started = self.disturb(&mut processes, &mut rng).await;
        for process in &processes {
            process.faults.set_connection(StoreConnection::Up);
            process.faults.disable();
        }
        self.is_recovering.store(true, Ordering::Relaxed);
        tokio::time::sleep(RECOVERY).await;
        let runtime = &processes[0].runtime;
        callbacks::check_open_questions_announced(&self, runtime).await?;
        self.finish_all_runs(runtime).await?;
        tokio::time::sleep(RECOVERY).await;
        let mut stats = check::check_all(&self, runtime).await?;
        let metrics =
            |count: fn(&Runtime) -> u64| processes.iter().map(|p| count(&p.runtime)).sum();
        let panics: u64 = metrics(|runtime| runtime.metrics().panics.get());
        check::ensure(panics == 0, || format!("{panics} tasks panicked"))?;
        stats.processes = started + processes.len() as u64;
        stats.crashes = self.process_faults.crashes.load(Ordering::Relaxed);
        stats.pauses = self.process_faults.pauses.load(Ordering::Relaxed);
        stats.partitions = self.process_faults.partitions.load(Ordering::Relaxed);
        stats.clock_differences = u64::from(self.clock_difference_ms > 0);
        stats.leases_lost = metrics(|runtime| runtime.metrics().leases_lost.get());
        stats.conflicts = metrics(|runtime| runtime.metrics().conflicts.get());
        Ok(stats)
    }

    /// Advances time in steps, one for each write of the store. Otherwise tokio would advance it whenever all
    /// tasks wait for the disk.
    async fn pass_time(&self) -> Result<SimulationStats, String> {
        let (_release, held) = std::sync::mpsc::channel::<()>();
        // Time does not advance by itself while a blocking task runs. This one ends with `_release`.
        drop(tokio::task::spawn_blocking(move || held.recv()));
        let store = self.store();
        loop {
            store.ping().await.map_err(check::store_failed)?;
            let recovering = self.is_recovering.load(Ordering::Relaxed);
            tokio::time::advance(if recovering { RECOVERY_STEP } else { STEP }).await;
        }
    }

    async fn start_process(&self, rng: &mut SmallRng) -> Process {
        let per_mille = [0, 0, 5, 15][rng.random_range(0..4)];
        let faults = Arc::new(Faults::seeded(rng.random(), per_mille, false));
        let ahead = rng.random_range(0..=self.clock_difference_ms);
        let clock = Arc::new(SimClock::starting_at(self.now().plus_ms(ahead)));
        let runtime = self.start_runtime(&clock, Arc::clone(&faults)).await;
        Process { runtime, faults }
    }

    /// The true time: that of a process whose clock is not ahead.
    fn now(&self) -> tandem_record::Timestamp {
        let elapsed = self.started.get_or_init(Instant::now).elapsed();
        EPOCH.plus_ms(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    /// Its client stops with the process.
    fn start_client(self: &Arc<Self>, process: &Process, rng: &mut SmallRng) {
        let rng = SmallRng::seed_from_u64(rng.random());
        let act = client::act(Arc::clone(self), process.runtime.clone(), rng);
        drop(tokio::spawn(act));
    }

    /// Faults of processes, one after the other and overlapping. Returns how many processes were
    /// replaced.
    async fn disturb(self: &Arc<Self>, processes: &mut [Process], rng: &mut SmallRng) -> u64 {
        let end = Instant::now() + Duration::from_millis(rng.random_range(5_000..120_000));
        let calm = rng.random_bool(0.1);
        let mut replaced = 0;
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(rng.random_range(200..8_000))).await;
            let process = rng.random_range(0..processes.len());
            let process = &mut processes[process];
            let faults = &self.process_faults;
            match rng.random_range(0..10) {
                _ if calm => {}
                0..2 => {
                    faults.crashes.fetch_add(1, Ordering::Relaxed);
                    process.faults.set_connection(StoreConnection::Crashed);
                    *process = self.start_process(rng).await;
                    self.start_client(process, rng);
                    replaced += 1;
                }
                2..5 => {
                    faults.pauses.fetch_add(1, Ordering::Relaxed);
                    interrupt(
                        process,
                        StoreConnection::Stalled,
                        rng.random_range(100..60_000),
                    );
                }
                5..8 => {
                    faults.partitions.fetch_add(1, Ordering::Relaxed);
                    interrupt(
                        process,
                        StoreConnection::Down,
                        rng.random_range(100..40_000),
                    );
                }
                _ => self.start_client(process, rng),
            }
        }
        replaced
    }
}

/// Interrupts the connection to the store for a while.
fn interrupt(process: &Process, connection: StoreConnection, ms: u64) {
    let faults = Arc::clone(&process.faults);
    faults.set_connection(connection);
    drop(tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        faults.set_connection(StoreConnection::Up);
    }));
}
