//! The audit log: grows only with the commit of the recorded action, and is sealed in order.

use super::sample::{NOW, append, commit, conflict, later, must};
use crate::audit::{AuditKey, AuditSigner, ChainVerifier, DECISION, Entry};
use crate::{Audit, AuditDraft, AuditRow, Commit, Store};
use std::sync::Arc;
use tandem_record::{Actor, InterruptId, Object, StreamId, TenantId};

pub(super) fn audit_draft(action: &str, target: &str) -> AuditDraft {
    let tenant = TenantId::new("t1");
    AuditDraft::new(
        NOW,
        Some(&tenant),
        &Actor::host(),
        action,
        target,
        Object::new(),
    )
}

fn audit_commit(drafts: impl IntoIterator<Item = AuditDraft>) -> Commit {
    Commit {
        audit: drafts.into_iter().collect(),
        ..Commit::default()
    }
}

fn audit_signer(store: &Arc<dyn Store>) -> AuditSigner {
    let store: Arc<dyn Audit> = Arc::<dyn Store>::clone(store);
    AuditSigner::new(store, AuditKey::from_seed(&[7; 32]))
}

pub(super) async fn entries(store: &Arc<dyn Store>) -> Vec<Entry> {
    let rows = store
        .audit_entries(0, usize::MAX)
        .await
        .expect("reads work");
    let entry = |row: &AuditRow| serde_json::from_slice(&row.body).expect("an entry");
    rows.iter().map(entry).collect()
}

/// Every link is valid and the chain ends where the store says.
async fn assert_valid_chain(store: &Arc<dyn Store>) {
    let mut verifier = ChainVerifier::new();
    for row in store.audit_entries(0, usize::MAX).await.unwrap() {
        verifier.entry(row.seq, &row.body);
    }
    let head = store.audit_head().await.unwrap();
    assert_eq!(verifier.last(), head);
    assert_eq!(verifier.breaks(), []);
}

pub async fn grows_with_its_commit(store: Arc<dyn Store>) {
    assert_eq!(store.audit_head().await.unwrap(), None);
    let run = StreamId::new("run:r1");
    let mut first = commit([append(&run, None, 1)]);
    first.audit = vec![
        audit_draft("run.create", "r1"),
        audit_draft("run.cancel", "r1"),
    ];
    must(&store, first).await;
    must(&store, audit_commit([audit_draft("run.create", "r2")])).await;
    let entries = entries(&store).await;
    let seen: Vec<_> = entries
        .iter()
        .map(|e| (e.seq, e.action.as_str(), e.target.as_str()))
        .collect();
    let expected = [
        (1, "run.create", "r1"),
        (2, "run.cancel", "r1"),
        (3, "run.create", "r2"),
    ];
    assert_eq!(seen, expected);
    assert_valid_chain(&store).await;
    let page = store.audit_entries(1, 1).await.unwrap();
    assert_eq!((page.len(), page[0].seq), (1, 2));
}

pub async fn rejected_commit_writes_no_audit_entry(store: Arc<dyn Store>) {
    let run = StreamId::new("run:r1");
    must(&store, audit_commit([audit_draft("run.create", "r0")])).await;
    let mut stale = commit([append(&run, Some(4), 1)]);
    stale.audit = vec![audit_draft("run.cancel", "r1")];
    conflict(&store, stale).await;
    must(&store, audit_commit([audit_draft("run.create", "r2")])).await;
    assert_eq!(entries(&store).await.len(), 2);
    assert_valid_chain(&store).await;
}

pub async fn concurrent_commits_make_one_chain(store: Arc<dyn Store>) {
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let run = StreamId::new(format!("run:r{n}"));
                // Every second commit fails, in the middle of its batch.
                let after = (n % 2 == 1).then_some(9);
                let mut commit = commit([append(&run, after, 1)]);
                commit.audit = vec![audit_draft("run.create", &format!("r{n}"))];
                store.commit(commit).await.is_ok()
            })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.expect("the task ends"));
    }
    assert_eq!((made, entries(&store).await.len()), (20, 20));
    assert_valid_chain(&store).await;
}

pub async fn finds_the_entry_of_a_decision(store: Arc<dyn Store>) {
    let drafts = [
        audit_draft("run.create", "int-1"),
        audit_draft(DECISION, "int-0"),
        audit_draft(DECISION, "int-1"),
    ];
    must(&store, audit_commit(drafts)).await;
    let found = store.audit_decision(&InterruptId::new("int-1")).await;
    assert_eq!(found.unwrap().map(|row| row.seq), Some(3));
    let none = store.audit_decision(&InterruptId::new("int-2")).await;
    assert_eq!(none.unwrap(), None);
}

pub async fn checkpoints_cover_consecutive_ranges(store: Arc<dyn Store>) {
    let audit_signer = audit_signer(&store);
    for n in 0..3 {
        let drafts = (0..900).map(|m| audit_draft("run.create", &format!("r{n}-{m}")));
        must(&store, audit_commit(drafts)).await;
    }
    audit_signer
        .seal_due(later(1))
        .await
        .expect("a sound log is sealed");
    let places = async |store: &Arc<dyn Store>| -> Vec<(String, u64)> {
        let all = store.checkpoints(0, usize::MAX).await.unwrap();
        all.into_iter().map(|c| (c.id, c.at_sequence)).collect()
    };
    let full = [("cp-1".to_owned(), 1000), ("cp-2".to_owned(), 2000)];
    assert_eq!(places(&store).await, full, "the rest waits");
    audit_signer.seal_due(later(300_000)).await.unwrap();
    assert_eq!(places(&store).await.last().unwrap().1, 2700, "not forever");
    audit_signer.seal_all().await.unwrap();
    assert_eq!(places(&store).await.len(), 3, "nothing is left to seal");
    let mut late = store.checkpoint_until(u64::MAX).await.unwrap().unwrap();
    late.at_sequence = 2700;
    assert!(!store.put_checkpoint(late, 2000).await.unwrap());
    let until = store.checkpoint_until(1999).await.unwrap().unwrap();
    assert_eq!(until.at_sequence, 1000);
    assert_eq!(store.checkpoint_until(999).await.unwrap(), None);
    assert_eq!(store.checkpoints(1000, 1).await.unwrap()[0].id, "cp-2");
    for (from, to, seals) in [
        (0, u64::MAX, 3),
        (1, 999, 0),
        (1500, 2000, 1),
        (2701, 9000, 0),
    ] {
        let verification = audit_signer.verify(from, to).await.unwrap();
        assert!(verification.is_valid(), "{from}..={to}: {verification:?}");
        assert_eq!(verification.checkpoints.len(), seals, "{from}..={to}");
    }
}
