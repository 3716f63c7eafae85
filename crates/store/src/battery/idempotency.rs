//! A response is stored in the commit of its request, once per key.

use super::sample::{NOW, append, commit, conflict, head, later, must};
use crate::{Commit, Conflict, IdempotencyKey, IdempotencyRecord, Store, StoredResponse};
use std::sync::Arc;
use tandem_record::{Partition, StreamId, TenantId, Timestamp};

pub(super) fn record(key: &str, recorded_at: Timestamp) -> IdempotencyRecord {
    IdempotencyRecord {
        key: IdempotencyKey(key.into()),
        digest: format!("digest of {key}"),
        response: StoredResponse {
            status: 201,
            body: r#"{"runId":"r1"}"#.into(),
        },
        recorded_at,
        session: None,
    }
}

fn recording(key: &str, recorded_at: Timestamp) -> Commit {
    Commit {
        idempotency: vec![record(key, recorded_at)],
        ..Commit::default()
    }
}

pub async fn returns_the_committed_response(store: Arc<dyn Store>) {
    let key = IdempotencyKey("k1".into());
    assert_eq!(store.idempotency_record(&key).await.unwrap(), None);
    must(&store, recording("k1", NOW)).await;
    let answer = store.idempotency_record(&key).await.unwrap();
    assert_eq!(answer, Some(record("k1", NOW)));
}

pub async fn a_used_key_conflicts(store: Arc<dyn Store>) {
    must(&store, recording("k1", NOW)).await;
    let stream = StreamId::new("run:a");
    let mut again = commit([append(&stream, None, 1)]);
    again.idempotency = vec![record("k1", later(1))];
    assert_eq!(conflict(&store, again).await, Conflict::KeyUsed);
    assert_eq!(head(&store, &stream).await, None, "nothing was written");
    let answer = store
        .idempotency_record(&IdempotencyKey("k1".into()))
        .await
        .unwrap();
    assert_eq!(answer, Some(record("k1", NOW)), "the first response stays");
}

pub async fn records_several_keys_or_none(store: Arc<dyn Store>) {
    must(&store, recording("k1", NOW)).await;
    let mut both = recording("k2", NOW);
    both.idempotency.push(record("k1", later(1)));
    assert_eq!(conflict(&store, both).await, Conflict::KeyUsed);
    let second = IdempotencyKey("k2".into());
    let stored = store.idempotency_record(&second).await.unwrap();
    assert_eq!(stored, None, "one used key refuses all of them");

    let mut both = recording("k2", NOW);
    both.idempotency.push(record("k3", NOW));
    must(&store, both).await;
    for key in ["k2", "k3"] {
        let stored = store.idempotency_record(&IdempotencyKey(key.into())).await;
        assert_eq!(stored.unwrap(), Some(record(key, NOW)));
    }
}

pub async fn conflicting_commit_records_no_response(store: Arc<dyn Store>) {
    let mut stale = commit([append(&StreamId::new("run:a"), Some(3), 1)]);
    stale.idempotency = vec![record("k1", NOW)];
    conflict(&store, stale).await;
    let answer = store
        .idempotency_record(&IdempotencyKey("k1".into()))
        .await
        .unwrap();
    assert_eq!(answer, None, "the key is free for the next try");
}

pub async fn expires_oldest_responses_first(store: Arc<dyn Store>) {
    for (key, age) in [("k3", 3), ("k1", 1), ("k4", 4), ("k2", 2)] {
        must(&store, recording(key, later(age))).await;
    }
    let left = async || {
        let mut left = Vec::new();
        for key in ["k1", "k2", "k3", "k4"] {
            let answer = store
                .idempotency_record(&IdempotencyKey(key.into()))
                .await
                .unwrap();
            left.extend(answer.map(|_| key));
        }
        left
    };
    let before = later(4);
    assert_eq!(store.expire_idempotency(before, 2).await.unwrap(), 2);
    assert_eq!(left().await, ["k3", "k4"], "the two oldest are gone");
    assert_eq!(store.expire_idempotency(before, 2).await.unwrap(), 1);
    assert_eq!(left().await, ["k4"], "what is not older stays");
    must(&store, recording("k1", later(9))).await;
    assert_eq!(
        left().await,
        ["k1", "k4"],
        "an expired key may be used again"
    );
}

pub async fn message_ids_do_not_expire(store: Arc<dyn Store>) {
    let tenant = Partition::from(TenantId::new("t1"));
    let key = IdempotencyKey::of_message(&tenant, &"desk".into(), "loopback", &"m1".into());
    let received = IdempotencyRecord {
        key: key.clone(),
        session: Some("s1".into()),
        ..record("", NOW)
    };
    let accept = Commit {
        idempotency: vec![received.clone()],
        ..Commit::default()
    };
    must(&store, accept.clone()).await;
    must(&store, recording("k1", NOW)).await;
    assert_eq!(store.expire_idempotency(later(9), 10).await.unwrap(), 1);
    let stored = store.idempotency_record(&key).await.unwrap();
    assert_eq!(stored, Some(received), "every field");
    assert_eq!(conflict(&store, accept).await, Conflict::KeyUsed);
    let of_workspace = Partition {
        workspace: Some("w1".into()),
        ..tenant
    };
    let other = IdempotencyKey::of_message(&of_workspace, &"desk".into(), "loopback", &"m1".into());
    let stored = store.idempotency_record(&other).await.unwrap();
    assert_eq!(stored, None, "a workspace has its own messages");
}
