//! From a decision to a durable fact, and only then to the world: builds the one commit, writes it,
//! announces it.

use crate::deeds;
use crate::definitions::Seen;
use crate::effects::Prepared;
use crate::live::Slot;
use crate::questions;
use crate::remember;
use crate::runtime::Runtime;
use crate::submit::Delivery;
use crate::webhooks::Subscription;
use tandem_engine::run::{self, Birth, Decision, Run, SchemaMeter, TimerWish, wanted_timers};
use tandem_record::{EffectId, Recorded, Seq, StreamId, TimerKey, Timestamp};
use tandem_store::{
    Append, Commit, Error, Guard, IdempotencyRecord, MAX_BODY_BYTES, OutboxChange, RunRow,
    SnapshotRecord, TimerChange,
};
use tokio::sync::OwnedMutexGuard;

/// Events after which a snapshot saves more reading than it costs.
const SNAPSHOT_EVERY: u64 = 128;
/// Bump when the folded state changes shape; older snapshots are then ignored.
pub(crate) const SNAPSHOT_FORMAT: u32 = 2;

/// A commit in the making, and who wants to hear of it.
struct Draft<'a> {
    commit: &'a mut Commit,
    subscriptions: &'a [Subscription],
}

/// One run's share of a commit, and what follows once it is durable.
struct Drafted {
    decision: Decision,
    created: bool,
    prepared: Prepared,
    /// The outbox entry the decision completes.
    completed: Option<EffectId>,
    asks: bool,
    tells: bool,
    snapshot_at: Option<Seq>,
}

impl Runtime {
    /// Commits a decision, with the birth of the children it names, and, once it is durable, lets
    /// the world know.
    pub(crate) async fn make_durable(
        &self,
        slot: &mut Slot,
        before: Option<Run>,
        mut decision: Decision,
        answer: Option<IdempotencyRecord>,
        delivery: Delivery,
        guard: Option<Guard>,
    ) -> Result<(), Error> {
        let births = std::mem::take(&mut decision.children);
        // Of the whole family: children belong to their parent's tenant.
        let tenant = &decision.run.request().owner.tenant;
        let subscriptions = self.subscriptions(tenant).await?;
        let mut commit = Commit {
            tenant: Some(tenant.clone()),
            idempotency: answer,
            guards: guard.into_iter().collect(),
            ..Commit::default()
        };
        let snapshot_at = slot.snapshot_at;
        let mut draft = Draft {
            commit: &mut commit,
            subscriptions: &subscriptions,
        };
        let drafted = self.draft(&mut draft, before, decision, delivery, snapshot_at);
        let children = match births.is_empty() {
            true => Vec::new(),
            false => Box::pin(self.bear(births, draft)).await,
        };
        let idle = commit.appends.is_empty()
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
        }
        self.publish(slot, drafted);
        for (mut place, child) in children {
            self.publish(&mut place, child);
        }
        Ok(())
    }

    /// Adds the first event of each child. Their places are held until they exist, so that nobody
    /// looks for them too early.
    async fn bear(
        &self,
        births: Vec<Birth>,
        mut draft: Draft<'_>,
    ) -> Vec<(OwnedMutexGuard<Slot>, Drafted)> {
        let now = self.clock().now();
        let (nothing, no_schemas) = (Seen::default(), SchemaMeter::up_to(0));
        let mut children = Vec::with_capacity(births.len());
        for birth in births {
            let place = self.inner.live.slot(&birth.child).lock_owned().await;
            let decision = run::bear(birth, &self.context(now, &nothing, &no_schemas));
            let drafted = self.draft(&mut draft, None, decision, Delivery::default(), None);
            children.push((place, drafted));
        }
        children
    }

    /// Adds what one decision changes to the commit.
    fn draft(
        &self,
        draft: &mut Draft<'_>,
        before: Option<Run>,
        mut decision: Decision,
        delivery: Delivery,
        snapshot_at: Option<Seq>,
    ) -> Drafted {
        let commit = &mut *draft.commit;
        let bodies = self.redacted_bodies(before.as_ref(), &mut decision);
        let stream = StreamId::of_run(decision.run.id());
        let questions = questions::changed_rows(before.as_ref(), &decision.run, &decision.events);
        remember::project(&decision, commit);
        let timers = self.timer_changes(&stream, &decision, delivery.timer.as_ref());
        commit.timers.extend(timers);
        let now = self.clock().now();
        let deed = delivery.deed.as_ref();
        commit
            .audit
            .extend(deeds::entries(deed, &decision, &questions, now));
        let asks = !questions.is_empty();
        commit.interrupts.extend(questions);
        let mut prepared = self
            .inner
            .effects
            .prepare(&self.inner.config, &stream, &decision, now);
        commit.outbox.append(&mut prepared.changes);
        let told = self.told(draft.subscriptions, &decision, now);
        let tells = !told.changes.is_empty();
        commit.webhooks.extend(told.changes);
        commit.outbox.extend(told.wakes);
        let completed = delivery.completes;
        let removed = completed.clone().map(OutboxChange::Remove);
        commit.outbox.extend(removed);
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
        }
        Drafted {
            decision,
            created: before.is_none(),
            prepared,
            completed,
            asks,
            tells,
            snapshot_at,
        }
    }

    /// What is durable becomes known, and what it asks for is begun.
    fn publish(&self, slot: &mut Slot, drafted: Drafted) {
        let decision = drafted.decision;
        slot.snapshot_at = drafted.snapshot_at;
        self.announce(&decision, drafted.created);
        if drafted.asks {
            self.inner.bell.ring_questions();
        }
        for effect in &decision.dropped {
            if drafted.completed.as_ref() == Some(effect) {
                self.inner.effects.settled(effect);
            } else {
                self.inner.effects.abort(effect);
            }
        }
        self.perform_prepared(drafted.prepared.leased);
        if drafted.prepared.unleased || drafted.tells {
            self.inner.effects.bell.notify_one();
        }
        let ended = decision.run.status().is_terminal();
        let run_id = decision.run.id().clone();
        self.inner.live.weigh(&run_id, decision.run.size().memory);
        slot.run = Some(decision.run);
        if ended {
            self.inner.live.forget(&run_id);
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
            .map(|wish| match wish {
                TimerWish::Set { key, due } => TimerChange::Set {
                    stream: stream.clone(),
                    key,
                    due,
                },
                TimerWish::Clear { key } => TimerChange::Clear {
                    stream: stream.clone(),
                    key,
                },
            })
            .collect();
        // A timer that fired for nothing must go too, or it would fire for ever. The run may still wait
        // for it: the clock stepped back, or an earlier version of this host counted pauses.
        if let Some(key) = fired {
            let wanted = wanted_timers(&decision.run, self.limits());
            let spoken_for = changes.iter().any(|change| match change {
                TimerChange::Set { key: k, .. } | TimerChange::Clear { key: k, .. } => k == key,
            });
            let (stream, key) = (stream.clone(), key.clone());
            match wanted.get(&key) {
                _ if spoken_for => {}
                // Set again for when it is due: left as it is, it would fire until then.
                Some(&due) => changes.push(TimerChange::Set { stream, key, due }),
                None => changes.push(TimerChange::Clear { stream, key }),
            }
        }
        changes
    }

    fn announce(&self, decision: &Decision, created: bool) {
        if let Some(Recorded { seq, event, .. }) = decision.events.last() {
            self.inner.bell.ring(decision.run.id(), *seq);
            if event.is_terminal() {
                // Fails only when nobody listens.
                let _ = self.inner.ended.send(decision.run.id().clone());
            }
        }
        if decision
            .timers
            .iter()
            .any(|t| matches!(t, TimerWish::Set { .. }))
        {
            self.inner.timer_bell.notify_one();
        }
        self.inner.metrics.observe(decision, created);
    }
}

/// Rows of the listing follow from the run alone.
fn row(run: &Run) -> RunRow {
    let request = run.request();
    // A fork is as old as its making, whatever time its events are told in.
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
    // Folding state into JSON cannot fail: it is plain data with text keys.
    let body = serde_json::to_string(run.state()).ok()?;
    // A cache: without it the log is read. The bound on a run's state makes this rare.
    if body.len() > MAX_BODY_BYTES {
        return None;
    }
    Some(SnapshotRecord {
        seq: head,
        format: SNAPSHOT_FORMAT,
        body,
    })
}
