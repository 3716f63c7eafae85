//! API keys: created, imported, authenticated, listed, rotated, revoked.
//!
//! A rotation creates a second key for the same principal. Both work until the old one is revoked
//! or expires. A deployment can swap a key in that time without an outage.

use crate::Scope;
use crate::authority;
use crate::bearer::{MAX_CREDENTIAL_BYTES, is_presentable};
use crate::cache::Cache;
use crate::digest::Digest;
use crate::end_signal::{EndSignal, Listeners};
use crate::identity::{Identity, key_tenants};
use crate::key_draft::{KeyDraft, MAX_NAME_CHARS, NewKey};
use crate::key_epoch::KeyEpoch;
use crate::login::LoginCodes;
use crate::principal_name::{PrincipalNameError, check_new_principal};
use crate::principal_scope_cache::{PrincipalScopeCache, later_expiry};
use crate::revocation::{Revocation, RevokedKeys};
use crate::secret::{MIN_SECRET_BYTES, Secret, TEST_PREFIX};
use crate::sessions::Sessions;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tandem_record::{Actor, Object, Partition, Principal, TenantId, Timestamp};
use tandem_store::{
    AuditDraft, CachedData, ChooseKeys, Commit, Error, Fault, IdempotencyRecord, KeyRecord, Keys,
    MAKER_REVOKED,
};
use tokio::time::Instant;

/// Why a credential is not accepted. The caller can correct it; a store fault is never reported
/// this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    #[error("no Authorization header")]
    Missing,
    #[error("the Authorization header is not `Bearer <key>`")]
    Malformed,
    #[error("the key is not known")]
    Unknown,
    #[error("the key has expired")]
    Expired,
    #[error("the key has been revoked")]
    Revoked,
}

/// A store fault must not look like a wrong key: the caller can correct only the latter.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AuthenticateError {
    #[error(transparent)]
    Unauthenticated(#[from] Unauthenticated),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Why a key was not created.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KeyError {
    #[error("the secret is too short: at least {MIN_SECRET_BYTES} characters are needed")]
    WeakSecret,
    #[error(
        "the secret cannot be sent in a header: at most {MAX_CREDENTIAL_BYTES} visible ASCII \
         characters without spaces"
    )]
    UnusableSecret,
    #[error("the key would already be expired")]
    AlreadyExpired,
    /// Such a name would stand for every tenant, workspace or agent.
    #[error("a tenant, workspace or agent needs a name of 1 to {MAX_NAME_CHARS} characters")]
    InvalidName,
    #[error("the name of the principal {0}")]
    PrincipalName(#[from] PrincipalNameError),
    #[error("there is no such key")]
    NotFound,
    /// Another request with the same idempotency key made its key first.
    #[error("the idempotency key has been used")]
    IdempotencyKeyUsed,
    /// An inactive key cannot be rotated.
    #[error("the key is revoked or expired; make a new one instead")]
    Inactive,
    /// The maker was revoked while it made the key.
    #[error("the key that makes this one has been revoked")]
    MakerRevoked,
    #[error(transparent)]
    Fault(#[from] Fault),
}

pub struct Keyring {
    store: Arc<dyn Keys>,
    cache: Cache,
    listeners: Listeners,
    principal_scopes: PrincipalScopeCache,
    epoch: KeyEpoch,
    /// Ids of keys that the operator's configuration names.
    configured: Mutex<HashSet<String>>,
}

impl Keyring {
    pub fn new(store: Arc<dyn Keys>) -> Self {
        Self {
            store,
            cache: Cache::default(),
            listeners: Listeners::default(),
            principal_scopes: PrincipalScopeCache::default(),
            epoch: KeyEpoch::default(),
            configured: Mutex::default(),
        }
    }

    /// Creates a key. The secret exists only in the return value.
    pub async fn mint(
        &self,
        new: NewKey,
        by: &Actor,
        now: Timestamp,
    ) -> Result<(KeyRecord, Secret), KeyError> {
        let (draft, secret) = KeyDraft::with_new_secret(new, by, now)?;
        Ok((self.create(draft, None).await?, secret))
    }

    /// Registers a secret the operator chose. Importing the same secret again changes nothing and
    /// returns the record as it is, even if revoked: a restart must not reactivate a revoked key.
    /// The audit log names the host as the actor.
    pub async fn import(
        &self,
        secret: &str,
        mut new: NewKey,
        now: Timestamp,
    ) -> Result<KeyRecord, KeyError> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(KeyError::WeakSecret);
        }
        if !is_presentable(secret) {
            return Err(KeyError::UnusableSecret);
        }
        let digest = Digest::of(secret);
        let record = match self.store.key_by_hash(&digest.to_hex()).await? {
            Some(existing) => existing,
            None => {
                new.test |= secret.starts_with(TEST_PREFIX);
                let draft = KeyDraft::new(digest, new, None, &Actor::host(), now)?;
                self.create(draft, None).await?
            }
        };
        self.configured.lock().insert(record.key_id.clone());
        Ok(record)
    }

    /// Stores a drafted key, in one commit with the response to the request that makes it.
    pub async fn create(
        &self,
        draft: KeyDraft,
        response: Option<IdempotencyRecord>,
    ) -> Result<KeyRecord, KeyError> {
        let KeyDraft { record, audit } = draft;
        let commit = Commit {
            tenant: Some(record.tenant.clone()),
            key: Some(record.clone()),
            audit: vec![audit],
            idempotency: response.into_iter().collect(),
            ..Commit::default()
        };
        let stored = self.store.commit(commit).await;
        // Also after a fault: the store may have made the key before it failed.
        self.principal_scopes.clear();
        match stored {
            Ok(_) => Ok(record),
            Err(Error::Conflict(_)) => Err(KeyError::IdempotencyKeyUsed),
            Err(Error::Fault(fault)) if fault.code == MAKER_REVOKED => Err(KeyError::MakerRevoked),
            Err(Error::Fault(fault)) => Err(fault.into()),
        }
    }

    /// Refuses a new principal of a tenant whose name could pass for another one.
    pub async fn check_new_principal(
        &self,
        tenant: &TenantId,
        principal: &Principal,
    ) -> Result<(), KeyError> {
        let keys = self.store.list_keys(Some(tenant)).await?;
        // Revoked keys too: what their principals decided is still read.
        let existing = keys.iter().map(|key| &key.principal);
        Ok(check_new_principal(principal, existing)?)
    }

    /// The key of a tenant that no other principal may revoke; see [`authority::protected`].
    pub async fn protected(
        &self,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Result<Option<KeyRecord>, Fault> {
        let keys = self.store.list_keys(Some(tenant)).await?;
        let configured = self.configured.lock().clone();
        Ok(authority::protected(
            keys,
            |id| configured.contains(id),
            now,
        ))
    }

    /// Whether a principal has a good key with this scope that covers the partition, and not only one agent. What was set up
    /// in its name and goes on without it, such as a subscription, a callback or a link, checks this
    /// before it acts. Changes of keys through this process count at once, others within a second.
    pub async fn holds_scope(
        &self,
        principal: &Principal,
        scope: Scope,
        of: &Partition,
        now: Timestamp,
    ) -> Result<bool, Fault> {
        self.follow_epoch().await;
        let cache_key = (principal.clone(), scope, of.clone());
        let epoch_at_read = match self.principal_scopes.get(&cache_key, now) {
            Ok(cached) => return Ok(cached.is_some_and(|end| !has_ended(end, now))),
            Err(epoch_at_read) => epoch_at_read,
        };
        let mut end = None;
        for tenant in key_tenants(&of.tenant) {
            let keys = self.store.list_keys(Some(&tenant)).await?;
            for identity in keys.iter().filter_map(|key| good_key(key, principal, now)) {
                if covers(&identity, scope, of) {
                    end = later_expiry(end, Some(identity.expires_at));
                }
            }
        }
        self.principal_scopes
            .put(cache_key, end, epoch_at_read, now);
        Ok(end.is_some())
    }

    /// A principal with the roles of its good keys that have this scope and cover the partition, and not only one agent;
    /// `None` without such a key. For somebody who proves in another way than with a key who they are.
    pub async fn identity_of(
        &self,
        principal: &Principal,
        scope: Scope,
        of: &Partition,
        now: Timestamp,
    ) -> Result<Option<Identity>, Fault> {
        let mut found: Option<Identity> = None;
        for tenant in key_tenants(&of.tenant) {
            let keys = self.store.list_keys(Some(&tenant)).await?;
            for identity in keys.iter().filter_map(|key| good_key(key, principal, now)) {
                if !covers(&identity, scope, of) {
                    continue;
                }
                let roles = found.iter().flat_map(|known| known.roles.iter());
                let mut roles: BTreeSet<String> = roles.cloned().collect();
                roles.extend(identity.roles.iter().cloned());
                found = Some(Identity {
                    roles: roles.into_iter().collect(),
                    ..found.unwrap_or(identity)
                });
            }
        }
        Ok(found)
    }

    /// Clears the caches if another process changed keys. While the store does not answer, entries
    /// live out their time.
    async fn follow_epoch(&self) {
        if self.epoch.is_fresh() {
            return;
        }
        let at = Instant::now();
        if let Ok(epoch) = self.store.epoch(CachedData::Keys).await {
            self.epoch.see(epoch, at, || {
                self.cache.clear();
                self.principal_scopes.clear();
            });
        }
    }

    /// Ends what still uses a key that another process revoked: its streams, sessions and login codes. Reads
    /// the store twice a second at most, however often it is called. A fault changes nothing; the next call
    /// tries again.
    pub async fn end_revoked(&self, sessions: &Sessions, codes: &LoginCodes) -> Result<(), Fault> {
        self.follow_epoch().await;
        let epoch = self.epoch.seen();
        let mut checked = self.epoch.checked.lock().await;
        if *checked == epoch {
            return Ok(());
        }
        // The caches are clear: whoever uses a key from now on reads the store first.
        let mut used = self.listeners.keys();
        used.extend(sessions.keys());
        used.extend(codes.keys());
        let tenants: BTreeSet<&TenantId> = used.iter().map(|(tenant, _)| tenant).collect();
        for tenant in tenants {
            let mut keys = self.store.list_keys(Some(tenant)).await?;
            keys.retain(|key| key.revoked_at.is_some());
            let revoked: HashSet<&str> = keys.iter().map(|key| key.key_id.as_str()).collect();
            let of_tenant = used.iter().filter(|(of, _)| of == tenant);
            for (_, key_id) in of_tenant.filter(|(_, key_id)| revoked.contains(&**key_id)) {
                self.listeners.end(key_id);
                codes.remove_key(key_id);
                sessions.close_for_key(key_id);
            }
        }
        *checked = epoch;
        Ok(())
    }

    /// Authenticates a credential.
    pub async fn authenticate(
        &self,
        presented: &str,
        now: Timestamp,
    ) -> Result<Identity, AuthenticateError> {
        if presented.len() > MAX_CREDENTIAL_BYTES {
            return Err(Unauthenticated::Unknown.into());
        }
        self.follow_epoch().await;
        let digest = Digest::of(presented);
        let epoch_at_read = match self.cache.get(&digest, now) {
            Ok(identity) => return Ok(unexpired(identity, now)?),
            Err(epoch_at_read) => epoch_at_read,
        };
        let record = self.store.key_by_hash(&digest.to_hex()).await?;
        // The store's lookup need not compare in constant time or by exact case; this comparison
        // does.
        let record = record
            .filter(|record| digest.matches_hex(&record.hash))
            .ok_or(Unauthenticated::Unknown)?;
        if record.revoked_at.is_some() {
            return Err(Unauthenticated::Revoked.into());
        }
        let identity = unexpired(Identity::of_key(&record), now)?;
        self.cache
            .put(digest, identity.clone(), &epoch_at_read, now);
        Ok(identity)
    }

    /// Oldest first; hashes are part of the record and must not be shown.
    pub async fn list(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault> {
        self.store.list_keys(tenant).await
    }

    /// `false` when the tenant has no such key. Takes effect here at once, and in other processes
    /// on the same store within a second. What the key made stays.
    pub async fn revoke(
        &self,
        tenant: &TenantId,
        key_id: &str,
        by: &Actor,
        now: Timestamp,
    ) -> Result<bool, Fault> {
        let (of, id, actor) = (tenant.clone(), key_id.to_owned(), by.clone());
        let choose: ChooseKeys = Box::new(move |keys| {
            let found = keys.iter().filter(|key| key.key_id == id);
            let audited =
                |key: &KeyRecord| key_revoked(&of, &key.key_id, &actor, now, Object::new());
            found.map(audited).collect()
        });
        let revoked = self.store.revoke_keys(tenant, now, choose).await;
        // Also after a fault: the store may have revoked the key before it failed.
        self.cache.remove_key(key_id);
        // Without such a key no stream ends.
        if !matches!(&revoked, Ok(ids) if ids.is_empty()) {
            self.listeners.end(key_id);
        }
        self.principal_scopes.clear();
        Ok(!revoked?.is_empty())
    }

    /// Revokes a key and the keys it made, as [`Revocation`] tells, in one transaction.
    pub async fn revoke_with_made(
        &self,
        revocation: Revocation,
        by: &Actor,
        now: Timestamp,
    ) -> Result<RevokedKeys, Fault> {
        let tenant = revocation.key.tenant.clone();
        let first = revocation.key.key_id.clone();
        let (of, actor, plan) = (tenant.clone(), by.clone(), revocation.clone());
        let choose: ChooseKeys = Box::new(move |keys| {
            let because = || Object::from_iter([("with".to_owned(), json!(plan.key.key_id))]);
            let also = plan.also_revoked(keys, now);
            let itself = [(plan.key.key_id.clone(), Object::new())];
            let all = itself
                .into_iter()
                .chain(also.into_iter().map(|id| (id, because())));
            all.map(|(id, details)| key_revoked(&of, &id, &actor, now, details))
                .collect()
        });
        let revoked = self.store.revoke_keys(&tenant, now, choose).await;
        self.principal_scopes.clear();
        let Ok(ids) = &revoked else {
            // The store may have revoked them before it failed.
            self.cache.clear();
            self.listeners.end(&first);
            return Err(revoked.expect_err("it is no Ok"));
        };
        for id in ids {
            self.cache.remove_key(id);
            self.listeners.end(id);
        }
        let keys = self.store.list_keys(Some(&tenant)).await?;
        let also = ids.iter().filter(|id| **id != first).cloned().collect();
        let kept = revocation.good_made(&keys, now);
        Ok(RevokedKeys { also, kept })
    }

    /// A signal for the revocation of the key of `identity`, which was just authenticated with
    /// `secret`. The listener checks expiry itself.
    pub async fn listen(
        &self,
        identity: &Identity,
        secret: &str,
        now: Timestamp,
    ) -> Result<EndSignal, AuthenticateError> {
        let ended = self.listeners.listen(identity);
        // The key may have been revoked before the listener was registered.
        self.authenticate(secret, now).await?;
        Ok(ended)
    }

    /// Drafts another key for the same principal, with the same tenant, scopes and roles. The old key is
    /// not changed.
    pub async fn draft_rotation(
        &self,
        tenant: &TenantId,
        key_id: &str,
        expires_at: Option<Timestamp>,
        by: &Actor,
        now: Timestamp,
    ) -> Result<(KeyDraft, Secret), KeyError> {
        let old = self
            .store
            .list_keys(Some(tenant))
            .await?
            .into_iter()
            .find(|record| record.key_id == key_id)
            .ok_or(KeyError::NotFound)?;
        if old.revoked_at.is_some() || has_ended(old.expires_at, now) {
            return Err(KeyError::Inactive);
        }
        KeyDraft::rotating(&old, expires_at, by, now)
    }

    #[cfg(test)]
    pub(crate) fn cached(&self) -> usize {
        self.cache.len()
    }
}

/// The identity of a key of this principal that is neither revoked nor expired.
fn good_key(key: &KeyRecord, principal: &Principal, now: Timestamp) -> Option<Identity> {
    let is_good =
        key.principal == *principal && key.revoked_at.is_none() && !has_ended(key.expires_at, now);
    is_good.then(|| Identity::of_key(key))
}

fn covers(identity: &Identity, scope: Scope, of: &Partition) -> bool {
    let is_bound = identity.agent.is_some();
    let has_scope = identity.require_scope(scope).is_ok();
    !is_bound && has_scope && identity.partition().covers(of)
}

fn key_revoked(
    tenant: &TenantId,
    key_id: &str,
    by: &Actor,
    now: Timestamp,
    details: Object,
) -> (String, AuditDraft) {
    let audit = AuditDraft::new(now, Some(tenant), by, "key.revoked", key_id, details);
    (key_id.to_owned(), audit)
}

fn unexpired(identity: Identity, now: Timestamp) -> Result<Identity, Unauthenticated> {
    if has_ended(identity.expires_at, now) {
        return Err(Unauthenticated::Expired);
    }
    Ok(identity)
}

pub(crate) fn has_ended(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|at| at <= now)
}
