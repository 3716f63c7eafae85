use super::{NOW, keyring, new_key, tenant};
use crate::{AuthenticateError, KeyError, MAX_CREDENTIAL_BYTES, Scope, Unauthenticated};
use std::sync::atomic::Ordering;
use tandem_record::{Actor, Partition, TenantId};

fn refused(why: Unauthenticated) -> AuthenticateError {
    AuthenticateError::Unauthenticated(why)
}

#[tokio::test]
async fn a_minted_key_is_recognised_and_only_its_hash_is_stored() {
    let (keys, store) = keyring();
    let mut new = new_key("ci");
    new.workspace = Some("ws-1".into());
    new.roles = vec!["conformance".into()];
    let (record, secret) = keys.mint(new, &Actor::host(), NOW).await.unwrap();

    let text = secret.expose();
    assert!(text.starts_with("tdm_live_"));
    assert_eq!(text.len(), "tdm_live_".len() + 43);
    assert_eq!(record.hash.len(), 64);
    let stored = format!("{:?}", store.records.lock());
    assert!(!stored.contains(&text["tdm_live_".len()..]));

    let caller = keys.authenticate(text, NOW).await.unwrap();
    assert_eq!(&*caller.key_id, record.key_id);
    assert_eq!(caller.principal, record.principal);
    assert_eq!(caller.owner().workspace, Some("ws-1".into()));
    assert!(caller.has_role("conformance") && !caller.test_key);
    assert!(caller.require_scope(Scope::RunsRead).is_ok());
    assert!(caller.require_scope(Scope::RunsCancel).is_err());
}

#[tokio::test]
async fn test_keys_are_distinguished_from_live_keys() {
    let (keys, _) = keyring();
    let mut new = new_key("ci");
    new.test = true;
    let (record, secret) = keys.mint(new, &Actor::host(), NOW).await.unwrap();
    assert!(secret.expose().starts_with("tdm_test_"));
    assert!(record.key_id.starts_with("key_test_"));
    let caller = keys.authenticate(secret.expose(), NOW).await.unwrap();
    assert!(caller.test_key);

    let imported = "tdm_test_0123456789";
    keys.import(imported, new_key("ci"), NOW).await.unwrap();
    assert!(keys.authenticate(imported, NOW).await.unwrap().test_key);
}

#[tokio::test]
async fn secrets_never_show_in_debug_output() {
    let (keys, _) = keyring();
    let (record, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    assert_eq!(format!("{secret:?}"), "Secret(…)");
    assert_eq!(format!("{:#?}", Some(&secret)), "Some(\n    Secret(…),\n)");
    let caller = keys.authenticate(secret.expose(), NOW).await.unwrap();
    let shown = format!("{record:?} {caller:?}");
    assert!(!shown.contains(&secret.expose()["tdm_live_".len()..]));
}

#[tokio::test]
async fn unknown_credentials_are_rejected() {
    let (keys, store) = keyring();
    let (_, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    let almost = &secret.expose()[..secret.expose().len() - 1];
    for presented in ["", "tdm_live_", almost, "x"] {
        assert_eq!(
            keys.authenticate(presented, NOW).await,
            Err(refused(Unauthenticated::Unknown)),
        );
    }
    let reads = store.reads();
    let huge = "x".repeat(MAX_CREDENTIAL_BYTES + 1);
    assert_eq!(
        keys.authenticate(&huge, NOW).await,
        Err(refused(Unauthenticated::Unknown)),
    );
    assert_eq!(
        store.reads(),
        reads,
        "an oversized credential is not looked up"
    );
}

#[tokio::test]
async fn the_hash_is_compared_again_after_the_lookup() {
    let (keys, store) = keyring();
    let (_, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    // The fake store still finds the record; the exact comparison does not.
    for record in store.records.lock().iter_mut() {
        record.hash.make_ascii_uppercase();
    }
    assert_eq!(
        keys.authenticate(secret.expose(), NOW).await,
        Err(refused(Unauthenticated::Unknown)),
    );
}

#[tokio::test]
async fn a_key_ends_at_the_moment_it_expires() {
    let (keys, _) = keyring();
    let mut new = new_key("ci");
    new.expires_at = Some(NOW.plus_ms(1_000));
    let (_, secret) = keys.mint(new.clone(), &Actor::host(), NOW).await.unwrap();
    let text = secret.expose();
    assert!(keys.authenticate(text, NOW.plus_ms(999)).await.is_ok());
    // The key is still cached, but its expiry is checked against the time of this request.
    for later in [1_000, 1_001, 60_000] {
        assert_eq!(
            keys.authenticate(text, NOW.plus_ms(later)).await,
            Err(refused(Unauthenticated::Expired)),
        );
    }
    assert_eq!(
        keys.mint(new, &Actor::host(), NOW.plus_ms(1_000))
            .await
            .unwrap_err(),
        KeyError::AlreadyExpired,
    );
}

#[tokio::test]
async fn rotation_retains_the_principal_and_both_keys_work_until_revocation() {
    let (keys, _) = keyring();
    let mut new = new_key("ci");
    new.roles = vec!["ops".into()];
    new.test = true;
    let (old, old_secret) = keys.mint(new, &Actor::host(), NOW).await.unwrap();
    let later = NOW.plus_ms(10);
    let until = Some(NOW.plus_ms(99_000));
    let (draft, fresh_secret) = keys
        .draft_rotation(&tenant(), &old.key_id, until, &Actor::host(), later)
        .await
        .unwrap();
    let fresh = keys.create(draft, None).await.unwrap();
    assert_ne!(fresh.key_id, old.key_id);
    assert_eq!(fresh.expires_at, until);

    let before = keys.authenticate(old_secret.expose(), later).await.unwrap();
    let after = keys
        .authenticate(fresh_secret.expose(), later)
        .await
        .unwrap();
    assert_eq!(before.principal, after.principal);
    assert_eq!((before.scopes, &before.roles), (after.scopes, &after.roles));
    assert!(after.test_key);

    assert!(
        keys.revoke(&tenant(), &old.key_id, &Actor::host(), later)
            .await
            .unwrap()
    );
    assert_eq!(
        keys.authenticate(old_secret.expose(), later).await,
        Err(refused(Unauthenticated::Revoked)),
    );
    assert!(
        keys.authenticate(fresh_secret.expose(), later)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn inactive_key_or_key_of_another_tenant_is_not_rotated() {
    let (keys, _) = keyring();
    let (record, _) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    let elsewhere = TenantId::new("tenant2");
    let rotated = keys
        .draft_rotation(&elsewhere, &record.key_id, None, &Actor::host(), NOW)
        .await;
    assert_eq!(rotated.unwrap_err(), KeyError::NotFound);
    assert!(
        !keys
            .revoke(&elsewhere, &record.key_id, &Actor::host(), NOW)
            .await
            .unwrap()
    );

    keys.revoke(&tenant(), &record.key_id, &Actor::host(), NOW)
        .await
        .unwrap();
    let rotated = keys
        .draft_rotation(&tenant(), &record.key_id, None, &Actor::host(), NOW)
        .await;
    assert_eq!(rotated.unwrap_err(), KeyError::Inactive);
}

#[tokio::test]
async fn importing_again_returns_the_existing_record_even_if_revoked() {
    let (keys, store) = keyring();
    let secret = "an-operators-own-secret";
    let first = keys
        .import(secret, new_key("bootstrap"), NOW)
        .await
        .unwrap();
    let again = keys
        .import(secret, new_key("renamed"), NOW.plus_ms(5))
        .await
        .unwrap();
    assert_eq!(first, again);
    assert_eq!(store.records.lock().len(), 1);
    assert!(keys.authenticate(secret, NOW).await.is_ok());

    keys.revoke(&tenant(), &first.key_id, &Actor::host(), NOW)
        .await
        .unwrap();
    let still = keys.import(secret, new_key("x"), NOW).await.unwrap();
    assert_eq!(still.revoked_at, Some(NOW));
    assert_eq!(
        keys.authenticate(secret, NOW).await,
        Err(refused(Unauthenticated::Revoked)),
    );
}

#[tokio::test]
async fn weak_and_unusable_secrets_are_refused() {
    let (keys, store) = keyring();
    let long = "k".repeat(MAX_CREDENTIAL_BYTES + 1);
    for (secret, expected) in [
        ("", KeyError::WeakSecret),
        ("fifteen-letters", KeyError::WeakSecret),
        ("has a space in it", KeyError::UnusableSecret),
        ("newline-at-the-end\n", KeyError::UnusableSecret),
        (long.as_str(), KeyError::UnusableSecret),
    ] {
        let error = keys.import(secret, new_key("x"), NOW).await.unwrap_err();
        assert_eq!(error, expected);
        assert!(secret.is_empty() || !error.to_string().contains(secret));
    }
    assert!(store.records.lock().is_empty());
    assert!(
        keys.import("sixteen-letters!", new_key("x"), NOW)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn store_fault_is_not_reported_as_a_wrong_key() {
    let (keys, store) = keyring();
    let (_, secret) = keys.mint(new_key("ci"), &Actor::host(), NOW).await.unwrap();
    store.broken.store(true, Ordering::Relaxed);
    let answer = keys.authenticate(secret.expose(), NOW).await;
    assert!(matches!(answer, Err(AuthenticateError::Fault(fault)) if fault.retryable));
}

#[tokio::test]
async fn listing_is_by_tenant() {
    let (keys, _) = keyring();
    keys.mint(new_key("one"), &Actor::host(), NOW)
        .await
        .unwrap();
    let mut other = new_key("two");
    other.tenant = "tenant2".into();
    keys.mint(other, &Actor::host(), NOW).await.unwrap();
    assert_eq!(keys.list(Some(&tenant())).await.unwrap().len(), 1);
    assert_eq!(keys.list(None).await.unwrap().len(), 2);
}

#[tokio::test]
async fn listener_is_signalled_on_revocation_only() {
    let (keys, _) = keyring();
    let (one, secret) = keys.mint(new_key("a"), &Actor::host(), NOW).await.unwrap();
    let (other, _) = keys.mint(new_key("b"), &Actor::host(), NOW).await.unwrap();
    let who = keys.authenticate(secret.expose(), NOW).await.unwrap();
    let ended = keys.listen(&who, secret.expose(), NOW).await.unwrap();
    let revoke = |tenant, id| {
        let keys = &keys;
        async move { keys.revoke(&tenant, id, &Actor::host(), NOW).await.unwrap() }
    };
    assert!(revoke(tenant(), &other.key_id).await);
    assert!(!revoke(TenantId::new("elsewhere"), &one.key_id).await);
    assert!(!ended.has_ended(), "another key, another tenant's try");
    assert!(revoke(tenant(), &one.key_id).await);
    assert!(ended.has_ended());
    let late = keys.listen(&who, secret.expose(), NOW).await;
    let revoked = AuthenticateError::Unauthenticated(Unauthenticated::Revoked);
    assert_eq!(late.unwrap_err(), revoked, "it was too late to listen");
}

#[tokio::test]
async fn a_principal_may_read_as_long_as_one_of_its_keys_may() {
    let (keys, _) = keyring();
    let of = |tenant: &str, workspace: Option<&str>| Partition {
        tenant: tenant.into(),
        workspace: workspace.map(Into::into),
    };
    let own = of(tenant().as_str(), None);
    let red = of(tenant().as_str(), Some("red"));
    let reads = async |of: &Partition, ms: u64| {
        let now = NOW.plus_ms(ms);
        keys.holds_scope(&"ana".into(), Scope::RunsRead, of, now)
            .await
    };
    assert_eq!(reads(&own, 0).await, Ok(false), "without any key");
    let make = async |scope: Scope, workspace: Option<&str>, end: Option<u64>, test: bool| {
        let mut new = new_key("ana");
        new.scopes = [scope].into_iter().collect();
        new.principal = Some("ana".into());
        new.workspace = workspace.map(Into::into);
        new.expires_at = end.map(|ms| NOW.plus_ms(ms));
        new.test = test;
        let (record, _) = keys.mint(new, &Actor::host(), NOW).await.unwrap();
        record.key_id
    };
    make(Scope::WebhooksManage, None, None, false).await;
    assert_eq!(reads(&own, 0).await, Ok(false), "another scope");
    make(Scope::RunsRead, Some("red"), None, false).await;
    assert_eq!(reads(&red, 0).await, Ok(true));
    assert_eq!(reads(&own, 0).await, Ok(false), "another workspace");
    make(Scope::RunsRead, None, Some(2_000), false).await;
    assert_eq!(reads(&own, 1_999).await, Ok(true));
    assert_eq!(
        reads(&own, 2_000).await,
        Ok(false),
        "it ended, remembered or not"
    );
    let test_side = of(&format!("{}~test", tenant()), None);
    assert_eq!(reads(&test_side, 0).await, Ok(false), "the other side");
    let tester = make(Scope::RunsRead, None, None, true).await;
    assert_eq!(reads(&test_side, 0).await, Ok(true));
    let by = Actor::host();
    assert_eq!(keys.revoke(&tenant(), &tester, &by, NOW).await, Ok(true));
    assert_eq!(reads(&test_side, 0).await, Ok(false), "revoked, at once");
    assert_eq!(reads(&of("rival", None), 0).await, Ok(false));
}
