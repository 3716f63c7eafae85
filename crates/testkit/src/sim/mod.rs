//! The simulator. A seed determines everything: workflows, clients, faults, crashes, time. One
//! simulation is several incarnations of a process on one store; each ends in a crash (the tokio
//! runtime is dropped with everything in it) or a shutdown. The last incarnation has no faults and
//! runs everything to its end; then
//! [`check`] compares the store with what clients were told.

mod callbacks;
mod check;
mod client;
mod client_observations;
mod conversations;
mod decisions;
mod forks;
mod many;
mod mocks;
mod notes;
mod people;
mod processes;
mod purge;
mod supervised;
mod verifier;
mod webhooks;
mod workflows;

pub use conversations::{run_conversations, run_crash_points};
pub use many::{
    SeedFailure, Summary, run_many, run_many_conversations, run_many_processes, run_seeds,
};
pub use processes::{StoreKind, run_processes};

use processes::ProcessFaults;

use crate::clock::SimClock;
use crate::failing::{CommittedEffects, FailingStore, Faults};
use crate::ids::SimIds;
use crate::performer::{CallFaults, ScriptedPerformer};
use crate::webhook_sender::{ScriptedWebhookSender, TargetBehavior};
use client_observations::ClientObservations;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tandem_record::{Command, RunStatus, Timestamp};
use tandem_runtime::{
    Clock, Fault, Limits, Page, Permissions, RegisterError, RunFilter, RunRow, Runtime,
    RuntimeConfig,
};
use tandem_store::Store;
use tandem_store::memory::MemoryStore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Start time of every simulated history.
const EPOCH: Timestamp = Timestamp(1_800_000_000_000);

/// Opens the simulated store as another process would.
pub type OpenStore = Arc<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// A new store in memory.
pub fn memory_store() -> OpenStore {
    let store = MemoryStore::new();
    Arc::new(move || Arc::new(store.reopen()))
}

pub(crate) struct Simulation {
    open: OpenStore,
    faults: Arc<Faults>,
    committed: Arc<CommittedEffects>,
    performer: Arc<ScriptedPerformer>,
    webhook_sender: Arc<ScriptedWebhookSender>,
    ids: Arc<SimIds>,
    observations: Mutex<ClientObservations>,
    decisions: Mutex<decisions::History>,
    /// Time at the end of the last incarnation.
    clock: Mutex<Timestamp>,
    documents: Vec<Value>,
    /// How many of them are registered.
    registered: AtomicUsize,
    limits: Limits,
    max_effects: usize,
    /// Several processes use the store at the same time.
    shares_store: bool,
    /// Largest difference of the clocks of two processes.
    clock_difference_ms: u64,
    process_faults: ProcessFaults,
    /// All faults have ended.
    is_recovering: AtomicBool,
    /// When the processes started.
    started: OnceLock<Instant>,
}

/// Statistics of one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationStats {
    pub incarnations: u64,
    pub runs: u64,
    pub events: u64,
    pub calls: u64,
    /// Processes that shared a store, and what happened to them.
    pub processes: u64,
    pub crashes: u64,
    pub pauses: u64,
    pub partitions: u64,
    /// Simulations in which clocks differed.
    pub clock_differences: u64,
    pub leases_lost: u64,
    pub conflicts: u64,
    /// Calls that were made again because their lease was lost.
    pub repeated_calls: u64,
    pub purged_runs: u64,
    pub forks: u64,
    /// Of conversations.
    pub sessions: u64,
    pub turns: u64,
    pub flow_runs: u64,
    pub texts: u64,
    pub rebuilt_flows: u64,
    /// Simulations in which flows were run again after every turn.
    pub strict: u64,
    pub bridges: u64,
    /// Messages that bridges relayed.
    pub forwarded: u64,
    /// Turns that schedules began.
    pub scheduled_turns: u64,
    /// Occurrences of schedules that addressed users of a segment.
    pub campaigns: u64,
}

/// Runs one simulation. `Err` names the violated invariant.
pub fn run(seed: u64) -> Result<SimulationStats, String> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let sim = Arc::new(Simulation::new(seed, &mut rng, memory_store()));
    let incarnations = rng.random_range(1..5);
    for _ in 0..incarnations {
        sim.run_incarnation(&mut rng)?;
    }
    sim.faults.disable();
    let mut stats = sim.run_final_incarnation()?;
    stats.incarnations = incarnations + 1;
    Ok(stats)
}

impl Simulation {
    fn new(seed: u64, rng: &mut SmallRng, open: OpenStore) -> Self {
        let committed = Arc::new(CommittedEffects::default());
        let per_mille = [0, 5, 15, 40][rng.random_range(0..4)];
        let call_faults = CallFaults {
            retryable_percent: rng.random_range(0..40),
            permanent_percent: rng.random_range(0..15),
            max_latency_ms: rng.random_range(0..3_000),
        };
        let webhook_sender = Arc::new(ScriptedWebhookSender::default());
        let down_ms = [0, 0, 2_500, 20_000][rng.random_range(0..4)];
        let down = TargetBehavior::DownUntil(EPOCH.plus_ms(down_ms));
        webhook_sender.set(&webhooks::id(), down);
        webhook_sender.set_callback(callbacks::URL, down);
        Self {
            open,
            faults: Arc::new(Faults::seeded(
                seed ^ 0xfa17,
                per_mille,
                rng.random_bool(0.7),
            )),
            performer: Arc::new(ScriptedPerformer::new(
                seed ^ 0x3071d,
                call_faults,
                Arc::clone(&committed),
            )),
            committed,
            webhook_sender,
            ids: Arc::new(SimIds::new(seed)),
            observations: Mutex::default(),
            decisions: Mutex::default(),
            clock: Mutex::new(EPOCH),
            documents: workflows::random(rng),
            registered: AtomicUsize::new(0),
            limits: Limits {
                max_starts_per_decision: [256, 3][rng.random_range(0..2)],
                max_in_flight: [8, 2][rng.random_range(0..2)],
                compact_above: Some([2, 5][rng.random_range(0..2)]),
                ..Limits::default()
            },
            max_effects: [256, 2][rng.random_range(0..2)],
            shares_store: false,
            clock_difference_ms: 0,
            process_faults: ProcessFaults::default(),
            is_recovering: AtomicBool::new(false),
            started: OnceLock::new(),
        }
    }

    /// The store without faults.
    fn store(&self) -> Arc<dyn Store> {
        (self.open)()
    }

    /// One incarnation of the process: clients act, faults happen, and it ends in a crash or a
    /// shutdown.
    fn run_incarnation(self: &Arc<Self>, rng: &mut SmallRng) -> Result<(), String> {
        let tokio = paused_tokio()?;
        let length = Duration::from_millis(rng.random_range(100..8_000));
        let graceful = rng.random_bool(0.2);
        let seeds: Vec<u64> = (0..rng.random_range(1..4)).map(|_| rng.random()).collect();
        let panics = tokio.block_on(async {
            let clock = Arc::new(SimClock::starting_at(*self.clock.lock()));
            let incarnation = async {
                let runtime = self.start(&clock).await;
                self.register(&runtime).await;
                let mut clients = JoinSet::new();
                for seed in seeds {
                    let rng = SmallRng::seed_from_u64(seed);
                    clients.spawn(client::act(Arc::clone(self), runtime.clone(), rng));
                }
                tokio::time::sleep(length).await;
                if graceful {
                    runtime.shutdown(Duration::from_millis(500)).await;
                }
                let mut panics = runtime.metrics().panics.get();
                while let Some(ended) = clients.try_join_next() {
                    panics += u64::from(ended.is_err());
                }
                panics
            };
            let panics = tokio::select! {
                biased;
                () = self.faults.crashed() => 0,
                panics = incarnation => panics,
            };
            *self.clock.lock() = clock.now();
            panics
        });
        if panics > 0 {
            return Err(format!("{panics} tasks panicked"));
        }
        Ok(())
    }

    /// Without faults: all runs are completed and checked.
    fn run_final_incarnation(self: &Arc<Self>) -> Result<SimulationStats, String> {
        let tokio = paused_tokio()?;
        tokio.block_on(async {
            let clock = Arc::new(SimClock::starting_at(*self.clock.lock()));
            let runtime = self.start(&clock).await;
            callbacks::check_open_questions_announced(self, &runtime).await?;
            self.finish_all_runs(&runtime).await?;
            check::check_all(self, &runtime).await
        })
    }

    async fn start(&self, clock: &Arc<SimClock>) -> Runtime {
        self.performer.begin_incarnation();
        self.start_runtime(clock, Arc::clone(&self.faults)).await
    }

    async fn start_runtime(&self, clock: &Arc<SimClock>, faults: Arc<Faults>) -> Runtime {
        let store = FailingStore::new(self.store(), faults, Arc::clone(&self.committed));
        let store: Arc<dyn Store> = Arc::new(store);
        loop {
            let mut config =
                RuntimeConfig::new(Arc::clone(&store), Arc::clone(&self.performer) as Arc<_>);
            config.webhook_sender = Some(Arc::clone(&self.webhook_sender) as Arc<_>);
            config.clock = Arc::clone(clock) as Arc<_>;
            config.ids = Arc::clone(&self.ids) as Arc<_>;
            config.limits = self.limits;
            config.conformance = true;
            config.providers = crate::test_host::providers();
            config.tools = crate::test_host::tools();
            config.packs = crate::test_host::packs();
            config.max_effects = self.max_effects;
            config.cached_runs = 16;
            config.is_single_process = !self.shares_store;
            config.retention.workflows = purge::retention();
            // A start that fails on a read is retried, as an operator would do.
            if let Ok(runtime) = Runtime::start(config).await {
                return runtime;
            }
        }
    }

    /// Once, in whichever incarnation it succeeds; until then some workflows are unknown to
    /// clients.
    async fn register(&self, runtime: &Runtime) {
        let tenant = client::tenant();
        if self.registered.load(Ordering::Relaxed) == 0 {
            // Before the first run, so that it gets the events of all runs.
            webhooks::register(runtime).await;
        }
        loop {
            let at = self.registered.load(Ordering::Relaxed);
            let Some(document) = self.documents.get(at) else {
                return;
            };
            let permissions = Permissions::default();
            let owner = tenant.clone().into();
            let registered = runtime.register(Some(&owner), document, permissions);
            match registered.await {
                Ok(_) => self.registered.store(at + 1, Ordering::Relaxed),
                Err(RegisterError::Invalid(problems)) => panic!("{problems:?} of {document}"),
                // An injected fault of the store.
                Err(RegisterError::Fault(_)) => {}
            }
        }
    }

    async fn finish_all_runs(&self, runtime: &Runtime) -> Result<(), String> {
        let broken = |fault: Fault| format!("the store failed without an injected fault: {fault}");
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let runs = all_runs(runtime).await.map_err(broken)?;
            let mut open = runs
                .iter()
                .filter(|run| !run.status.is_terminal())
                .peekable();
            let depth = self.store().depth().await.map_err(broken)?;
            if open.peek().is_none() && depth == 0 {
                return Ok(());
            }
            people::answer_everything(self, runtime).await?;
            for run in open.filter(|run| run.status == RunStatus::Paused) {
                let resume = Command::Resume { reason: None };
                // It may have been resumed or ended since it was listed.
                drop(
                    runtime
                        .submit(&client::tenant().into(), &run.run_id, resume, None)
                        .await,
                );
            }
        }
        let runs = all_runs(runtime).await.map_err(broken)?;
        let stuck: Vec<String> = runs
            .iter()
            .filter(|run| !run.status.is_terminal())
            .map(|run| format!("{} of {} is {:?}", run.run_id, run.workflow_id, run.status))
            .collect();
        Err(format!("twenty minutes later: {stuck:?}"))
    }
}

fn paused_tokio() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|e| format!("no tokio runtime: {e}"))
}

async fn all_runs(runtime: &Runtime) -> Result<Vec<RunRow>, Fault> {
    let page = Page {
        before: None,
        limit: usize::MAX,
    };
    let listing = runtime
        .list_runs(&client::tenant(), &RunFilter::default(), &page)
        .await?;
    Ok(listing.runs.into_iter().map(|run| run.row).collect())
}
