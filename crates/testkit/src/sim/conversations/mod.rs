//! Simulated conversations: users of two tenants talk at once with scripted agents, admins decide, and one to
//! three processes on one store crash, pause, lose their store and have clocks that differ and jump. Then all
//! faults end, everything comes to its end, and [`check`] compares the logs with what users, admins and the
//! outside saw, and with every row that follows from them.
//!
//! A seed decides everything: agents, flows, people, faults and time.

mod agents;
mod any_session;
mod check;
mod desks;
mod flow_code;
mod outside;
mod people;
mod processes;
mod schedulers;

use super::processes::StoreKind;
use super::{EPOCH, OpenStore, SimulationStats, paused_tokio};
use crate::failing::{Faults, InjectedFault};
use crate::ids::SimIds;
use outside::Outside;
use parking_lot::Mutex;
use people::Observed;
use processes::Process;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tandem_record::{TenantId, Timestamp};
use tandem_runtime::Runtime;
use tokio::time::Instant;

/// Users of both have the same addresses and use the same message ids.
const TENANTS: [&str; 2] = ["acme", "globex"];
/// Whose the schedules of agents' files are. It has few users.
const HOUSE: &str = "default";
/// Virtual time that passes while a store on disk makes one write: during faults, and after them.
const STEP: Duration = Duration::from_millis(100);
const RECOVERY_STEP: Duration = Duration::from_secs(2);
/// After the faults: until leases and claims of processes that ended are over.
const RECOVERY: Duration = Duration::from_secs(90);

fn tenants() -> [TenantId; 3] {
    [TENANTS[0], TENANTS[1], HOUSE].map(TenantId::new)
}

struct Conversations {
    open: OpenStore,
    kind: StoreKind,
    outside: Arc<Outside>,
    observed: Mutex<Observed>,
    ids: Arc<SimIds>,
    processes: Mutex<Vec<Process>>,
    /// Those that have ended too.
    started: Mutex<Vec<Runtime>>,
    crashed: tokio::sync::mpsc::UnboundedSender<Arc<Faults>>,
    shares_store: bool,
    clock_difference_ms: u64,
    /// Flows are run again after every turn.
    is_strict: bool,
    /// Faults of a thousand commits, per kind.
    per_mille: [u32; 4],
    /// All faults have ended.
    is_recovering: AtomicBool,
    crashes: AtomicU64,
    pauses: AtomicU64,
    partitions: AtomicU64,
    begin: Instant,
    crash_at: Option<CrashAt>,
}

/// The first process ends at this commit.
#[derive(Clone, Copy)]
struct CrashAt {
    commit: usize,
    fault: InjectedFault,
}

/// Commits of a short conversation at most.
const MAX_COMMITS: usize = 1_000;

/// Runs one short conversation of one user again and again: the process ends at each of its commits, before and
/// after it is durable. `Err` names the violated property.
pub fn run_crash_points(seed: u64) -> Result<SimulationStats, String> {
    let mut whole = SimulationStats::default();
    for commit in 0..MAX_COMMITS {
        for fault in [InjectedFault::CrashesBefore, InjectedFault::CrashesAfter] {
            let crash = CrashAt { commit, fault };
            let store = super::memory_store();
            let stats = simulate(seed, store, StoreKind::Memory, Some(crash));
            let stats = stats.map_err(|why| format!("{fault:?} commit {commit}: {why}"))?;
            if stats.crashes == 0 {
                return Ok(whole);
            }
            whole.add(&stats);
        }
    }
    Ok(whole)
}

/// Runs one simulation. `Err` names the violated property. With a store on disk the history depends on its
/// speed too, so a seed repeats only agents, people and faults.
pub fn run_conversations(
    seed: u64,
    open: OpenStore,
    kind: StoreKind,
) -> Result<SimulationStats, String> {
    simulate(seed, open, kind, None)
}

fn simulate(
    seed: u64,
    open: OpenStore,
    kind: StoreKind,
    crash_at: Option<CrashAt>,
) -> Result<SimulationStats, String> {
    paused_tokio()?.block_on(async {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0xc0_74e7);
        let (crashed, crashes) = tokio::sync::mpsc::unbounded_channel();
        let mut outside = Outside::random(seed, &mut rng);
        let mut count = rng.random_range(1..4);
        let mut plan = processes::Plan::random(&mut rng);
        if crash_at.is_some() {
            (count, plan) = (1, processes::Plan::calm());
            outside = outside.calm();
        }
        outside.checks_recorded = !plan.outlives_leases();
        let is_strict = rng.random_bool(0.3);
        let sim = Arc::new(Conversations {
            open,
            kind,
            outside: Arc::new(outside),
            observed: Mutex::default(),
            ids: Arc::new(SimIds::new(seed)),
            processes: Mutex::default(),
            started: Mutex::default(),
            crashed,
            shares_store: count > 1,
            clock_difference_ms: if plan.clocks_differ { 5_000 } else { 0 },
            is_strict,
            per_mille: if plan.commits_fail {
                [0, 5, 20, 60]
            } else {
                [0; 4]
            },
            is_recovering: AtomicBool::new(false),
            crashes: AtomicU64::new(0),
            pauses: AtomicU64::new(0),
            partitions: AtomicU64::new(0),
            crash_at,
            begin: Instant::now(),
        });
        let clock = Arc::clone(&sim);
        let run = async {
            for _ in 0..count {
                let process = sim.start_process(&mut rng).await;
                sim.processes.lock().push(process);
            }
            sim.run(plan, crashes, &mut rng).await
        };
        match kind {
            StoreKind::Memory => run.await,
            StoreKind::Disk => tokio::select! {
                biased;
                done = run => done,
                stopped = clock.pass_time() => stopped,
            },
        }
    })
}

impl Conversations {
    async fn run(
        self: &Arc<Self>,
        plan: processes::Plan,
        crashes: tokio::sync::mpsc::UnboundedReceiver<Arc<Faults>>,
        rng: &mut SmallRng,
    ) -> Result<SimulationStats, String> {
        self.register_workflows().await?;
        let mut users = people::start_users(self, rng);
        let admins = people::start_admins(self, rng);
        self.disturb(plan, crashes, rng).await;
        self.end_faults();
        tokio::time::sleep(RECOVERY).await;
        let all_said = async {
            while let Some(said) = users.join_next().await {
                said.map_err(|error| format!("a user failed: {error}"))?;
            }
            Ok::<_, String>(())
        };
        let patience = Duration::from_secs(3_600);
        let said = tokio::time::timeout(patience, all_said).await;
        said.map_err(|_| "an hour later, messages of users are not accepted".to_owned())??;
        let runtime = self.any_runtime(rng);
        if self.kind == StoreKind::Memory {
            check::check_open_state(self, &runtime).await?;
        }
        schedulers::cancel_all(&runtime).await?;
        self.wait_for_the_end(&runtime).await?;
        drop(admins);
        check::check_all(self, &runtime).await
    }

    /// Sessions end by idleness; admins decide what is open.
    async fn wait_for_the_end(&self, runtime: &Runtime) -> Result<(), String> {
        let mut open = String::new();
        for _ in 0..720 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            open = check::whats_open(runtime).await?;
            if open.is_empty() {
                return Ok(());
            }
        }
        Err(format!("two hours later: {open}"))
    }

    fn any_runtime(&self, rng: &mut SmallRng) -> Runtime {
        let processes = self.processes.lock();
        processes[rng.random_range(0..processes.len())]
            .runtime
            .clone()
    }

    /// The true time: that of a process whose clock is not ahead.
    fn now(&self) -> Timestamp {
        let elapsed = self.begin.elapsed().as_millis();
        EPOCH.plus_ms(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    fn is_recovering(&self) -> bool {
        self.is_recovering.load(Ordering::Relaxed)
    }

    /// Advances time in steps, one for each write of the store. Otherwise tokio would advance it whenever all
    /// tasks wait for the disk.
    async fn pass_time(&self) -> Result<SimulationStats, String> {
        let (_release, held) = std::sync::mpsc::channel::<()>();
        // Time does not advance by itself while a blocking task runs. This one ends with `_release`.
        drop(tokio::task::spawn_blocking(move || held.recv()));
        let store = (self.open)();
        loop {
            store.ping().await.map_err(check::store_failed)?;
            let step = if self.is_recovering() {
                RECOVERY_STEP
            } else {
                STEP
            };
            tokio::time::advance(step).await;
        }
    }
}
