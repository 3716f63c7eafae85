//! The workers of this process and the effects they work on. An effect arrives here only after the
//! commit that recorded it; `effect_results.rs` performs it.

use crate::config::RuntimeConfig;
use crate::driven_machine::DrivenMachine;
use crate::leases::{LeasedEffect, PastAttempts, Running};
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::worker_slots::{Quota, WorkerSlot, WorkerSlots};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tandem_engine::machine::Decision;
use tandem_record::{Effect, EffectId, OrderKey, StreamId, Timestamp};
use tandem_store::{Fault, Lane, Lease, OutboxChange, OutboxEntry, WorkClass};
use tokio::sync::Notify;

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
    /// as leased to this process and performed without another commit. The store takes the lease from
    /// an effect that is not the first of its order.
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
            let slot = self.slots(place.lane.class).take(&place.lane);
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

    /// Grows whenever work begins or ends.
    pub(crate) fn changes(&self) -> u64 {
        WorkClass::ALL
            .map(|class| self.slots(class).changes())
            .iter()
            .sum()
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
pub(crate) struct EntryPlace<'a> {
    pub(crate) stream: &'a StreamId,
    pub(crate) lane: Lane,
    pub(crate) order_key: Option<OrderKey>,
}

/// The outbox entry of an effect.
pub(crate) fn entry<M: DrivenMachine>(
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
        // The committing process attempts it at once if it has the lease.
        attempts: u32::from(lease.is_some()),
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
            let first = PastAttempts::default();
            self.spawn_effect(driver, stream.clone(), effect, slot, lease, first);
        }
    }

    pub(crate) fn spawn_effect<M: DrivenMachine>(
        &self,
        driver: &Arc<MachineDriver<M>>,
        stream: StreamId,
        effect: Effect<M::EffectKind>,
        slot: WorkerSlot,
        lease: Lease,
        past: PastAttempts,
    ) {
        let (runtime, driver) = (self.clone(), Arc::clone(driver));
        let work = LeasedEffect {
            stream,
            lane: slot.lane.clone(),
            lease: lease.id.clone(),
            past,
            effect,
        };
        let assignment = WorkAssignment {
            effect: work.effect.id.clone(),
            kind: M::effect_name(&work.effect.kind),
            slot,
            lease,
            failures: past.failures,
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
