//! The workflow run as a machine of this runtime: its rows in the listing, the inbox, the memory
//! journal, the audit log and the webhook deliveries.

use crate::audit_actions::{self, AuditAction};
use crate::driven_machine::{DrivenMachine, ProjectedRows};
use crate::memory_access;
use crate::questions;
use crate::runtime::{Inner, Runtime};
use crate::stream_cache::StreamCache;
use crate::webhooks::TenantSubscriptions;
use crate::worker_slots::lane_of;
use tandem_engine::run::{Decision, Limits, Run};
use tandem_record::{EffectKind, RecordedEvent, TimerKey, Timestamp};
use tandem_store::{Commit, Lane, NewEvent, RunRow};

impl DrivenMachine for Run {
    const SNAPSHOT_FORMAT: u32 = 3;

    fn cache(inner: &Inner) -> &StreamCache<Self> {
        &inner.run_cache
    }

    fn limits(inner: &Inner) -> &Limits {
        &inner.config.limits
    }

    fn stored_timer_key(key: &TimerKey) -> TimerKey {
        key.clone()
    }

    fn encode_events(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &mut Decision,
    ) -> Vec<NewEvent> {
        runtime.redacted_bodies(before, decision)
    }

    fn lane(&self, effect: &EffectKind) -> Lane {
        let request = self.request();
        lane_of(
            &request.owner.tenant,
            effect,
            request.callback_url.as_deref(),
        )
    }

    fn project(
        runtime: &Runtime,
        before: Option<&Self>,
        decision: &Decision,
        audit_action: Option<&AuditAction>,
        subscriptions: &TenantSubscriptions,
        commit: &mut Commit,
    ) -> ProjectedRows {
        let now = runtime.clock().now();
        let questions = questions::changed_rows(before, &decision.after, &decision.events);
        memory_access::project(decision, commit);
        commit.audit.extend(audit_actions::entries(
            audit_action,
            decision,
            &questions,
            now,
        ));
        let has_question_changes = !questions.is_empty();
        commit.interrupts.extend(questions);
        let feed_rows = runtime.feed_rows(subscriptions, decision, now);
        let is_published = !feed_rows.is_empty();
        commit.webhooks.extend(feed_rows);
        let row = row(&decision.after);
        let unchanged = before.is_some_and(|before| self::row(before) == row);
        ProjectedRows {
            run: (!unchanged).then_some(row),
            has_question_changes,
            is_published,
        }
    }

    fn announce(runtime: &Runtime, decision: &Decision, created: bool) {
        let inner = &runtime.inner;
        if let Some(RecordedEvent { seq, event, .. }) = decision.events.last() {
            inner.bell.ring(decision.after.id(), *seq);
            if event.is_terminal() {
                // Fails only when there are no receivers.
                let _ = inner.ended.send(decision.after.id().clone());
            }
        }
        inner.metrics.observe(decision, created);
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
