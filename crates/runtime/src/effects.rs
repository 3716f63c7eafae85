//! Performs the effects of machines. An effect arrives here only after the commit that recorded it. Its
//! result goes back as a command, and its outbox entry is removed in the commit that records the
//! result.

use crate::config::RuntimeConfig;
use crate::driven_machine::DrivenMachine;
use crate::leases::{LeasedEffect, Running};
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::submit_stream::Submission;
use crate::worker_slots::{Quota, WorkerSlot, WorkerSlots};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_engine::machine::Decision;
use tandem_record::{Effect, EffectId, OrderKey, StreamId, Timestamp};
use tandem_store::{Commit, Error, Fault, Lane, Lease, OutboxChange, OutboxEntry, WorkClass};
use tokio::sync::Notify;

/// Longest pause between two attempts to record a result while the store fails.
const MAX_BACKOFF_MS: u64 = 30_000;
/// Attempts to record a result that fails for its own reason, before the effect is rescheduled.
const QUICK_TRIES: u32 = 5;
/// Minimum of concurrent deliveries.
const MIN_DELIVERIES: usize = 8;

pub(crate) struct Effects {
    internal: Arc<WorkerSlots>,
    calls: Arc<WorkerSlots>,
    deliveries: Arc<WorkerSlots>,
    /// Effects this process performs now, so that they can be aborted and are not started twice.
    pub(crate) running: Mutex<HashMap<EffectId, Running>>,
    /// Distinguishes a task from a later one for the same effect, and a lease from others.
    next_number: AtomicU64,
    /// Notifies that unleased entries are waiting.
    pub(crate) bell: Notify,
    done: Notify,
}

/// What a commit puts into the outbox, and what is attempted right after it.
pub(crate) struct Prepared<K> {
    pub(crate) changes: Vec<OutboxChange>,
    pub(crate) leased: Vec<(Effect<K>, WorkerSlot, Lease)>,
    pub(crate) unleased: bool,
}

impl Effects {
    pub(crate) fn new(config: &RuntimeConfig) -> Self {
        let calls = config.max_effects.max(1);
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let open = |total: usize| Quota {
            total,
            per_tenant: total.div_ceil(2),
            per_target: usize::MAX,
            packs: usize::MAX,
        };
        let called = open(calls);
        Self {
            // Short work: one tenant may do as much of it at once as all tenants may make calls.
            internal: WorkerSlots::new(open(calls * 2)),
            calls: WorkerSlots::new(Quota {
                per_tenant: config.max_calls_per_tenant.unwrap_or(called.per_tenant),
                per_target: config.max_calls_per_target.unwrap_or(called.per_target),
                packs: processors * 2,
                ..called
            }),
            deliveries: WorkerSlots::new(open((calls / 4).max(MIN_DELIVERIES))),
            running: Mutex::default(),
            next_number: AtomicU64::new(0),
            bell: Notify::new(),
            done: Notify::new(),
        }
    }

    /// Turns a decision's effects into outbox changes. If a worker is free, the effect is written
    /// as leased to this process and performed without another commit. Only the store knows when an
    /// effect with an order key may be performed, so such an effect waits to be leased.
    pub(crate) fn prepare<M: DrivenMachine>(
        &self,
        stream: &StreamId,
        decision: &Decision<M>,
        runtime: &Runtime,
    ) -> Prepared<M::EffectKind> {
        let (now, owner) = (runtime.clock().now(), &runtime.inner.config.owner);
        let mut prepared = Prepared {
            changes: Vec::new(),
            leased: Vec::new(),
            unleased: false,
        };
        for effect in &decision.dropped {
            prepared.changes.push(OutboxChange::Remove(effect.clone()));
        }
        for effect in &decision.effects {
            let place = EntryPlace {
                stream,
                lane: decision.after.lane(&effect.kind),
                order_key: decision.after.order_key(&effect.kind),
            };
            let slot = match place.order_key {
                Some(_) => None,
                None => self.slots(place.lane.class).take(&place.lane),
            };
            let lease = slot.as_ref().map(|_| self.new_lease(owner, now));
            let entry = entry::<M>(place, effect, now, lease.clone());
            prepared.changes.push(OutboxChange::Put(entry));
            match slot.zip(lease) {
                Some((slot, lease)) => prepared.leased.push((effect.clone(), slot, lease)),
                None => prepared.unleased = true,
            }
        }
        prepared
    }

    /// Aborts an effect that is no longer needed; its outbox entry is already removed. The same
    /// effect may be started again at once, even if the old task has not ended yet.
    pub(crate) fn abort(&self, effect: &EffectId) {
        if let Some(running) = self.remove_running(effect) {
            running.abort();
        }
    }

    /// The effect's result is recorded: another attempt need not wait until its task has ended.
    pub(crate) fn mark_finished(&self, effect: &EffectId) {
        drop(self.remove_running(effect));
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn remove_running(&self, effect: &EffectId) -> Option<Running> {
        self.running.lock().remove(effect)
    }

    pub(crate) fn abort_all(&self) {
        let running = self.running.lock();
        for handle in running.values().filter_map(|r| r.handle.as_ref()) {
            handle.abort();
        }
    }

    pub(crate) fn slots(&self, class: WorkClass) -> &Arc<WorkerSlots> {
        match class {
            WorkClass::Internal => &self.internal,
            WorkClass::Call => &self.calls,
            WorkClass::Delivery => &self.deliveries,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.under_way() == 0
    }

    pub(crate) fn under_way(&self) -> usize {
        WorkClass::ALL
            .map(|class| self.slots(class).in_use())
            .iter()
            .sum()
    }

    pub(crate) async fn wait_until_idle(&self) {
        loop {
            let done = self.done.notified();
            if self.is_idle() {
                return;
            }
            done.await;
        }
    }
}

/// Where an effect waits.
struct EntryPlace<'a> {
    stream: &'a StreamId,
    lane: Lane,
    order_key: Option<OrderKey>,
}

/// The outbox entry of an effect.
fn entry<M: DrivenMachine>(
    place: EntryPlace<'_>,
    effect: &Effect<M::EffectKind>,
    available_at: Timestamp,
    lease: Option<Lease>,
) -> OutboxEntry {
    OutboxEntry {
        effect: effect.id.clone(),
        stream: place.stream.clone(),
        kind: M::effect_name(&effect.kind).to_owned(),
        body: serde_json::to_string(effect).expect("effects are plain data"),
        lane: place.lane,
        order_key: place.order_key,
        available_at,
        attempts: 0,
        failures: 0,
        lease,
    }
}

impl Runtime {
    pub(crate) fn perform_prepared<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        stream: &StreamId,
        leased: Vec<(Effect<M::EffectKind>, WorkerSlot, Lease)>,
    ) {
        for (effect, slot, lease) in leased {
            self.spawn_effect(driver, stream.clone(), effect, slot, lease, 0);
        }
    }

    /// `failures` counts earlier failures.
    pub(crate) fn spawn_effect<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        stream: StreamId,
        effect: Effect<M::EffectKind>,
        slot: WorkerSlot,
        lease: Lease,
        failures: u32,
    ) {
        let (runtime, driver) = (self.clone(), Arc::clone(driver));
        let work = LeasedEffect {
            stream,
            lane: slot.lane.clone(),
            lease: lease.id.clone(),
            failures,
            effect,
        };
        let assignment = WorkAssignment {
            effect: work.effect.id.clone(),
            kind: M::effect_name(&work.effect.kind),
            slot,
            lease,
            failures,
        };
        self.spawn_worker(assignment, async move {
            runtime.run_effect(&driver, work).await;
        });
    }

    /// Works on an outbox entry. Earlier work on the same entry lost its lease and is aborted.
    pub(crate) fn spawn_worker(
        &self,
        assignment: WorkAssignment,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let effects = &self.inner.effects;
        let id = assignment.effect.clone();
        let task = effects.next_number();
        let started = Running {
            task,
            handle: None,
            lease_number: assignment.lease.id.number,
            leased_until: assignment.lease.until,
            is_recording: false,
        };
        let earlier = effects.running.lock().insert(id.clone(), started);
        if let Some(earlier) = earlier {
            earlier.abort();
        }
        let runtime = self.clone();
        let spawned = tokio::spawn(async move {
            let _guard = WorkerGuard {
                runtime,
                task,
                assignment: Some(assignment),
            };
            work.await;
        });
        match effects.running.lock().get_mut(&id) {
            Some(running) if running.task == task => running.handle = Some(spawned.abort_handle()),
            // Aborted or finished before its handle was stored.
            _ => spawned.abort(),
        }
    }

    /// Performs one effect and records its result. While the store as a whole fails, it retries
    /// until the result is recorded. An effect that fails for its own reason is rescheduled.
    async fn run_effect<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        work: LeasedEffect<M::EffectKind>,
    ) {
        self.inner.crash.reach("effect.before");
        let started = tokio::time::Instant::now();
        let effect = &work.effect;
        let name = M::effect_name(&effect.kind);
        let mut cached_outcome = None;
        let mut delivered = self.attempt(driver, &work, &mut cached_outcome).await;
        self.inner.crash.reach("effect.after");
        let (mut backoff, mut tries) = (50, 0);
        while let Err(fault) = delivered {
            tracing::warn!(effect = %effect.id, kind = name, error = %fault, "cannot record the result of an effect");
            tries += 1;
            let hopeless = !fault.retryable || (!fault.is_store_wide() && tries >= QUICK_TRIES);
            if hopeless || self.is_stopping() {
                return self
                    .record_effect_failure(&effect.id, &work.lease, name, work.failures, &fault)
                    .await;
            }
            tokio::time::sleep(Duration::from_millis(backoff)).await;
            backoff = (backoff * 2).min(MAX_BACKOFF_MS);
            delivered = self.attempt(driver, &work, &mut cached_outcome).await;
        }
        let seconds = started.elapsed().as_secs_f64();
        self.inner.metrics.effect_done(name, seconds);
    }

    /// `cached_outcome` holds the outcome: the effect is performed once, however often recording its
    /// outcome fails.
    async fn attempt<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        work: &LeasedEffect<M::EffectKind>,
        cached_outcome: &mut Option<M::Outcome>,
    ) -> Result<(), Fault> {
        let outcome = match cached_outcome {
            Some(outcome) => outcome,
            None => {
                if M::CHECKS_DISPATCH && self.is_refused(driver, work).await? {
                    return Ok(());
                }
                cached_outcome.insert(M::perform(self, driver, work).await?)
            }
        };
        M::record_outcome(self, driver, work, outcome).await
    }

    /// Asks the machine, on its newest state, whether the effect is still to be performed. If it is
    /// not, the commit that records this has removed the entry.
    async fn is_refused<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        work: &LeasedEffect<M::EffectKind>,
    ) -> Result<bool, Fault> {
        let submission = Submission::internal(&work.stream, work.completion());
        let make_command = |machine: &M| Ok(machine.refuse_dispatch(&work.effect));
        match self
            .submit_to_stream(driver, submission, &make_command)
            .await
        {
            Ok(recorded) => Ok(recorded.is_some()),
            Err(error) => self.unrecorded(work, error).await.map(|()| true),
        }
    }

    /// Submits the result of an effect to a stream, which may be another than that of the effect. The
    /// same commit removes the effect from the outbox. A result that is no longer accepted only removes
    /// it. If the lease is lost, the work is another's and the result is dropped.
    pub async fn submit_effect_result<K: Sync, M: DrivenMachine>(
        &self,
        work: &LeasedEffect<K>,
        driver: &Arc<MachineDriver<M>>,
        to: &StreamId,
        command: M::Command,
    ) -> Result<(), Fault> {
        self.inner
            .effects
            .start_recording(&work.effect.id, &work.lease);
        let submission = Submission::internal(to, work.completion());
        let make_command = |_: &M| Ok(Some(command.clone()));
        match self
            .submit_to_stream(driver, submission, &make_command)
            .await
        {
            Ok(_) => Ok(()),
            Err(error) => self.unrecorded(work, error).await,
        }
    }

    async fn unrecorded<K: Sync>(
        &self,
        work: &LeasedEffect<K>,
        error: SubmitError,
    ) -> Result<(), Fault> {
        let effect = &work.effect.id;
        match error {
            SubmitError::LeaseLost => {
                self.inner.metrics.leases_lost.inc();
                tracing::warn!(%effect, "a result is dropped: its lease is lost");
                Ok(())
            }
            SubmitError::Fault(fault) => Err(fault),
            error => {
                tracing::debug!(%effect, %error, "the result of an effect is no longer accepted");
                self.remove_outbox_entry(work).await
            }
        }
    }

    /// Replaces the entry by `again`, which has the same id, to be performed at a later time. An entry
    /// removed in the meantime stays removed.
    pub async fn reschedule_effect<M: DrivenMachine>(
        &self,
        work: &LeasedEffect<M::EffectKind>,
        again: M::EffectKind,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let again = Effect {
            id: work.effect.id.clone(),
            kind: again,
        };
        let place = EntryPlace {
            stream: &work.stream,
            lane: work.lane.clone(),
            // A replaced entry keeps its order.
            order_key: None,
        };
        let commit = Commit {
            tenant: Some(work.lane.tenant.clone()),
            outbox: vec![OutboxChange::Put(entry::<M>(place, &again, at, None))],
            guards: vec![work.lease_guard()],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(()) | Err(Error::Conflict(_)) => {}
            Err(Error::Fault(fault)) => return Err(fault),
        }
        // It may be due again before this task has ended.
        self.inner.effects.mark_finished(&again.id);
        Ok(())
    }

    /// Removes the entry, unless another process works on it.
    pub async fn remove_outbox_entry<K: Sync>(&self, work: &LeasedEffect<K>) -> Result<(), Fault> {
        let effect = work.effect.id.clone();
        let commit = Commit {
            guards: vec![work.lease_guard()],
            outbox: vec![OutboxChange::Remove(effect)],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(()) | Err(Error::Conflict(_)) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }
}

/// The outbox entry a worker works on, with its slot.
pub(crate) struct WorkAssignment {
    pub(crate) effect: EffectId,
    pub(crate) kind: &'static str,
    #[expect(dead_code, reason = "the slot is free again when this is dropped")]
    pub(crate) slot: WorkerSlot,
    pub(crate) lease: Lease,
    /// Earlier failures of the entry.
    pub(crate) failures: u32,
}

/// Releases the worker when its task ends: done, aborted or panicked.
struct WorkerGuard {
    runtime: Runtime,
    task: u64,
    assignment: Option<WorkAssignment>,
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        let Some(assignment) = self.assignment.take() else {
            return;
        };
        let effects = &self.runtime.inner.effects;
        let mut running = effects.running.lock();
        let effect = &assignment.effect;
        if running.get(effect).is_some_and(|r| r.task == self.task) {
            running.remove(effect);
        }
        drop(running);
        if std::thread::panicking() {
            self.runtime.inner.metrics.panics.inc();
            let runtime = self.runtime.clone();
            let (effect, lease) = (effect.clone(), assignment.lease.id.clone());
            let (kind, failures) = (assignment.kind, assignment.failures);
            // Without this the entry would be retried after each lease, forever.
            tokio::spawn(async move {
                let fault = Fault::retryable("bug", "the task that performed it panicked");
                runtime
                    .record_effect_failure(&effect, &lease, kind, failures, &fault)
                    .await;
            });
        }
        drop(assignment);
        effects.done.notify_waiters();
        effects.bell.notify_one();
    }
}
