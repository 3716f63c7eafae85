//! Makes a decision durable: builds one commit, writes it, and announces it afterwards.

use crate::audit_actions;
use crate::definitions::DecisionLookups;
use crate::effects::Prepared;
use crate::memory_access;
use crate::offload::in_place;
use crate::questions;
use crate::run_cache::RunSlot;
use crate::runtime::Runtime;
use crate::submit::CommandMeta;
use crate::webhooks::Subscription;
use tandem_engine::run::{
    self, Decision, NewChildRun, Run, TimerRequest, WorkMeter, required_timers,
};
use tandem_record::{EffectId, RecordedEvent, Seq, StreamId, TimerKey, Timestamp};
use tandem_store::{
    Append, Commit, CommitGuard, Error, IdempotencyRecord, MAX_BODY_BYTES, OutboxChange, RunRow,
    SnapshotRecord, TimerChange,
};
use tokio::sync::OwnedMutexGuard;

/// Number of events after which a snapshot saves more reading than it costs.
const SNAPSHOT_EVERY: u64 = 128;
/// Increment when the folded state changes shape; older snapshots are then ignored.
pub(crate) const SNAPSHOT_FORMAT: u32 = 2;

/// A commit that is being built, with the subscriptions of its tenant.
struct CommitDraft<'a> {
    commit: &'a mut Commit,
    subscriptions: &'a [Subscription],
}

/// One run's part of a commit, and what is published once the commit is durable.
struct DraftedRun {
    decision: Decision,
    created: bool,
    prepared: Prepared,
    /// The outbox entry the decision completes.
    completed: Option<EffectId>,
    has_question_changes: bool,
    has_deliveries: bool,
    snapshot_at: Option<Seq>,
}

impl Runtime {
    /// Commits a decision together with the child runs it creates. Publishes it once it is durable.
    pub(crate) async fn commit_decision(
        &self,
        slot: &mut RunSlot,
        before: Option<Run>,
        mut decision: Decision,
        answer: Option<IdempotencyRecord>,
        meta: CommandMeta,
        guard: Option<CommitGuard>,
    ) -> Result<(), Error> {
        let new_children = std::mem::take(&mut decision.children);
        // Valid for the whole commit: children belong to their parent's tenant.
        let tenant = &decision.run.request().owner.tenant;
        let subscriptions = self.subscriptions(tenant).await?;
        let mut commit = Commit {
            tenant: Some(tenant.clone()),
            idempotency: answer,
            guards: guard.into_iter().collect(),
            ..Commit::default()
        };
        let snapshot_at = slot.snapshot_at;
        let mut draft = CommitDraft {
            commit: &mut commit,
            subscriptions: &subscriptions,
        };
        // Events are redacted and encoded, and so is the state now and then.
        let bytes = decision.run.size().memory;
        let drafted = in_place(bytes, || {
            self.add_decision(&mut draft, before, decision, meta, snapshot_at)
        });
        let children = match new_children.is_empty() {
            true => Vec::new(),
            false => Box::pin(self.create_child_runs(new_children, draft)).await,
        };
        let idle = commit.appends.iter().all(|a| a.events.is_empty())
            && commit.timers.is_empty()
            && commit.outbox.is_empty()
            && commit.interrupts.is_empty()
            && commit.idempotency.is_none();
        if !idle {
            self.inner.crash.reach("commit.before");
            let started = tokio::time::Instant::now();
            self.store().commit(commit).await?;
            self.inner
                .metrics
                .commit_seconds
                .observe(started.elapsed().as_secs_f64());
            self.inner.crash.reach("commit.after");
        } else {
            self.check_stored_head(&drafted.decision.run).await?;
        }
        self.publish(slot, drafted);
        for (mut child_slot, child) in children {
            self.publish(&mut child_slot, child);
        }
        Ok(())
    }

    /// Adds the first event of each child run. Their slots stay locked until the children exist, so
    /// that no command can reach them too early.
    async fn create_child_runs(
        &self,
        new_children: Vec<NewChildRun>,
        mut draft: CommitDraft<'_>,
    ) -> Vec<(OwnedMutexGuard<RunSlot>, DraftedRun)> {
        let now = self.clock().now();
        let (nothing, work) = (DecisionLookups::default(), WorkMeter::unlimited());
        let mut children = Vec::with_capacity(new_children.len());
        for new_child in new_children {
            let child_slot = self
                .inner
                .run_cache
                .slot(&new_child.child)
                .lock_owned()
                .await;
            let decision = run::create_child_run(new_child, &self.context(now, &nothing, &work));
            let drafted =
                self.add_decision(&mut draft, None, decision, CommandMeta::default(), None);
            children.push((child_slot, drafted));
        }
        children
    }

    /// Adds the changes of one decision to the commit.
    fn add_decision(
        &self,
        draft: &mut CommitDraft<'_>,
        before: Option<Run>,
        mut decision: Decision,
        meta: CommandMeta,
        snapshot_at: Option<Seq>,
    ) -> DraftedRun {
        let commit = &mut *draft.commit;
        let bodies = self.redacted_bodies(before.as_ref(), &mut decision);
        let stream = StreamId::of_run(decision.run.id());
        let questions = questions::changed_rows(before.as_ref(), &decision.run, &decision.events);
        memory_access::project(&decision, commit);
        let timers = self.timer_changes(&stream, &decision, meta.timer.as_ref());
        commit.timers.extend(timers);
        let now = self.clock().now();
        let audit_action = meta.audit_action.as_ref();
        commit.audit.extend(audit_actions::entries(
            audit_action,
            &decision,
            &questions,
            now,
        ));
        let has_question_changes = !questions.is_empty();
        commit.interrupts.extend(questions);
        let mut prepared = self
            .inner
            .effects
            .prepare(&self.inner.config, &stream, &decision, now);
        commit.outbox.append(&mut prepared.changes);
        let deliveries = self.plan_deliveries(draft.subscriptions, &decision, now);
        let has_deliveries = !deliveries.changes.is_empty();
        commit.webhooks.extend(deliveries.changes);
        commit.outbox.extend(deliveries.wakes);
        let completed = meta.completes.map(|(effect, lease)| {
            commit.guards.push(CommitGuard::HoldsLease {
                effect: effect.clone(),
                lease,
            });
            commit.outbox.push(OutboxChange::Remove(effect.clone()));
            effect
        });
        let mut snapshot_at = snapshot_at;
        if !decision.events.is_empty() {
            let row = row(&decision.run);
            let unchanged = before.as_ref().is_some_and(|b| self::row(b) == row);
            let snapshot = due_snapshot(&decision.run, snapshot_at);
            snapshot_at = snapshot.as_ref().map(|s| s.seq).or(snapshot_at);
            commit.appends.push(Append {
                stream,
                after: before.as_ref().and_then(Run::head),
                events: bodies,
                run: (!unchanged).then_some(row),
                snapshot,
            });
        } else if !self.inner.config.is_single_process {
            // Nothing is appended, but timers and outbox must follow from the newest state.
            commit.appends.push(Append {
                stream,
                after: decision.run.head(),
                events: Vec::new(),
                run: None,
                snapshot: None,
            });
        }
        DraftedRun {
            decision,
            created: before.is_none(),
            prepared,
            completed,
            has_question_changes,
            has_deliveries,
            snapshot_at,
        }
    }

    /// Announces a durable decision and starts its effects.
    fn publish(&self, slot: &mut RunSlot, drafted: DraftedRun) {
        let decision = drafted.decision;
        slot.snapshot_at = drafted.snapshot_at;
        self.announce(&decision, drafted.created);
        if drafted.has_question_changes {
            self.inner.bell.ring_questions();
        }
        for effect in &decision.dropped {
            if drafted.completed.as_ref() == Some(effect) {
                self.inner.effects.mark_finished(effect);
            } else {
                self.inner.effects.abort(effect);
            }
        }
        self.perform_prepared(drafted.prepared.leased);
        if drafted.prepared.unleased || drafted.has_deliveries {
            self.inner.effects.bell.notify_one();
        }
        let ended = decision.run.status().is_terminal();
        let run_id = decision.run.id().clone();
        self.inner
            .run_cache
            .set_size(&run_id, decision.run.size().memory);
        slot.run = Some(decision.run);
        if ended {
            self.inner.run_cache.remove(&run_id);
        }
    }

    fn timer_changes(
        &self,
        stream: &StreamId,
        decision: &Decision,
        fired: Option<&TimerKey>,
    ) -> Vec<TimerChange> {
        let mut changes: Vec<TimerChange> = decision
            .timers
            .iter()
            .cloned()
            .map(|request| match request {
                TimerRequest::Set { key, due } => TimerChange::Set {
                    stream: stream.clone(),
                    key,
                    due,
                },
                TimerRequest::Clear { key } => TimerChange::Clear {
                    stream: stream.clone(),
                    key,
                },
            })
            .collect();
        // A fired timer that changed nothing must be removed too, or it fires again forever. The
        // run may still need it: the clock was set back, or an earlier version of this host counted
        // pauses.
        if let Some(key) = fired {
            let required = required_timers(&decision.run, self.limits());
            let already_changed = changes.iter().any(|change| match change {
                TimerChange::Set { key: k, .. } | TimerChange::Clear { key: k, .. } => k == key,
            });
            let (stream, key) = (stream.clone(), key.clone());
            match required.get(&key) {
                _ if already_changed => {}
                // Set it again for its due time. Unchanged, it would fire repeatedly until then.
                Some(&due) => changes.push(TimerChange::Set { stream, key, due }),
                None => changes.push(TimerChange::Clear { stream, key }),
            }
        }
        changes
    }

    fn announce(&self, decision: &Decision, created: bool) {
        if let Some(RecordedEvent { seq, event, .. }) = decision.events.last() {
            self.inner.bell.ring(decision.run.id(), *seq);
            if event.is_terminal() {
                // Fails only when there are no receivers.
                let _ = self.inner.ended.send(decision.run.id().clone());
            }
        }
        if decision
            .timers
            .iter()
            .any(|t| matches!(t, TimerRequest::Set { .. }))
        {
            self.inner.timer_bell.notify_one();
        }
        self.inner.metrics.observe(decision, created);
    }
}

/// The row of the listing follows from the run alone.
fn row(run: &Run) -> RunRow {
    let request = run.request();
    // A fork is as old as its creation, whatever the times of its copied events.
    let forked = request.forked_from.as_ref().map(|f| f.at);
    let real = |at: Timestamp| at.max(forked.unwrap_or(at));
    RunRow {
        run_id: run.id().clone(),
        tenant: request.owner.tenant.clone(),
        workspace: request.owner.workspace.clone(),
        workflow_id: run.definition().id().clone(),
        definition: run.definition().hash.clone(),
        status: run.status(),
        parent: request.parent.as_ref().map(|p| p.run_id.clone()),
        scope: request.scope_id.clone(),
        created_at: real(run.created_at()),
        ended_at: run.ended_at().map(real),
        error_code: run.error().map(|e| e.code.clone()),
    }
}

fn due_snapshot(run: &Run, last: Option<Seq>) -> Option<SnapshotRecord> {
    let head = run.head()?;
    let since = head.0 - last.map_or(0, |seq| seq.0);
    if since < SNAPSHOT_EVERY {
        return None;
    }
    // Serializing the state cannot fail: it is plain data with text keys.
    let body = serde_json::to_string(run.state()).ok()?;
    // A snapshot is a cache: without it the log is read. The limit on a run's state makes this
    // rare.
    if body.len() > MAX_BODY_BYTES {
        return None;
    }
    Some(SnapshotRecord {
        seq: head,
        format: SNAPSHOT_FORMAT,
        body,
    })
}
