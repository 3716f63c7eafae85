//! API keys are found by the hash of their secret and never deleted.

use super::audit::{audit_draft, entries};
use super::idempotency::record;
use super::sample::{NOW, conflict, later, must};
use crate::{ChooseKeys, Commit, Conflict, Error, KeyRecord, MAKER_REVOKED, Store};
use std::sync::Arc;
use tandem_record::{Principal, TenantId, Timestamp, WorkspaceId};

fn key(id: &str, tenant: &str, created_at: Timestamp) -> KeyRecord {
    KeyRecord {
        key_id: id.into(),
        hash: format!("hash-of-{id}"),
        name: "for the tests".into(),
        tenant: TenantId::new(tenant),
        workspace: Some(WorkspaceId::new("w1")),
        principal: Principal::new("p1"),
        scopes: vec!["runs:read".into(), "runs:write".into()],
        roles: vec![],
        created_at,
        expires_at: Some(later(1_000)),
        revoked_at: None,
        made_by: Some("maker".into()),
        rotates: Some("k0".into()),
        agent: Some("desk".into()),
    }
}

fn new_key(key: KeyRecord) -> Commit {
    Commit {
        key: Some(key),
        audit: vec![audit_draft("key.created", "k")],
        ..Commit::default()
    }
}

async fn put(store: &Arc<dyn Store>, key: KeyRecord) {
    must(store, new_key(key)).await;
}

/// Whether the tenant has the key, which now is revoked.
async fn revoke(
    store: &Arc<dyn Store>,
    tenant: &TenantId,
    key_id: &'static str,
    at: Timestamp,
) -> bool {
    let choose: ChooseKeys = Box::new(move |keys| {
        let found = keys.iter().filter(|key| key.key_id == key_id);
        let audited = |key: &KeyRecord| (key.key_id.clone(), audit_draft("key.revoked", "k"));
        found.map(audited).collect()
    });
    let chosen = store.revoke_keys(tenant, at, choose).await.unwrap();
    !chosen.is_empty()
}

pub async fn found_by_hash(store: Arc<dyn Store>) {
    assert_eq!(store.key_by_hash("hash-of-k1").await.unwrap(), None);
    let mut first = key("k1", "t1", NOW);
    put(&store, first.clone()).await;
    let found = store.key_by_hash("hash-of-k1").await.unwrap();
    assert_eq!(found.as_ref(), Some(&first), "every field comes back");
    first.workspace = None;
    first.made_by = None;
    first.rotates = None;
    first.expires_at = None;
    first.scopes = vec![];
    put(&store, first.clone()).await;
    let found = store.key_by_hash("hash-of-k1").await.unwrap();
    assert_eq!(found.as_ref(), Some(&first), "the same id is replaced");
    assert_eq!(store.list_keys(None).await.unwrap().len(), 1);
}

pub async fn listed_by_tenant_oldest_first(store: Arc<dyn Store>) {
    for (id, tenant, age) in [("k1", "t1", 30), ("k2", "t2", 20), ("k3", "t1", 10)] {
        let key = key(id, tenant, later(age));
        put(&store, key).await;
    }
    let ids = async |tenant: Option<&str>| -> Vec<String> {
        let tenant = tenant.map(TenantId::new);
        let keys = store.list_keys(tenant.as_ref()).await.unwrap();
        keys.into_iter().map(|key| key.key_id).collect()
    };
    assert_eq!(ids(None).await, ["k3", "k2", "k1"]);
    assert_eq!(ids(Some("t1")).await, ["k3", "k1"]);
    assert!(ids(Some("t3")).await.is_empty());
}

pub async fn revoked_once(store: Arc<dyn Store>) {
    put(&store, key("k1", "t1", NOW)).await;
    let (own, other) = (TenantId::new("t1"), TenantId::new("t2"));
    assert!(!revoke(&store, &other, "k1", later(1)).await);
    assert!(!revoke(&store, &own, "absent", later(1)).await);
    assert!(revoke(&store, &own, "k1", later(2)).await);
    assert!(revoke(&store, &own, "k1", later(3)).await);
    let found = store.key_by_hash("hash-of-k1").await.unwrap().unwrap();
    assert_eq!(found.revoked_at, Some(later(2)), "the first time stands");
}

pub async fn a_secret_belongs_to_one_key(store: Arc<dyn Store>) {
    put(&store, key("k1", "t1", NOW)).await;
    let mut twin = key("k2", "t2", NOW);
    twin.hash = "hash-of-k1".into();
    let Err(Error::Fault(refused)) = store.commit(new_key(twin)).await else {
        panic!("one secret for two keys");
    };
    assert_eq!(refused.code, "invalid");
    assert!(!refused.retryable);
    assert_eq!(store.list_keys(None).await.unwrap().len(), 1);
}

/// Whoever revokes a key revokes what it made. Nothing may be added after that.
pub async fn revoked_key_makes_no_key(store: Arc<dyn Store>) {
    let made = |id: &str| KeyRecord {
        made_by: Some("k1".into()),
        ..key(id, "t1", NOW)
    };
    put(&store, key("k1", "t1", NOW)).await;
    put(&store, made("k2")).await;
    let tenant = TenantId::new("t1");
    assert!(revoke(&store, &tenant, "k1", later(1)).await);
    let Err(Error::Fault(refused)) = store.commit(new_key(made("k3"))).await else {
        panic!("a revoked key made another");
    };
    assert_eq!((refused.code, refused.retryable), (MAKER_REVOKED, false));
    assert_eq!(store.list_keys(None).await.unwrap().len(), 2);
}

pub async fn key_changes_are_audited(store: Arc<dyn Store>) {
    let tenant = TenantId::new("t1");
    put(&store, key("k1", "t1", NOW)).await;
    let mut twin = key("k2", "t2", NOW);
    twin.hash = "hash-of-k1".into();
    store.commit(new_key(twin)).await.unwrap_err();
    for _ in 0..2 {
        assert!(revoke(&store, &tenant, "k1", later(1)).await);
    }
    assert!(!revoke(&store, &tenant, "k9", later(1)).await);
    let actions: Vec<String> = entries(&store)
        .await
        .into_iter()
        .map(|e| e.action)
        .collect();
    assert_eq!(
        actions,
        ["key.created", "key.revoked"],
        "each once, and no refusal"
    );
}

/// A request that makes a key and is repeated must not make a second one.
pub async fn key_is_made_with_the_response_to_its_request(store: Arc<dyn Store>) {
    let request = |id: &str| Commit {
        idempotency: vec![record("k1", NOW)],
        ..new_key(key(id, "t1", NOW))
    };
    must(&store, request("k1")).await;
    assert_eq!(conflict(&store, request("k2")).await, Conflict::KeyUsed);
    let keys = store.list_keys(None).await.unwrap();
    let ids: Vec<&str> = keys.iter().map(|key| key.key_id.as_str()).collect();
    assert_eq!(ids, ["k1"]);
    let mut twin = request("k3");
    twin.key = twin.key.map(|key| KeyRecord {
        hash: "hash-of-k1".into(),
        ..key
    });
    twin.idempotency = vec![record("k3", NOW)];
    let key = twin.idempotency[0].key.clone();
    store.commit(twin).await.unwrap_err();
    let stored = store.idempotency_record(&key).await.unwrap();
    assert_eq!(stored, None, "no response to a request that was refused");
}
