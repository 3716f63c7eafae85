//! One commit over one or several streams. Each part is decided by its own machine. All parts are
//! written together and announced together, or not at all.
//!
//! Invariants:
//! - A part holds its stream's slot until the commit is durable or has failed.
//! - Nothing is announced and no effect is started before the commit is durable.
//! - The slot of a failed part holds no machine: the next command folds the stream again.

use crate::definitions::DecisionLookups;
use crate::driven_machine::{CommandMeta, DrivenMachine, Projection};
use crate::effects::Prepared;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::offload::in_place;
use crate::runtime::Runtime;
use crate::stream_cache::HeldSlot;
use crate::submit::SubmitError;
use crate::submit_stream::CommitRecord;
use crate::webhooks::{TenantSubscriptions, wake_feed};
use std::pin::Pin;
use std::sync::Arc;
use tandem_engine::machine::{Decision, Machine, TimerRequest};
use tandem_engine::run::{self, NewChildRun, WorkMeter};
use tandem_record::{EffectId, Seq, StreamId, TenantId};
use tandem_store::{
    Append, AuditDraft, Commit, CommitGuard, Committed, Error, Fault, IdempotencyRecord,
    MAX_BODY_BYTES, OutboxChange, RegistryChange, SnapshotRecord, TimerChange,
};

/// Number of events after which a snapshot saves more reading than it costs.
const SNAPSHOT_EVERY: u64 = 128;

/// A command to a stream of another machine that belongs to a decision: both are committed together. Its
/// stream comes after that of the decision in the order of ids.
pub type Companion = Box<
    dyn for<'t, 'r> FnOnce(
            &'t mut Transaction<'r>,
        )
            -> Pin<Box<dyn Future<Output = Result<(), SubmitError>> + Send + 't>>
        + Send,
>;

/// Announces one part of a durable commit and starts its effects.
type Publish = Box<dyn FnOnce(&Runtime, &Committed) + Send>;

pub struct Transaction<'a> {
    pub(crate) runtime: &'a Runtime,
    commit: Commit,
    subscriptions: Arc<TenantSubscriptions>,
    parts: Vec<Publish>,
    /// The stream that [`Self::submit`] locked last.
    pub(crate) last_stream: Option<StreamId>,
    /// A part was decided on a state that is not the newest.
    pub(crate) is_stale: bool,
}

impl<'a> Transaction<'a> {
    /// Every part belongs to this tenant.
    pub(crate) async fn begin(runtime: &'a Runtime, tenant: &TenantId) -> Result<Self, Fault> {
        Ok(Self {
            runtime,
            commit: Commit {
                tenant: Some(tenant.clone()),
                ..Commit::default()
            },
            subscriptions: runtime.subscriptions(tenant).await?,
            parts: Vec::new(),
            last_stream: None,
            is_stale: false,
        })
    }

    /// Stores a response in the same commit.
    pub fn store_response(&mut self, record: IdempotencyRecord) {
        self.commit.idempotency.push(record);
    }

    /// Adds an entry to the audit log in the same commit.
    pub(crate) fn audit(&mut self, entry: AuditDraft) {
        self.commit.audit.push(entry);
    }

    /// Removes the entry of an effect in the same commit, which fails if its lease is lost.
    pub(crate) fn complete<K>(&mut self, work: &LeasedEffect<K>) {
        self.require(work.lease_guard());
        self.commit
            .outbox
            .push(OutboxChange::Remove(work.effect.id.clone()));
    }

    /// Changes what the id of a workflow stands for in the same commit, if it is still as the guard says.
    pub(crate) fn change_registry(
        &mut self,
        change: RegistryChange,
        guard: CommitGuard,
        audit: AuditDraft,
    ) {
        self.commit.registry.push(change);
        self.require(guard);
        self.audit(audit);
    }

    /// Stores something beside the events of its parts in the same commit.
    pub(crate) fn store(&mut self, record: CommitRecord) {
        match record {
            CommitRecord::Response(response) => self.store_response(response),
            CommitRecord::Stream(append) => self.commit.appends.push(append),
        }
    }

    /// Whose commit it is.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        self.commit.tenant.as_ref()
    }

    /// The commit fails unless this holds when it is written.
    pub(crate) fn require(&mut self, guard: CommitGuard) {
        self.commit.guards.push(guard);
    }

    /// Adds a decision, the runs it creates, and its commands to other machines.
    pub(crate) async fn add<M: DrivenMachine>(
        &mut self,
        driver: &Arc<MachineDriver<M>>,
        slot: HeldSlot<M>,
        before: Option<M>,
        mut decision: Decision<M>,
        meta: CommandMeta<M::TimerKey>,
    ) -> Result<(), SubmitError> {
        self.last_stream = Some(decision.after.stream());
        let companions = M::companions(driver, &mut decision);
        let children = std::mem::take(&mut decision.children);
        // Events are redacted and encoded, and so is the state now and then.
        let bytes = decision.after.memory_bytes();
        in_place(bytes, || {
            self.add_part(driver, slot, before, decision, meta);
        });
        if !children.is_empty() {
            Box::pin(self.add_child_runs(children)).await;
        }
        for companion in companions {
            companion(self).await?;
        }
        Ok(())
    }

    /// Adds the first event of each child run. Their slots stay locked until the children exist, so
    /// that no command can reach them too early.
    async fn add_child_runs(&mut self, new_children: Vec<NewChildRun>) {
        let now = self.runtime.clock().now();
        let streams = new_children.iter().map(|new| StreamId::of_run(&new.child));
        let runs = &self.runtime.inner.runs;
        let mut slots = runs.cache.lock_all(streams.collect()).await;
        let (nothing, work) = (DecisionLookups::default(), WorkMeter::unlimited());
        for new_child in new_children {
            let slot = slots
                .remove(&StreamId::of_run(&new_child.child))
                .expect("a decision creates each child once");
            let context = self.runtime.context(now, &nothing, &work);
            let decision = run::create_child_run(new_child, &context);
            self.add_part(runs, slot, None, decision, CommandMeta::default());
        }
    }

    fn add_part<M: DrivenMachine>(
        &mut self,
        driver: &Arc<MachineDriver<M>>,
        slot: HeldSlot<M>,
        before: Option<M>,
        mut decision: Decision<M>,
        meta: CommandMeta<M::TimerKey>,
    ) {
        let (runtime, commit) = (self.runtime, &mut self.commit);
        let bodies = M::encode_events(runtime, before.as_ref(), &mut decision);
        let stream = decision.after.stream();
        let projection = Projection {
            runtime,
            audit_action: meta.audit_action.as_ref(),
            subscriptions: &self.subscriptions,
        };
        let rows = M::project(&projection, before.as_ref(), &decision, commit);
        let limits = M::limits(runtime, &driver.settings);
        let timers = timer_changes(&stream, &decision, meta.timer.as_ref(), limits);
        commit.timers.extend(timers);
        let effects = &runtime.inner.effects;
        let mut prepared = effects.prepare(&stream, &decision, runtime);
        commit.outbox.append(&mut prepared.changes);
        let completed = meta.completes.map(|(effect, lease)| {
            commit.guards.push(CommitGuard::HoldsLease {
                effect: effect.clone(),
                lease,
            });
            commit.outbox.push(OutboxChange::Remove(effect.clone()));
            effect
        });
        let head = before.as_ref().and_then(Machine::head);
        let mut snapshot_at = slot.snapshot_at;
        if !decision.events.is_empty() {
            let snapshot = due_snapshot(&decision.after, snapshot_at);
            snapshot_at = snapshot.as_ref().map(|s| s.seq).or(snapshot_at);
            commit.appends.push(Append {
                stream,
                after: head,
                events: bodies,
                run: rows.run,
                snapshot,
            });
        } else if !runtime.inner.config.is_single_process {
            // Nothing is appended, but the answer must follow from the newest state.
            commit.appends.push(Append {
                stream,
                after: decision.after.head(),
                events: Vec::new(),
                run: None,
                snapshot: None,
            });
        }
        let part = Part {
            slot,
            decision,
            driver: Arc::clone(driver),
            created: head.is_none(),
            prepared,
            completed,
            has_question_changes: rows.has_question_changes,
            is_published: rows.is_published,
            snapshot_at,
        };
        self.parts.push(Box::new(move |runtime, committed| {
            part.publish(runtime, committed)
        }));
    }

    /// Makes all parts durable, then announces them.
    pub(crate) async fn commit(self) -> Result<(), Error> {
        let (runtime, mut commit) = (self.runtime, self.commit);
        // One entry for all events of the commit.
        let tenant = commit.tenant.as_ref();
        if let Some(tenant) = tenant.filter(|_| !commit.webhooks.is_empty()) {
            let wake = wake_feed(tenant, runtime.clock().now());
            commit.outbox.push(wake);
        }
        let idle = commit.appends.iter().all(|a| a.events.is_empty())
            && commit.timers.is_empty()
            && commit.outbox.is_empty()
            && commit.interrupts.is_empty()
            && commit.registry.is_empty()
            && commit.idempotency.is_empty();
        let mut committed = Committed::default();
        if !idle {
            let inner = &runtime.inner;
            inner.crash.reach("commit.before");
            let started = tokio::time::Instant::now();
            committed = runtime.store().commit(commit).await?;
            let seconds = started.elapsed().as_secs_f64();
            inner.metrics.commit_seconds.observe(seconds);
            inner.crash.reach("commit.after");
        } else {
            for append in &commit.appends {
                runtime
                    .check_stored_head(&append.stream, append.after)
                    .await?;
            }
        }
        for publish in self.parts {
            publish(runtime, &committed);
        }
        Ok(())
    }
}

/// One stream's part of a commit, as it is published once the commit is durable.
struct Part<M: DrivenMachine> {
    driver: Arc<MachineDriver<M>>,
    slot: HeldSlot<M>,
    decision: Decision<M>,
    created: bool,
    prepared: Prepared<M::EffectKind>,
    /// The outbox entry the decision completes.
    completed: Option<EffectId>,
    has_question_changes: bool,
    is_published: bool,
    snapshot_at: Option<Seq>,
}

impl<M: DrivenMachine> Part<M> {
    fn publish(mut self, runtime: &Runtime, committed: &Committed) {
        let (inner, decision) = (&runtime.inner, self.decision);
        let stream = decision.after.stream();
        self.slot.snapshot_at = self.snapshot_at;
        if let Some(last) = decision.events.last() {
            inner.bell.ring(&stream, last.seq);
        }
        M::announce(runtime, &decision, self.created);
        let set = decision.timers.iter().filter_map(|timer| match timer {
            TimerRequest::Set { due, .. } => Some(*due),
            TimerRequest::Clear { .. } => None,
        });
        if let Some(first) = set.min() {
            inner.timer_bell.timer_set(first);
        }
        if self.has_question_changes {
            inner.bell.ring_questions();
        }
        let mut has_dropped_others = false;
        for effect in &decision.dropped {
            if self.completed.as_ref() == Some(effect) {
                inner.effects.mark_finished(effect);
            } else {
                inner.effects.abort(effect);
                has_dropped_others = true;
            }
        }
        let mut leased = self.prepared.leased;
        leased.retain(|(effect, ..)| !committed.held.contains(&effect.id));
        runtime.perform_prepared(&self.driver, &stream, leased);
        let has_waiting = self.prepared.unleased || committed.has_released;
        if has_waiting || self.is_published || has_dropped_others {
            inner.effects.bell.notify_one();
        }
        let (cache, bytes) = (&self.driver.cache, decision.after.memory_bytes());
        if decision.after.is_ended() {
            cache.remove(&stream);
            let ended = decision.after.clone();
            self.driver.ended.insert(stream, ended, bytes);
        } else {
            cache.set_size(&stream, bytes);
        }
        self.slot.machine = Some(decision.after);
    }
}

fn timer_changes<M: DrivenMachine>(
    stream: &StreamId,
    decision: &Decision<M>,
    fired: Option<&M::TimerKey>,
    limits: &M::Limits,
) -> Vec<TimerChange> {
    let set = |key, due| TimerChange::Set {
        stream: stream.clone(),
        name: M::timer_name(key),
        due,
        tenant: decision.after.tenant().clone(),
    };
    let clear = |key| TimerChange::Clear {
        stream: stream.clone(),
        name: M::timer_name(key),
    };
    let requests = decision.timers.iter();
    let mut changes: Vec<TimerChange> = requests
        .map(|request| match request {
            TimerRequest::Set { key, due } => set(key, *due),
            TimerRequest::Clear { key } => clear(key),
        })
        .collect();
    // A fired timer that changed nothing must be removed too, or it fires again forever. The
    // machine may still need it: the clock was set back, or an earlier version of this host counted
    // pauses.
    if let Some(fired) = fired {
        let already_changed = decision.timers.iter().any(|request| match request {
            TimerRequest::Set { key, .. } | TimerRequest::Clear { key } => key == fired,
        });
        match decision.after.required_timers(limits).get(fired) {
            _ if already_changed => {}
            // Set it again for its due time. Unchanged, it would fire repeatedly until then.
            Some(due) => changes.push(set(fired, *due)),
            None => changes.push(clear(fired)),
        }
    }
    changes
}

fn due_snapshot<M: DrivenMachine>(machine: &M, last: Option<Seq>) -> Option<SnapshotRecord> {
    let head = machine.head()?;
    let since = head.0 - last.map_or(0, |seq| seq.0);
    if since < SNAPSHOT_EVERY {
        return None;
    }
    // Serializing the state cannot fail: it is plain data with text keys.
    let body = serde_json::to_string(machine.snapshot()).ok()?;
    // A snapshot is a cache: without it the log is read. The limit on a machine's state makes this
    // rare.
    if body.len() > MAX_BODY_BYTES {
        return None;
    }
    Some(SnapshotRecord {
        seq: head,
        format: M::SNAPSHOT_FORMAT,
        body,
    })
}
