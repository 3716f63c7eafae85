//! From a decision to a durable fact, and only then to the world: builds the one commit, writes it,
//! announces it.

use crate::deeds;
use crate::live::Slot;
use crate::questions;
use crate::remember;
use crate::runtime::Runtime;
use crate::submit::Delivery;
use tandem_engine::run::{Decision, Run, TimerWish, wanted_timers};
use tandem_record::{Recorded, Seq, StreamId, TimerKey, Timestamp};
use tandem_store::{
    Append, Commit, Error, Guard, IdempotencyRecord, OutboxChange, RunRow, SnapshotRecord,
    TimerChange,
};

/// Events after which a snapshot saves more reading than it costs.
const SNAPSHOT_EVERY: u64 = 128;
/// Bump when the folded state changes shape; older snapshots are then ignored.
pub(crate) const SNAPSHOT_FORMAT: u32 = 2;

impl Runtime {
    /// Commits a decision and, once it is durable, lets the world know.
    pub(crate) async fn make_durable(
        &self,
        slot: &mut Slot,
        before: Option<Run>,
        mut decision: Decision,
        answer: Option<IdempotencyRecord>,
        delivery: Delivery,
        guard: Option<Guard>,
    ) -> Result<(), Error> {
        let bodies = self.scrubbed_bodies(before.as_ref(), &mut decision);
        let run_id = decision.run.id().clone();
        let stream = StreamId::of_run(&run_id);
        let after = before.as_ref().and_then(Run::head);
        let mut commit = Commit {
            idempotency: answer,
            guards: guard.into_iter().collect(),
            ..Commit::default()
        };
        commit.interrupts = questions::changed_rows(before.as_ref(), &decision.run);
        remember::project(&decision, &mut commit);
        commit.timers = self.timer_changes(&stream, &decision, delivery.timer.as_ref());
        let now = self.clock().now();
        let deed = delivery.deed.as_ref();
        commit.audit = deeds::entries(deed, &decision, &commit.interrupts, now);
        let prepared = self
            .inner
            .effects
            .prepare(&self.inner.config, &stream, &decision, now);
        commit.outbox = prepared.changes;
        let told = self.told(&decision, now).await?;
        let tells = !told.changes.is_empty();
        commit.webhooks = told.changes;
        commit.outbox.extend(told.wakes);
        let completed = delivery.completes;
        let removed = completed.clone().map(OutboxChange::Remove);
        commit.outbox.extend(removed);
        let mut snapshot_at = slot.snapshot_at;
        if !decision.events.is_empty() {
            let row = row(&decision.run);
            let unchanged = before.as_ref().is_some_and(|b| self::row(b) == row);
            let snapshot = due_snapshot(&decision.run, snapshot_at);
            snapshot_at = snapshot.as_ref().map(|s| s.seq).or(snapshot_at);
            commit.appends.push(Append {
                stream,
                after,
                events: bodies,
                run: (!unchanged).then_some(row),
                snapshot,
            });
        }
        let idle = commit.appends.is_empty()
            && commit.timers.is_empty()
            && commit.outbox.is_empty()
            && commit.interrupts.is_empty()
            && commit.idempotency.is_none();
        let asks = !commit.interrupts.is_empty();
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
        slot.snapshot_at = snapshot_at;
        self.announce(&decision, before.is_none());
        if asks {
            self.inner.bell.ring_questions();
        }
        for effect in &decision.dropped {
            if completed.as_ref() == Some(effect) {
                self.inner.effects.settled(effect);
            } else {
                self.inner.effects.abort(effect);
            }
        }
        self.perform_prepared(prepared.leased);
        if prepared.unleased || tells {
            self.inner.effects.bell.notify_one();
        }
        let ended = decision.run.status().is_terminal();
        slot.run = Some(decision.run);
        if ended {
            self.inner.live.forget(&run_id);
        }
        Ok(())
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
        // A timer that fired for nothing must go too, or it would fire for ever; unless the clock
        // stepped back and the run still waits for it.
        if let Some(key) = fired {
            let wanted = wanted_timers(&decision.run, self.limits());
            let spoken_for = changes.iter().any(|change| match change {
                TimerChange::Set { key: k, .. } | TimerChange::Clear { key: k, .. } => k == key,
            });
            if !spoken_for && !wanted.contains_key(key) {
                changes.push(TimerChange::Clear {
                    stream: stream.clone(),
                    key: key.clone(),
                });
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
    Some(SnapshotRecord {
        seq: head,
        format: SNAPSHOT_FORMAT,
        body,
    })
}
