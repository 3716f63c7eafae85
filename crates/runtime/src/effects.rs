//! Performs the effects of runs. An effect arrives here only after the commit that recorded it. Its
//! result goes back through `submit`, and its outbox entry is removed in the commit that records
//! the result.

use crate::config::RuntimeConfig;
use crate::driven_machine::{CommandMeta, DrivenMachine};
use crate::leases::{LeasedEffect, Running};
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::worker_slots::{Quota, WorkerSlot, WorkerSlots};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_engine::machine::Decision;
use tandem_record::{Command, Effect, EffectId, EffectKind, EffectOutcome, StreamId, Timestamp};
use tandem_store::{Fault, Lane, Lease, OutboxChange, OutboxEntry, WorkClass};
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
pub(crate) struct Prepared {
    pub(crate) changes: Vec<OutboxChange>,
    pub(crate) leased: Vec<(Effect, WorkerSlot, Lease)>,
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
    /// as leased to this process and performed without another commit.
    pub(crate) fn prepare<M: DrivenMachine>(
        &self,
        stream: &StreamId,
        decision: &Decision<M>,
        runtime: &Runtime,
    ) -> Prepared {
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
            let lane = decision.after.lane(&effect.kind);
            let slot = self.slots(lane.class).take(&lane);
            let lease = slot.as_ref().map(|_| self.new_lease(owner, now));
            let entry = entry(stream, effect, lane, now, lease.clone());
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

/// The outbox entry of an effect.
pub(crate) fn entry(
    stream: &StreamId,
    effect: &Effect,
    lane: Lane,
    available_at: Timestamp,
    lease: Option<Lease>,
) -> OutboxEntry {
    OutboxEntry {
        effect: effect.id.clone(),
        stream: stream.clone(),
        kind: effect.kind.name().to_owned(),
        body: serde_json::to_string(effect).expect("effects are plain data"),
        lane,
        available_at,
        attempts: 0,
        failures: 0,
        lease,
    }
}

impl Runtime {
    pub(crate) fn perform_prepared(&self, leased: Vec<(Effect, WorkerSlot, Lease)>) {
        for (effect, slot, lease) in leased {
            self.spawn_effect(effect, slot, lease, 0);
        }
    }

    /// `failures` counts earlier failures.
    pub(crate) fn spawn_effect(
        &self,
        effect: Effect,
        slot: WorkerSlot,
        lease: Lease,
        failures: u32,
    ) {
        let runtime = self.clone();
        let work = LeasedEffect {
            lane: slot.lane.clone(),
            lease: lease.id.clone(),
            failures,
            effect,
        };
        let assignment = WorkAssignment {
            effect: work.effect.id.clone(),
            kind: work.effect.kind.name(),
            slot,
            lease,
            failures,
        };
        self.spawn_worker(assignment, async move {
            runtime.run_effect(work).await;
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
    async fn run_effect(&self, work: LeasedEffect) {
        self.inner.crash.reach("effect.before");
        let started = tokio::time::Instant::now();
        let effect = &work.effect;
        let name = effect.kind.name();
        let mut cached_outcome = None;
        let mut delivered = self.attempt(&work, &mut cached_outcome).await;
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
            delivered = self.attempt(&work, &mut cached_outcome).await;
        }
        let seconds = started.elapsed().as_secs_f64();
        self.inner.metrics.effect_done(name, seconds);
    }

    /// `cached_outcome` holds the outcome of the call: the call is made once, however often
    /// recording its outcome fails.
    async fn attempt(
        &self,
        work: &LeasedEffect,
        cached_outcome: &mut Option<EffectOutcome>,
    ) -> Result<(), Fault> {
        let effect = &work.effect;
        match &effect.kind {
            EffectKind::Http { .. }
            | EffectKind::Model { .. }
            | EffectKind::Tool { .. }
            | EffectKind::Pack { .. }
            | EffectKind::SecretEcho { .. } => {
                let outcome = match cached_outcome {
                    Some(outcome) => outcome.clone(),
                    None => cached_outcome
                        .insert(self.perform_effect(effect).await?)
                        .clone(),
                };
                let command = Command::FinishEffect {
                    effect: effect.id.clone(),
                    outcome,
                };
                self.submit_effect_result(work, command, &effect.run_id)
                    .await
            }
            EffectKind::NotifyParent {
                parent,
                node,
                outcome,
            } => {
                let command = Command::ReportChildOutcome {
                    node: node.clone(),
                    outcome: outcome.clone(),
                };
                self.submit_effect_result(work, command, parent).await
            }
            EffectKind::CancelChild { child } => {
                let command = Command::Cancel {
                    reason: None,
                    by: None,
                    by_parent: Some(effect.run_id.clone()),
                };
                self.submit_effect_result(work, command, child).await
            }
            EffectKind::NotifyCallback { interrupt, tries } => {
                self.notify_callback(work, (interrupt, *tries), cached_outcome)
                    .await
            }
            EffectKind::Continue => {
                self.submit_effect_result(work, Command::Continue, &effect.run_id)
                    .await
            }
        }
    }

    async fn perform_effect(&self, effect: &Effect) -> Result<EffectOutcome, Fault> {
        if let Some(outcome) = self.programmed_outcome(&effect.id, &effect.kind).await? {
            return Ok(outcome);
        }
        let trace = self.trace_of(&effect.run_id).await?;
        let performer = &self.inner.config.performer;
        Ok(performer.perform(effect, trace.as_ref()).await)
    }

    /// Submits a result. A result that the run no longer accepts only removes the outbox entry. If
    /// the lease is lost, the work is another's and the result is dropped.
    pub(crate) async fn submit_effect_result(
        &self,
        work: &LeasedEffect,
        command: Command,
        to: &tandem_record::RunId,
    ) -> Result<(), Fault> {
        let effect = &work.effect;
        self.inner.effects.start_recording(&effect.id, &work.lease);
        let meta = CommandMeta {
            completes: Some((effect.id.clone(), work.lease.clone())),
            ..CommandMeta::default()
        };
        match self.submit_internal(to, command, None, meta).await {
            Ok(_) => Ok(()),
            Err(SubmitError::LeaseLost) => {
                self.inner.metrics.leases_lost.inc();
                tracing::warn!(effect = %effect.id, "a result is dropped: its lease is lost");
                Ok(())
            }
            Err(SubmitError::Fault(fault)) => Err(fault),
            Err(error) => {
                tracing::debug!(effect = %effect.id, %error, "the run no longer accepts the result of an effect");
                self.remove_outbox_entry(work).await
            }
        }
    }

    /// Removes the entry, unless another process works on it.
    pub(crate) async fn remove_outbox_entry(&self, work: &LeasedEffect) -> Result<(), Fault> {
        let effect = work.effect.id.clone();
        let commit = tandem_store::Commit {
            guards: vec![work.lease_guard()],
            outbox: vec![OutboxChange::Remove(effect)],
            ..Default::default()
        };
        match self.store().commit(commit).await {
            Ok(()) | Err(tandem_store::Error::Conflict(_)) => Ok(()),
            Err(tandem_store::Error::Fault(fault)) => Err(fault),
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
