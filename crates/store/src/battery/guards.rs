//! Guards of a commit are checked inside its transaction; if one fails, nothing is written.

use super::sample::started;
use super::sample::{
    NOW, append, commit, conflict, entry, head, held, later, moved, must, partition, put, row,
};
use crate::{Commit, CommitGuard, Conflict, LeaseId, LeaseRequest, OutboxChange, Store};
use std::sync::Arc;
use tandem_record::{EffectId, RunStatus, StreamId};

fn holds(effect: &str, owner: &str) -> CommitGuard {
    CommitGuard::HoldsLease {
        effect: EffectId::new(effect),
        lease: LeaseId::new(owner, 1),
    }
}

fn free(owner: &str, scope: &str) -> CommitGuard {
    CommitGuard::ScopeFree {
        owner: partition(owner),
        scope: scope.into(),
    }
}

fn only(guard: CommitGuard) -> Commit {
    Commit {
        guards: vec![guard],
        ..Commit::default()
    }
}

#[track_caller]
fn is_guard(conflict: &Conflict) {
    assert!(
        matches!(conflict, Conflict::Guard(_) | Conflict::LeaseLost(_)),
        "expected a failed guard, got {conflict:?}"
    );
}

pub async fn lease_guard_needs_the_holder(store: Arc<dyn Store>) {
    is_guard(&conflict(&store, only(holds("e1", "me"))).await);
    must(&store, put([entry("e1", NOW)])).await;
    is_guard(&conflict(&store, only(holds("e1", "me"))).await);
    let request = LeaseRequest {
        lease: LeaseId::new("me", 1),
        now: NOW,
        until: later(100),
        lane_limits: vec![(super::sample::lane(), 1)],
    };
    assert_eq!(store.lease(request).await.unwrap().len(), 1);
    is_guard(&conflict(&store, only(holds("e1", "other"))).await);
    must(&store, only(holds("e1", "me"))).await;
}

pub async fn scope_guard_sees_live_runs_only(store: Arc<dyn Store>) {
    let mut run = row("t1", "r1");
    run.scope = Some("order-7".into());
    must(&store, started(run.clone())).await;
    is_guard(&conflict(&store, only(free("t1", "order-7"))).await);
    must(&store, only(free("t1", "order-8"))).await;
    must(&store, only(free("t2", "order-7"))).await;
    for (after, status) in (0..).zip(RunStatus::ALL.into_iter().filter(|s| !s.is_terminal())) {
        run.status = status;
        must(&store, moved(run.clone(), Some(after))).await;
        is_guard(&conflict(&store, only(free("t1", "order-7"))).await);
    }
    let after = head(&store, &StreamId::new("run:r1")).await.unwrap();
    for (after, status) in (after..).zip(RunStatus::ALL.into_iter().filter(|s| s.is_terminal())) {
        run.status = status;
        must(&store, moved(run.clone(), Some(after))).await;
        must(&store, only(free("t1", "order-7"))).await;
    }
}

pub async fn a_scope_is_taken_in_its_workspace_only(store: Arc<dyn Store>) {
    let mut run = row("t1", "r1");
    run.scope = Some("order-7".into());
    run.workspace = Some("red".into());
    must(&store, started(run)).await;
    is_guard(&conflict(&store, only(free("t1/red", "order-7"))).await);
    for elsewhere in ["t1", "t1/blue", "t2/red"] {
        must(&store, only(free(elsewhere, "order-7"))).await;
        let owner = partition(elsewhere);
        let holder = store.live_run_in_scope(&owner, "order-7").await;
        assert_eq!(holder.unwrap(), None, "{elsewhere}");
    }
    let owner = partition("t1/red");
    let holder = store.live_run_in_scope(&owner, "order-7").await;
    assert_eq!(holder.unwrap(), Some("r1".into()));
}

pub async fn failed_guard_writes_nothing(store: Arc<dyn Store>) {
    let stream = StreamId::new("run:a");
    let mut guarded = commit([append(&stream, None, 1)]);
    guarded.outbox.push(OutboxChange::Put(entry("e2", NOW)));
    guarded.guards.push(holds("e1", "me"));
    conflict(&store, guarded).await;
    assert_eq!(head(&store, &stream).await, None);
    assert_eq!(store.depth().await.unwrap(), 0);
}

pub async fn guards_are_checked_before_writes(store: Arc<dyn Store>) {
    // A run that claims a free scope does not conflict with itself.
    let mut run = row("t1", "r1");
    run.scope = Some("order-7".into());
    let mut claim = started(run.clone());
    claim.guards.push(free("t1", "order-7"));
    must(&store, claim).await;
    // An entry put by the commit itself does not satisfy its own guard.
    let mut leased = entry("e1", NOW);
    leased.lease = Some(held("me", later(100)));
    let mut own = put([leased]);
    own.guards.push(holds("e1", "me"));
    is_guard(&conflict(&store, own).await);
}
