//! The runtime handle, its start and its shutdown.

use crate::bell::Bell;
use crate::cache_epochs::CacheEpoch;
use crate::clock::Clock;
use crate::config::RuntimeConfig;
use crate::conversation::{AgentLogs, AnswerPieces, schedule_driver};
use crate::crash::CrashPoints;
use crate::definitions::CompiledDefinitions;
use crate::effects::Effects;
use crate::machine_driver::{MachineDriver, Machines};
use crate::metrics::Metrics;
use crate::offload::Offload;
use crate::readiness::Readiness;
use crate::run_trees::RunTrees;
use crate::task_leases::HeldTasks;
use crate::timer_bell::TimerBell;
use crate::webhooks::Webhooks;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::model::Providers;
use tandem_engine::pack::PackTypes;
use tandem_engine::run::{AgentPolicy, Limits, Run};
use tandem_engine::schedule::Schedule;
use tandem_engine::tool::ToolServers;
use tandem_record::{Actor, RunId};
use tandem_store::{Fault, Store};
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinHandle;

/// Ended runs buffered for a slow listener before it misses some.
const ENDED_RUNS_BUFFERED: usize = 1024;

/// A handle; clones share one runtime. It holds the actor it is used for, for the audit log.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
    pub(crate) actor: Arc<Actor>,
}

pub(crate) struct Inner {
    pub(crate) config: RuntimeConfig,
    pub(crate) runs: Arc<MachineDriver<Run>>,
    pub(crate) schedules: Arc<MachineDriver<Schedule>>,
    /// Every machine of this host, the workflow run included.
    pub(crate) machines: Machines,
    pub(crate) definitions: CompiledDefinitions,
    /// Where decisions with much schema work are made.
    pub(crate) decision_work: Offload,
    /// Forks of large logs are made one after the other.
    pub(crate) large_forks: Offload,
    pub(crate) bell: Bell,
    pub(crate) pieces: Arc<AnswerPieces>,
    pub(crate) agent_logs: AgentLogs,
    pub(crate) ended: broadcast::Sender<RunId>,
    pub(crate) metrics: Metrics,
    pub(crate) crash: CrashPoints,
    pub(crate) effects: Effects,
    pub(crate) webhooks: Webhooks,
    pub(crate) readiness: Readiness,
    pub(crate) run_trees: RunTrees,
    pub(crate) registry_epoch: CacheEpoch,
    pub(crate) subscription_epoch: CacheEpoch,
    pub(crate) held_tasks: HeldTasks,
    pub(crate) timer_bell: TimerBell,
    /// Notifies that the clock was moved: runs may be past their retention now.
    pub(crate) retention_bell: Notify,
    /// Held while the next answer of a mock program is taken.
    pub(crate) programs: tokio::sync::Mutex<()>,
    pub(crate) stopping: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Runtime {
    /// Starts the loops and takes over the effects of an earlier process.
    pub async fn start(config: RuntimeConfig) -> Result<Self, Fault> {
        let runs = MachineDriver::new((), config.cached_runs, config.cached_bytes);
        let mut machines = config.machines.clone();
        machines.register(Arc::clone(&runs));
        let schedules = match &config.conversations {
            Some(conversations) => {
                conversations.register(&mut machines);
                Arc::clone(&conversations.schedules)
            }
            None => schedule_driver(None),
        };
        machines.register(Arc::clone(&schedules));
        if config.is_single_process {
            let broken = config.store.break_leases(&config.owner).await?;
            if broken > 0 {
                tracing::info!(
                    effects = broken,
                    "taking over effects of an earlier process"
                );
            }
        }
        let runtime = Self {
            inner: Arc::new(Inner {
                runs,
                schedules,
                machines,
                effects: Effects::new(&config),
                webhooks: Webhooks::default(),
                definitions: CompiledDefinitions::new(config.conformance),
                config,
                decision_work: Offload::default(),
                large_forks: Offload::with_slots(1),
                bell: Bell::default(),
                pieces: Arc::default(),
                agent_logs: AgentLogs::default(),
                ended: broadcast::Sender::new(ENDED_RUNS_BUFFERED),
                metrics: Metrics::default(),
                readiness: Readiness::default(),
                run_trees: RunTrees::default(),
                registry_epoch: CacheEpoch::default(),
                subscription_epoch: CacheEpoch::default(),
                held_tasks: HeldTasks::default(),
                crash: CrashPoints::default(),
                timer_bell: TimerBell::default(),
                retention_bell: Notify::new(),
                programs: tokio::sync::Mutex::default(),
                stopping: watch::Sender::new(false),
                tasks: Mutex::default(),
            }),
            actor: Arc::new(Actor::host()),
        };
        runtime.sync_schedules().await?;
        let loops = [
            tokio::spawn(runtime.clone().keep_schedules_configured()),
            tokio::spawn(runtime.clone().fire_timers()),
            tokio::spawn(runtime.clone().dispatch_outbox()),
            tokio::spawn(runtime.clone().purge_old_runs()),
            tokio::spawn(runtime.clone().keep_leases_until_stopped()),
            tokio::spawn(runtime.clone().drop_idle_programs()),
        ];
        runtime.inner.tasks.lock().extend(loops);
        Ok(runtime)
    }

    /// Stops leasing work, waits for running effects, and closes the store. Effects that do not end
    /// in time are performed by the next process.
    pub async fn shutdown(&self, timeout: Duration) {
        self.inner.stopping.send_replace(true);
        let tasks = std::mem::take(&mut *self.inner.tasks.lock());
        for task in tasks {
            let _ = task.await;
        }
        let finished = async {
            tokio::select! {
                biased;
                () = self.inner.effects.wait_until_idle() => {}
                () = self.keep_leases() => {}
            }
        };
        if tokio::time::timeout(timeout, finished).await.is_err() {
            tracing::warn!("effects still under way are left to the next start");
            self.inner.effects.abort_all();
        }
        self.store().close().await;
    }

    /// The same runtime for another actor: actions through this handle are recorded as theirs.
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            actor: Arc::new(actor),
        }
    }

    /// The driver of workflow runs, for transactions that involve one.
    pub fn runs(&self) -> &Arc<MachineDriver<Run>> {
        &self.inner.runs
    }

    pub fn bell(&self) -> &Bell {
        &self.inner.bell
    }

    /// Runs that end in this process. For uses that may miss some, such as telemetry: a listener
    /// that lags loses the oldest, and the runtime does not wait for it.
    pub fn ended(&self) -> broadcast::Receiver<RunId> {
        self.inner.ended.subscribe()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Brings the metrics of open questions up to date; the others are so at any time.
    pub fn note_open_questions(&self) {
        let now = self.clock().now();
        self.inner.metrics.conversations.note_open_questions(now);
    }

    pub fn crash_points(&self) -> &CrashPoints {
        &self.inner.crash
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.config.clock
    }

    pub fn limits(&self) -> &Limits {
        &self.inner.config.limits
    }

    pub fn has_conformance_types(&self) -> bool {
        self.inner.config.conformance
    }

    pub fn agent_policy(&self) -> &AgentPolicy {
        &self.inner.config.agents
    }

    pub fn providers(&self) -> &Providers {
        &self.inner.config.providers
    }

    pub fn tools(&self) -> &ToolServers {
        &self.inner.config.tools
    }

    pub fn packs(&self) -> &PackTypes {
        &self.inner.config.packs
    }

    /// The store, for reads that are not about runs (keys, settings, readiness).
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.config.store
    }

    /// No other process uses the store.
    pub fn is_single_process(&self) -> bool {
        self.inner.config.is_single_process
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.inner.stopping.borrow()
    }

    pub(crate) async fn stopped(&self) {
        let mut stopping = self.inner.stopping.subscribe();
        // The sender is owned by this runtime, so waiting cannot fail.
        let _ = stopping.wait_for(|stop| *stop).await;
    }
}
