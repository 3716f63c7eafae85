//! The processes of a simulation and their faults.

use super::agents::{RELEASES, WORKFLOWS};
use super::outside::ProcessHost;
use super::{Conversations, tenants};
use crate::clock::SimClock;
use crate::failing::{FailingStore, Faults, InjectedFault, StoreConnection};
use crate::performer::{CallFaults, ScriptedPerformer};
use crate::workflow_builder::wf;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tandem_runtime::{Permissions, Runtime, RuntimeConfig};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// How long a process may take to start.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// Which kinds of faults a simulation has.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) commits_fail: bool,
    pub(super) clocks_differ: bool,
    crashes: bool,
    pauses: bool,
    partitions: bool,
    clock_jumps: bool,
    seconds: u64,
}

impl Plan {
    pub(super) fn random(rng: &mut SmallRng) -> Self {
        Self {
            commits_fail: rng.random_bool(0.7),
            clocks_differ: rng.random_bool(0.3),
            crashes: rng.random_bool(0.7),
            pauses: rng.random_bool(0.4),
            partitions: rng.random_bool(0.4),
            clock_jumps: rng.random_bool(0.3),
            seconds: rng.random_range(20..240),
        }
    }

    /// No faults but one crash at one commit.
    pub(super) fn calm() -> Self {
        Self {
            commits_fail: false,
            clocks_differ: false,
            crashes: false,
            pauses: false,
            partitions: false,
            clock_jumps: false,
            seconds: 200,
        }
    }

    /// Whether work may be taken over from a process that goes on with it.
    pub(super) fn outlives_leases(&self) -> bool {
        self.pauses || self.partitions || self.clock_jumps || self.clocks_differ
    }
}

pub(super) struct Process {
    pub(super) runtime: Runtime,
    faults: Arc<Faults>,
}

impl Conversations {
    fn faults(&self, rng: &mut SmallRng) -> Faults {
        let per_mille = self.per_mille[rng.random_range(0..4)];
        let crashes = rng.random_bool(0.7);
        let faults = Faults::seeded(rng.random(), per_mille, crashes);
        if self.is_recovering() {
            faults.disable();
        }
        if let Some(crash) = self.crash_at.filter(|_| self.started.lock().is_empty()) {
            let none = std::iter::repeat_n(InjectedFault::None, crash.commit);
            faults.next(none.chain([crash.fault]));
        }
        faults
    }

    /// Starts a process. When a fault ends it, its faults are reported.
    pub(super) async fn start_process(self: &Arc<Self>, rng: &mut SmallRng) -> Process {
        let (runtime, faults) = loop {
            let faults = Arc::new(self.faults(rng));
            let config = self.config(&faults, rng);
            // A start that fails or ends the process is repeated, as an operator would do.
            let start = tokio::time::timeout(START_PATIENCE, Runtime::start(config));
            match start.await {
                Ok(Ok(runtime)) => break (runtime, faults),
                _ => {
                    faults.set_connection(StoreConnection::Crashed);
                    // The next attempt is another process.
                    self.crashes.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        self.started.lock().push(runtime.clone());
        let (watched, crashed) = (Arc::clone(&faults), self.crashed.clone());
        drop(tokio::spawn(async move {
            watched.crashed().await;
            watched.set_connection(StoreConnection::Crashed);
            // Nobody waits for it any more when the faults have ended.
            let _ = crashed.send(watched);
        }));
        Process { runtime, faults }
    }

    fn config(&self, faults: &Arc<Faults>, rng: &mut SmallRng) -> RuntimeConfig {
        let ahead = rng.random_range(0..=self.clock_difference_ms);
        let committed = &self.outside.committed;
        let store = FailingStore::new((self.open)(), Arc::clone(faults), Arc::clone(committed));
        let calls = CallFaults {
            retryable_percent: 10,
            permanent_percent: 10,
            max_latency_ms: 2_000,
        };
        let performer = ScriptedPerformer::new(rng.random(), calls, Arc::clone(committed));
        let host = ProcessHost {
            outside: Arc::clone(&self.outside),
            faults: Arc::clone(faults),
            release: rng.random_range(0..RELEASES),
        };
        // Both ways of keeping the programs of flows between turns (Z-205).
        let is_cold = rng.random_bool(0.4);
        let conversations = tandem_runtime::conversation::Conversations::with_strictness(
            Arc::new(host),
            is_cold,
            self.is_strict,
        );
        let mut config = RuntimeConfig::new(Arc::new(store), Arc::new(performer));
        config.conversations = Some(conversations);
        config.clock = Arc::new(SimClock::starting_at(self.now().plus_ms(ahead)));
        config.ids = Arc::clone(&self.ids) as Arc<_>;
        config.owner = format!("process-{:016x}", rng.random::<u64>());
        config.is_single_process = !self.shares_store;
        config.max_effects = [256, 2][rng.random_range(0..2)];
        config.cached_runs = 16;
        config
    }

    /// The workflows that flows start, for both tenants.
    pub(super) async fn register_workflows(&self) -> Result<(), String> {
        let documents = [
            wf(WORKFLOWS[0]).delay("n", 500).document(),
            wf(WORKFLOWS[1]).delay("n", 45_000).document(),
            wf(WORKFLOWS[2]).http("n", 3).document(),
            wf(WORKFLOWS[3])
                .node("n", "core.fail", json!({"code": "broken"}))
                .document(),
        ];
        let until = Instant::now() + Duration::from_secs(60);
        for tenant in tenants() {
            for document in &documents {
                let owner = tenant.clone().into();
                loop {
                    let runtime = self.processes.lock()[0].runtime.clone();
                    let permissions = Permissions::default();
                    let done = runtime.register(Some(&owner), document, permissions);
                    // A commit may end the process that registers.
                    match tokio::time::timeout(Duration::from_secs(1), done).await {
                        Ok(Ok(_)) => break,
                        _ if Instant::now() > until => break,
                        _ => tokio::time::sleep(Duration::from_millis(10)).await,
                    }
                }
            }
        }
        Ok(())
    }

    /// Faults of processes, one after the other and overlapping.
    pub(super) async fn disturb(
        self: &Arc<Self>,
        plan: Plan,
        mut crashes: UnboundedReceiver<Arc<Faults>>,
        rng: &mut SmallRng,
    ) {
        let end = Instant::now() + Duration::from_secs(plan.seconds);
        loop {
            let pause = Duration::from_millis(rng.random_range(200..8_000));
            tokio::select! {
                biased;
                Some(crashed) = crashes.recv() => {
                    self.replace(&crashed, rng).await;
                    continue;
                }
                () = tokio::time::sleep_until(end) => break,
                () = tokio::time::sleep(pause) => {}
            }
            let slot = rng.random_range(0..self.processes.lock().len());
            let (runtime, faults) = {
                let processes = self.processes.lock();
                let process = &processes[slot];
                (process.runtime.clone(), Arc::clone(&process.faults))
            };
            match rng.random_range(0..8) {
                0 if plan.crashes => {
                    faults.set_connection(StoreConnection::Crashed);
                    self.replace(&faults, rng).await;
                }
                1 if plan.pauses => {
                    self.pauses.fetch_add(1, Ordering::Relaxed);
                    interrupt(
                        &faults,
                        StoreConnection::Stalled,
                        rng.random_range(100..60_000),
                    );
                }
                2 if plan.partitions => {
                    self.partitions.fetch_add(1, Ordering::Relaxed);
                    interrupt(
                        &faults,
                        StoreConnection::Down,
                        rng.random_range(100..40_000),
                    );
                }
                3 if plan.clock_jumps => {
                    let jump = rng.random_range(0..120_000);
                    runtime.clock().advance(jump);
                }
                _ => {}
            }
        }
        // Processes that ended just now.
        while let Ok(crashed) = crashes.try_recv() {
            self.replace(&crashed, rng).await;
        }
        self.end_faults();
        // A crash may have been on its way.
        tokio::time::sleep(Duration::from_millis(1)).await;
        while let Ok(crashed) = crashes.try_recv() {
            self.replace(&crashed, rng).await;
        }
    }

    /// Starts another process in place of the one with these faults. Its crash may be reported after it was
    /// replaced for another reason; the report is not about the process that took its place.
    async fn replace(self: &Arc<Self>, crashed: &Arc<Faults>, rng: &mut SmallRng) {
        let slot = self
            .processes
            .lock()
            .iter()
            .position(|process| Arc::ptr_eq(&process.faults, crashed));
        let Some(slot) = slot else {
            return;
        };
        self.crashes.fetch_add(1, Ordering::Relaxed);
        let process = self.start_process(rng).await;
        self.processes.lock()[slot] = process;
    }

    pub(super) fn end_faults(&self) {
        self.is_recovering.store(true, Ordering::Relaxed);
        for process in &*self.processes.lock() {
            process.faults.set_connection(StoreConnection::Up);
            process.faults.disable();
        }
    }
}

/// Interrupts the connection to the store for a while.
fn interrupt(faults: &Arc<Faults>, connection: StoreConnection, ms: u64) {
    let faults = Arc::clone(faults);
    faults.set_connection(connection);
    drop(tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        faults.set_connection(StoreConnection::Up);
    }));
}
