use super::store::FakeKeys;
use super::{NOW, keyring, new_key, tenant};
use crate::{
    AuthenticateError, EndSignal, LoginCodes, OpenedSession, Secret, Sessions, Unauthenticated,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tandem_record::{Actor, Object, Timestamp};
use tandem_store::{AuditDraft, KeyRecord, Keys as _};

#[tokio::test]
async fn cached_key_needs_no_store_read() {
    let (keys, store) = keyring();
    let (_, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    // (milliseconds after the first use, reads so far)
    for (at, reads) in [
        (0, 1),
        (1, 1),
        (4_999, 1),
        (5_000, 2),
        (9_999, 2),
        (10_000, 3),
    ] {
        let now = NOW.plus_ms(at);
        assert!(keys.authenticate(secret.expose(), now).await.is_ok());
        assert_eq!(store.reads(), reads, "at {at} ms");
    }
}

#[tokio::test]
async fn clock_going_back_invalidates_the_cache() {
    let (keys, store) = keyring();
    let (_, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    keys.authenticate(secret.expose(), NOW).await.unwrap();
    let earlier = Timestamp(NOW.0 - 60_000);
    keys.authenticate(secret.expose(), earlier).await.unwrap();
    assert_eq!(store.reads(), 2);
}

#[tokio::test]
async fn cached_key_works_while_the_store_is_unavailable() {
    let (keys, store) = keyring();
    let (_, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    keys.authenticate(secret.expose(), NOW).await.unwrap();
    store.broken.store(true, Ordering::Relaxed);
    assert!(keys.authenticate(secret.expose(), NOW).await.is_ok());
}

#[tokio::test]
async fn local_revocation_is_immediate_and_remote_within_ttl() {
    let (keys, store) = keyring();
    let (here, here_secret) = keys.mint(new_key("a"), &Actor::host(), NOW).await.unwrap();
    let (there, there_secret) = keys.mint(new_key("b"), &Actor::host(), NOW).await.unwrap();
    for secret in [&here_secret, &there_secret] {
        keys.authenticate(secret.expose(), NOW).await.unwrap();
    }
    let revoked = Err(AuthenticateError::Unauthenticated(Unauthenticated::Revoked));

    keys.revoke(&tenant(), &here.key_id, &Actor::host(), NOW)
        .await
        .unwrap();
    assert_eq!(keys.authenticate(here_secret.expose(), NOW).await, revoked);

    // Another process on the same store.
    revoke_in(&store, &there).await;
    assert!(keys.authenticate(there_secret.expose(), NOW).await.is_ok());
    let later = NOW.plus_ms(5_000);
    assert_eq!(
        keys.authenticate(there_secret.expose(), later).await,
        revoked
    );
}

#[tokio::test]
async fn lookup_overtaken_by_a_revocation_is_not_cached() {
    let (keys, store) = keyring();
    let keys = Arc::new(keys);
    let (record, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    let (go_on, paused) = tokio::sync::oneshot::channel();
    *store.pause.lock() = Some(paused);

    let lookup = tokio::spawn({
        let (keys, secret) = (keys.clone(), secret.clone());
        async move { keys.authenticate(secret.expose(), NOW).await }
    });
    while store.pause.lock().is_some() {
        tokio::task::yield_now().await;
    }
    keys.revoke(&tenant(), &record.key_id, &Actor::host(), NOW)
        .await
        .unwrap();
    go_on.send(()).unwrap();

    // This request started before the revocation; the next one did not.
    assert!(lookup.await.unwrap().is_ok());
    assert_eq!(
        keys.authenticate(secret.expose(), NOW).await,
        Err(AuthenticateError::Unauthenticated(Unauthenticated::Revoked)),
    );
}

#[tokio::test]
async fn cache_is_bounded_and_holds_no_unknown_keys() {
    let (keys, store) = keyring();
    let mut secrets = Vec::new();
    for _ in 0..1_030 {
        secrets.push(
            keys.mint(new_key("many"), &Actor::host(), NOW)
                .await
                .unwrap()
                .1,
        );
    }
    for (at, secret) in (0..).zip(&secrets) {
        let now = NOW.plus_ms(at);
        keys.authenticate(secret.expose(), now).await.unwrap();
    }
    assert_eq!(keys.cached(), 1_024);
    for guess in 0..50 {
        let _ = keys.authenticate(&format!("guess-{guess}"), NOW).await;
    }
    assert_eq!(keys.cached(), 1_024);

    // The newest entry is still cached, the oldest was evicted.
    let reads = store.reads();
    let now = NOW.plus_ms(1_030);
    keys.authenticate(secrets[1_029].expose(), now)
        .await
        .unwrap();
    assert_eq!(store.reads(), reads);
    keys.authenticate(secrets[0].expose(), now).await.unwrap();
    assert_eq!(store.reads(), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn remote_revocation_counts_once_the_epoch_is_read() {
    let (keys, store) = keyring();
    let (key, secret) = keys.mint(new_key("a"), &Actor::host(), NOW).await.unwrap();
    keys.authenticate(secret.expose(), NOW).await.unwrap();
    revoke_elsewhere(&store, &key).await;
    tokio::time::advance(Duration::from_millis(499)).await;
    let within = keys.authenticate(secret.expose(), NOW).await;
    assert!(within.is_ok(), "the epoch is read twice a second");
    tokio::time::advance(Duration::from_millis(1)).await;
    let after = keys.authenticate(secret.expose(), NOW).await;
    assert_eq!(
        after,
        Err(AuthenticateError::Unauthenticated(Unauthenticated::Revoked))
    );
}

async fn revoke_in(store: &FakeKeys, key: &KeyRecord) {
    let id = key.key_id.clone();
    let choose = move |_: &[KeyRecord]| {
        let by = Actor::host();
        let audit = AuditDraft::new(NOW, Some(&tenant()), &by, "key.revoked", &id, Object::new());
        vec![(id.clone(), audit)]
    };
    let revoked = store.revoke_keys(&tenant(), NOW, Box::new(choose)).await;
    assert_eq!(revoked, Ok(vec![key.key_id.clone()]));
}

/// Another process on the same store revokes the key.
async fn revoke_elsewhere(store: &FakeKeys, key: &KeyRecord) {
    revoke_in(store, key).await;
    store.epoch.fetch_add(1, Ordering::Relaxed);
}

#[tokio::test(start_paused = true)]
async fn remote_revocation_ends_what_uses_the_key() {
    let (keys, store) = keyring();
    let (sessions, codes) = (Sessions::new(60_000), LoginCodes::new(60_000));
    let mut used = Vec::new();
    for name in ["revoked", "kept"] {
        let (key, secret) = keys.mint(new_key(name), &Actor::host(), NOW).await.unwrap();
        let identity = keys.authenticate(secret.expose(), NOW).await.unwrap();
        let stream = keys.listen(&identity, secret.expose(), NOW).await.unwrap();
        let session = sessions.open(identity.clone(), NOW);
        let code = codes.mint(identity, NOW);
        used.push((key, stream, session, code));
    }
    let ended = |used: &(KeyRecord, EndSignal, OpenedSession, Secret)| {
        [used.1.has_ended(), !sessions.is_open(&used.2.session, NOW)]
    };
    keys.end_revoked(&sessions, &codes).await.unwrap();
    revoke_elsewhere(&store, &used[0].0).await;
    keys.end_revoked(&sessions, &codes).await.unwrap();
    assert_eq!(
        ended(&used[0]),
        [false; 2],
        "the epoch is read twice a second"
    );
    tokio::time::advance(Duration::from_millis(500)).await;

    // The epoch is read, the keys are not: the next call tries again.
    keys.authenticate("another secret", NOW).await.unwrap_err();
    store.broken.store(true, Ordering::Relaxed);
    keys.end_revoked(&sessions, &codes).await.unwrap_err();
    assert_eq!(ended(&used[0]), [false; 2]);
    store.broken.store(false, Ordering::Relaxed);
    keys.end_revoked(&sessions, &codes).await.unwrap();
    assert_eq!([ended(&used[0]), ended(&used[1])], [[true; 2], [false; 2]]);
    assert!(codes.redeem(used[0].3.expose(), NOW).is_none());
    assert!(codes.redeem(used[1].3.expose(), NOW).is_some());
}
