//! Direct changes to the audit log in the database are detected.

use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use tandem_record::{Actor, Object, TenantId};
use tandem_store::audit::{AuditKey, AuditSigner, AuditVerification, DECISION};
use tandem_store::battery::sample::{NOW, must};
use tandem_store::{Audit, AuditDraft, Commit, Store};
use tandem_store_sqlite::{Options, SqliteStore};

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, Options::default()).expect("the database opens"))
}

fn audit_signer(store: &Arc<dyn Store>) -> AuditSigner {
    let store: Arc<dyn Audit> = Arc::<dyn Store>::clone(store);
    AuditSigner::new(store, AuditKey::from_seed(&[7; 32]))
}

async fn append_entries(store: &Arc<dyn Store>, count: usize) {
    let tenant = TenantId::new("t1");
    for n in 0..count {
        let target = format!("int-{n}");
        let draft = AuditDraft::new(
            NOW,
            Some(&tenant),
            &Actor::host(),
            DECISION,
            &target,
            Object::new(),
        );
        let commit = Commit {
            audit: vec![draft],
            ..Commit::default()
        };
        must(store, commit).await;
    }
}

/// Entries 1 to 4 are sealed, 5 and 6 not yet.
async fn fill(path: &Path) {
    let store = open(path);
    append_entries(&store, 4).await;
    audit_signer(&store).seal_all().await.expect("a sound log");
    append_entries(&store, 2).await;
    store.close().await;
}

/// The verification after `sql` was run directly on the file.
async fn after(sql: &str) -> AuditVerification {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    fill(&path).await;
    let attacker = Connection::open(&path).unwrap();
    let triggers: Vec<String> = attacker
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map((), |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for trigger in triggers {
        attacker
            .execute(&format!("DROP TRIGGER {trigger}"), ())
            .unwrap();
    }
    attacker.execute_batch(sql).expect(sql);
    attacker.close().unwrap();
    let store = open(&path);
    let verification = audit_signer(&store).verify(0, u64::MAX).await.unwrap();
    store.close().await;
    verification
}

#[tokio::test]
async fn direct_database_changes_are_detected() {
    assert!(after("").await.is_valid());
    let replace = |seq: u64| {
        format!("UPDATE audit SET body = replace(body, 'host', 'h0st') WHERE seq = {seq}")
    };
    for (sql, broken_at) in [
        (replace(1), Some(2)),
        (replace(4), Some(5)),
        (replace(6), Some(7)),
        (r#"UPDATE audit SET body = replace(body, '"seq":5', '"seq": 5') WHERE seq = 5"#.into(), Some(6)),
        ("UPDATE audit SET body = CAST(x'7bff7d' AS TEXT) WHERE seq = 3".into(), Some(3)),
        ("DELETE FROM audit WHERE seq = 3".into(), Some(3)),
        ("DELETE FROM audit WHERE seq = 6".into(), Some(6)),
        ("DELETE FROM audit WHERE seq = 1".into(), Some(1)),
        ("UPDATE audit SET seq = 100 - seq WHERE seq IN (2, 3);
          UPDATE audit SET seq = seq - 95 + CASE seq WHEN 98 THEN 0 ELSE -2 END WHERE seq > 90".into(), None),
        ("UPDATE audit_head SET hash = zeroblob(32)".into(), Some(7)),
        ("UPDATE audit_head SET seq = 9".into(), Some(7)),
        ("DELETE FROM audit WHERE seq > 3; UPDATE audit_head SET seq = 3".into(), None),
        ("UPDATE audit_checkpoints SET merkle_root = replace(merkle_root, substr(merkle_root, 1, 1), 'x')".into(), None),
        ("UPDATE audit_checkpoints SET signature = 'A' || substr(signature, 2)".into(), None),
        ("UPDATE audit_checkpoints SET signature = ''".into(), None),
        ("UPDATE audit_checkpoints SET at_sequence = 3".into(), None),
    ] {
        let verification = after(&sql).await;
        assert!(!verification.is_valid(), "{sql}");
        if let Some(seq) = broken_at {
            assert_eq!(verification.breaks[0].at_seq, seq, "{sql}");
        }
    }
}

#[tokio::test]
async fn rewritten_chain_fails_its_checkpoint() {
    // The attacker knows the format and writes a new chain of the same length.
    let directory = tempfile::tempdir().unwrap();
    let forged = directory.path().join("forged.db");
    let store = open(&forged);
    let actor = Actor::link();
    for _ in 0..6 {
        let draft = AuditDraft::new(NOW, None, &actor, "run.create", "forged", Object::new());
        let commit = Commit {
            audit: vec![draft],
            ..Commit::default()
        };
        must(&store, commit).await;
    }
    store.close().await;
    let sql = format!(
        "ATTACH '{}' AS forged; DELETE FROM main.audit; DELETE FROM main.audit_head;
         INSERT INTO main.audit SELECT * FROM forged.audit;
         INSERT INTO main.audit_head SELECT * FROM forged.audit_head",
        forged.display()
    );
    let verification = after(&sql).await;
    assert_eq!(verification.breaks, [], "its links are valid");
    assert!(!verification.checkpoints_valid && !verification.is_valid());
}

#[tokio::test]
async fn schema_rejects_changes_to_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    fill(&path).await;
    let clumsy = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE audit SET body = '{}'",
        "DELETE FROM audit",
        "DELETE FROM audit_head",
        "UPDATE audit_head SET seq = 1",
        "UPDATE audit_checkpoints SET signature = ''",
        "DELETE FROM audit_checkpoints",
    ] {
        clumsy.execute(sql, ()).expect_err(sql);
    }
}

#[tokio::test]
async fn broken_chain_is_not_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    fill(&path).await;
    let attacker = Connection::open(&path).unwrap();
    let change = "DROP TRIGGER audit_is_not_changed;
                  UPDATE audit SET body = replace(body, 'host', 'h0st') WHERE seq = 6";
    attacker.execute_batch(change).unwrap();
    attacker.close().unwrap();
    let store = open(&path);
    audit_signer(&store)
        .seal_all()
        .await
        .expect_err("entry 6 is not what it was");
    assert_eq!(store.checkpoints(0, 10).await.unwrap().len(), 1);
    store.close().await;
}

#[tokio::test]
async fn database_without_audit_log_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tandem.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../src/schema/1.sql"))
        .unwrap();
    old.pragma_update(None, "application_id", 0x544E_444D)
        .unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    old.close().unwrap();
    fill(&path).await;
    let store = open(&path);
    assert_eq!(store.audit_head().await.unwrap().unwrap().seq, 6);
    store.close().await;
}
