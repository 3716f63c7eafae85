//! The machines this process drives, by the prefix of their streams. [`MachineDriver`] holds the cached
//! machines of one kind. Timers and outbox entries name a stream only; [`Machines`] finds who drives it.
//!
//! Work of a stream that no machine drives is parked with that reason: another release, or another
//! configuration, may drive it.

use crate::driven_machine::{CommandMeta, DrivenMachine};
use crate::ended_machines::EndedMachines;
use crate::leases::PastAttempts;
use crate::runtime::Runtime;
use crate::stream_cache::StreamCache;
use crate::submit::SubmitError;
use crate::submit_stream::Submission;
use crate::worker_slots::WorkerSlot;
use async_trait::async_trait;
use std::sync::Arc;
use tandem_record::{Effect, StreamId, TenantId};
use tandem_store::{Commit, DueTimer, Error, Fault, Lease, OutboxEntry, TimerChange};

/// The streams of one kind of machine in this process.
pub struct MachineDriver<M: DrivenMachine> {
    pub(crate) cache: StreamCache<M>,
    pub(crate) ended: EndedMachines<M>,
    pub settings: M::Settings,
}

impl<M: DrivenMachine> MachineDriver<M> {
    /// At most so many machines, and about so many bytes, are cached.
    pub fn new(settings: M::Settings, cached_streams: usize, cached_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            cache: StreamCache::new(cached_streams, cached_bytes),
            ended: EndedMachines::default(),
            settings,
        })
    }
}

/// What the loops of the runtime ask of whoever drives a stream.
#[async_trait]
pub(crate) trait StreamDriver: Send + Sync {
    fn prefix(&self) -> &'static str;

    /// Fires a due timer.
    async fn fire_timer(self: Arc<Self>, runtime: &Runtime, timer: &DueTimer) -> Result<(), Fault>;

    /// Starts the work on a leased entry.
    async fn start_entry(
        self: Arc<Self>,
        runtime: &Runtime,
        entry: OutboxEntry,
        slot: WorkerSlot,
        lease: Lease,
    );

    /// Whose stream it is; `None` if it does not exist.
    async fn tenant_of(
        self: Arc<Self>,
        runtime: &Runtime,
        stream: &StreamId,
    ) -> Result<Option<TenantId>, Fault>;
}

/// The machines of a runtime. The longest prefix of a stream decides, so runs of a special kind can
/// have ids of their own.
#[derive(Clone, Default)]
pub struct Machines {
    drivers: Vec<Arc<dyn StreamDriver>>,
}

impl Machines {
    /// # Panics
    ///
    /// If another machine has the same prefix: two machines cannot drive one stream.
    pub fn register<M: DrivenMachine>(&mut self, driver: Arc<MachineDriver<M>>) {
        let taken = self.drivers.iter().any(|d| d.prefix() == M::STREAM_PREFIX);
        assert!(!taken, "streams {} are driven twice", M::STREAM_PREFIX);
        self.drivers.push(driver);
        // The longest first.
        self.drivers
            .sort_by_key(|driver| std::cmp::Reverse(driver.prefix().len()));
    }

    pub(crate) fn driver_of(&self, stream: &StreamId) -> Option<&Arc<dyn StreamDriver>> {
        let mut drivers = self.drivers.iter();
        drivers.find(|driver| stream.as_str().starts_with(driver.prefix()))
    }
}

/// Why work of a stream cannot be done here.
pub(crate) fn not_driven(stream: &StreamId) -> Fault {
    let message = format!(
        "no machine of this host drives {stream}; start a host that does, then retry the work"
    );
    Fault::permanent("no_machine", message)
}

#[async_trait]
impl<M: DrivenMachine> StreamDriver for MachineDriver<M> {
    fn prefix(&self) -> &'static str {
        M::STREAM_PREFIX
    }

    async fn fire_timer(self: Arc<Self>, runtime: &Runtime, timer: &DueTimer) -> Result<(), Fault> {
        let Some(key) = M::timer_key(&timer.name) else {
            let message = format!("timer {} of {} is unreadable", timer.name, timer.stream);
            return Err(Fault::permanent("corrupt", message));
        };
        let meta = CommandMeta {
            timer: Some(key.clone()),
            ..CommandMeta::default()
        };
        let command = M::timer_command(key);
        let submission = Submission::internal(&timer.stream, meta);
        let make_command = |_: &M| Ok(Some(command.clone()));
        match runtime
            .submit_to_stream(&self, submission, &make_command)
            .await
        {
            Ok(_) => Ok(()),
            Err(SubmitError::Fault(fault)) => Err(fault),
            Err(error) => {
                // The stream does not exist or its machine refuses the timer: remove it.
                let stream = &timer.stream;
                tracing::warn!(%stream, %error, "a timer has no machine that accepts it");
                let commit = Commit {
                    timers: vec![TimerChange::Clear {
                        stream: stream.clone(),
                        name: timer.name.clone(),
                    }],
                    ..Commit::default()
                };
                match runtime.store().commit(commit).await {
                    Ok(_) | Err(Error::Conflict(_)) => Ok(()),
                    Err(Error::Fault(fault)) => Err(fault),
                }
            }
        }
    }

    async fn start_entry(
        self: Arc<Self>,
        runtime: &Runtime,
        entry: OutboxEntry,
        slot: WorkerSlot,
        lease: Lease,
    ) {
        match serde_json::from_str::<Effect<M::EffectKind>>(&entry.body) {
            Ok(effect) => {
                let past = PastAttempts {
                    leases: entry.attempts.saturating_sub(1),
                    failures: entry.failures,
                };
                runtime.spawn_effect(&self, entry.stream, effect, slot, lease, past);
            }
            Err(error) => {
                let fault = Fault::permanent("corrupt", format!("it cannot be read: {error}"));
                runtime
                    .park_effect(&entry.effect, &lease.id, "unreadable", &fault)
                    .await;
            }
        }
    }

    async fn tenant_of(
        self: Arc<Self>,
        runtime: &Runtime,
        stream: &StreamId,
    ) -> Result<Option<TenantId>, Fault> {
        M::tenant_of(runtime, &self, stream).await
    }
}
