//! Carrying out what runs ask of the world. An effect reaches this file only after the commit that
//! recorded it; its result goes back through the one way in, and leaves the outbox in the commit
//! that records the result.

use crate::config::RuntimeConfig;
use crate::runtime::Runtime;
use crate::submit::{Delivery, SubmitError};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_engine::run::Decision;
use tandem_record::{Command, Effect, EffectId, EffectKind, EffectOutcome, StreamId, Timestamp};
use tandem_store::{Fault, OutboxChange, OutboxEntry};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// A holder that shows no sign of life for this long has lost its effect.
pub(crate) const LEASE_MS: u64 = 60_000;
/// Calls of packs wait for a processor, one behind the other, each with a time limit.
const PACK_QUEUE_MS: u64 = 30 * 60_000;
/// Longest pause between two attempts to record a result.
const MAX_BACKOFF_MS: u64 = 30_000;

pub(crate) struct Effects {
    pub(crate) permits: Arc<Semaphore>,
    capacity: usize,
    /// Effects under way here, so that they can be stopped and are not started twice.
    running: Mutex<HashMap<EffectId, Running>>,
    /// Tells one task from a later one for the same effect.
    next_task: AtomicU64,
    /// Entries nobody leased are waiting.
    pub(crate) bell: Notify,
    done: Notify,
}

struct Running {
    task: u64,
    /// Absent for the moment between the entry and its task.
    handle: Option<AbortHandle>,
}

/// What a commit puts into the outbox, and what is attempted right after it.
pub(crate) struct Prepared {
    pub(crate) changes: Vec<OutboxChange>,
    pub(crate) leased: Vec<(Effect, OwnedSemaphorePermit)>,
    pub(crate) unleased: bool,
}

impl Effects {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(capacity)),
            capacity,
            running: Mutex::default(),
            next_task: AtomicU64::new(0),
            bell: Notify::new(),
            done: Notify::new(),
        }
    }

    /// Turns a decision's effects into outbox changes. An effect that finds a free worker is
    /// written as leased to this process and performed without another commit.
    pub(crate) fn prepare(
        &self,
        config: &RuntimeConfig,
        stream: &StreamId,
        decision: &Decision,
        now: Timestamp,
    ) -> Prepared {
        let mut prepared = Prepared {
            changes: Vec::new(),
            leased: Vec::new(),
            unleased: false,
        };
        for effect in &decision.dropped {
            prepared.changes.push(OutboxChange::Remove(effect.clone()));
        }
        for effect in &decision.effects {
            let permit = Arc::clone(&self.permits).try_acquire_owned().ok();
            let lease = permit
                .as_ref()
                .map(|_| (config.owner.clone(), now.plus_ms(lease_ms(&effect.kind))));
            let entry = entry(stream, effect, now, lease);
            prepared.changes.push(OutboxChange::Put(entry));
            match permit {
                Some(permit) => prepared.leased.push((effect.clone(), permit)),
                None => prepared.unleased = true,
            }
        }
        prepared
    }

    /// Stops an effect nobody wants any more. Its outbox entry is gone already. From now on the
    /// same effect may be started again, though its old task has yet to notice its end.
    pub(crate) fn abort(&self, effect: &EffectId) {
        if let Some(handle) = self.forget(effect).and_then(|running| running.handle) {
            handle.abort();
        }
    }

    /// An effect whose result is recorded: another attempt need not wait for its task to wind up.
    pub(crate) fn settled(&self, effect: &EffectId) {
        drop(self.forget(effect));
    }

    fn forget(&self, effect: &EffectId) -> Option<Running> {
        self.running.lock().remove(effect)
    }

    pub(crate) fn abort_all(&self) {
        let running = self.running.lock();
        for handle in running.values().filter_map(|r| r.handle.as_ref()) {
            handle.abort();
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.permits.available_permits() == self.capacity
    }

    pub(crate) fn under_way(&self) -> usize {
        self.capacity - self.permits.available_permits()
    }

    pub(crate) async fn idle(&self) {
        loop {
            let done = self.done.notified();
            if self.is_idle() {
                return;
            }
            done.await;
        }
    }
}

/// An effect as the outbox keeps it.
pub(crate) fn entry(
    stream: &StreamId,
    effect: &Effect,
    available_at: Timestamp,
    lease: Option<(String, Timestamp)>,
) -> OutboxEntry {
    OutboxEntry {
        effect: effect.id.clone(),
        stream: stream.clone(),
        kind: effect.kind.name().to_owned(),
        body: serde_json::to_string(effect).expect("effects are plain data"),
        available_at,
        attempts: 0,
        lease,
    }
}

/// Long enough for the effect's own time limit, so that a slow call is not taken for a dead holder.
fn lease_ms(kind: &EffectKind) -> u64 {
    match kind {
        EffectKind::Http { request, .. } => request.timeout_ms + LEASE_MS,
        EffectKind::Model { timeout_ms, .. } => timeout_ms + LEASE_MS,
        EffectKind::Tool { request, .. } => request.timeout_ms + LEASE_MS,
        EffectKind::Pack { .. } => PACK_QUEUE_MS + LEASE_MS,
        _ => LEASE_MS,
    }
}

impl Runtime {
    pub(crate) fn perform_prepared(&self, leased: Vec<(Effect, OwnedSemaphorePermit)>) {
        for (effect, permit) in leased {
            self.spawn_effect(effect, permit);
        }
    }

    pub(crate) fn spawn_effect(&self, effect: Effect, permit: OwnedSemaphorePermit) {
        let runtime = self.clone();
        self.spawn_worker(effect.id.clone(), permit, async move {
            runtime.carry_out(effect).await;
        });
    }

    /// Works on an outbox entry, unless this process does already.
    pub(crate) fn spawn_worker(
        &self,
        id: EffectId,
        permit: OwnedSemaphorePermit,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let effects = &self.inner.effects;
        let task = effects.next_task.fetch_add(1, Ordering::Relaxed);
        match effects.running.lock().entry(id.clone()) {
            // Under way already: the outbox gave out an entry this process still works on.
            Entry::Occupied(_) => return,
            Entry::Vacant(place) => {
                place.insert(Running { task, handle: None });
            }
        }
        let runtime = self.clone();
        let finished = id.clone();
        let spawned = tokio::spawn(async move {
            let _guard = Finished {
                runtime,
                effect: finished,
                task,
                permit: Some(permit),
            };
            work.await;
        });
        match effects.running.lock().get_mut(&id) {
            Some(running) if running.task == task => running.handle = Some(spawned.abort_handle()),
            // Stopped, or finished, before its handle was in place.
            _ => spawned.abort(),
        }
    }

    /// Performs one effect and records its result, again and again until the record stands.
    async fn carry_out(&self, effect: Effect) {
        self.inner.crash.reach("effect.before");
        let started = tokio::time::Instant::now();
        let name = effect.kind.name();
        let mut said = None;
        let mut delivered = self.attempt(&effect, &mut said).await;
        self.inner.crash.reach("effect.after");
        let mut backoff = 50;
        while let Err(fault) = delivered {
            tracing::warn!(effect = %effect.id, kind = name, error = %fault, "an effect is not settled");
            if !fault.retryable || self.is_stopping() {
                let later = self.clock().now().plus_ms(MAX_BACKOFF_MS);
                let owner = &self.inner.config.owner;
                let released = self.store().release(&effect.id, owner, later).await;
                if let Err(fault) = released {
                    tracing::warn!(effect = %effect.id, error = %fault, "could not give it back");
                }
                return;
            }
            tokio::time::sleep(Duration::from_millis(backoff)).await;
            backoff = (backoff * 2).min(MAX_BACKOFF_MS);
            delivered = self.attempt(&effect, &mut said).await;
        }
        let seconds = started.elapsed().as_secs_f64();
        self.inner.metrics.effect_done(name, seconds);
    }

    /// `said` keeps what the world answered: it is asked once, however often the store fails to
    /// take the answer.
    async fn attempt(
        &self,
        effect: &Effect,
        said: &mut Option<EffectOutcome>,
    ) -> Result<(), Fault> {
        match &effect.kind {
            EffectKind::Http { .. }
            | EffectKind::Model { .. }
            | EffectKind::Tool { .. }
            | EffectKind::Pack { .. }
            | EffectKind::SecretEcho { .. } => {
                let outcome = match said {
                    Some(outcome) => outcome.clone(),
                    None => said.insert(self.ask_world(effect).await?).clone(),
                };
                let command = Command::EffectFinished {
                    effect: effect.id.clone(),
                    outcome,
                };
                self.settle_effect(effect, command, &effect.run_id).await
            }
            EffectKind::NotifyParent {
                parent,
                node,
                outcome,
            } => {
                let command = Command::ChildReported {
                    node: node.clone(),
                    outcome: outcome.clone(),
                };
                self.settle_effect(effect, command, parent).await
            }
            EffectKind::CancelChild { child } => {
                let command = Command::Cancel {
                    reason: None,
                    by: None,
                    by_parent: Some(effect.run_id.clone()),
                };
                self.settle_effect(effect, command, child).await
            }
            EffectKind::Announce { interrupt, tries } => {
                self.tell_callback(effect, interrupt, *tries, said).await
            }
            EffectKind::Continue => {
                self.settle_effect(effect, Command::Continue, &effect.run_id)
                    .await
            }
        }
    }

    async fn ask_world(&self, effect: &Effect) -> Result<EffectOutcome, Fault> {
        if let Some(outcome) = self.by_program(&effect.id, &effect.kind).await? {
            return Ok(outcome);
        }
        let trace = self.trace_of(&effect.run_id).await?;
        let performer = &self.inner.config.performer;
        Ok(performer.perform(effect, trace.as_ref()).await)
    }

    /// Delivers a result; one that nobody can take any more just leaves the outbox.
    pub(crate) async fn settle_effect(
        &self,
        effect: &Effect,
        command: Command,
        to: &tandem_record::RunId,
    ) -> Result<(), Fault> {
        let delivery = Delivery {
            completes: Some(effect.id.clone()),
            ..Delivery::default()
        };
        match self.deliver(to, command, None, delivery).await {
            Ok(_) => Ok(()),
            Err(SubmitError::Fault(fault)) => Err(fault),
            Err(error) => {
                tracing::debug!(effect = %effect.id, %error, "an effect's result found no taker");
                self.drop_entry(effect).await
            }
        }
    }

    pub(crate) async fn drop_entry(&self, effect: &Effect) -> Result<(), Fault> {
        let commit = tandem_store::Commit {
            outbox: vec![OutboxChange::Remove(effect.id.clone())],
            ..Default::default()
        };
        match self.store().commit(commit).await {
            Ok(()) | Err(tandem_store::Error::Conflict(_)) => Ok(()),
            Err(tandem_store::Error::Fault(fault)) => Err(fault),
        }
    }
}

/// Frees a worker however its task ends: done, aborted or panicked.
struct Finished {
    runtime: Runtime,
    effect: EffectId,
    task: u64,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Finished {
    fn drop(&mut self) {
        let effects = &self.runtime.inner.effects;
        let mut running = effects.running.lock();
        if running
            .get(&self.effect)
            .is_some_and(|r| r.task == self.task)
        {
            running.remove(&self.effect);
        }
        drop(running);
        drop(self.permit.take());
        if std::thread::panicking() {
            self.runtime.inner.metrics.panics.inc();
        }
        effects.done.notify_waiters();
        effects.bell.notify_one();
    }
}
