//! Keys to be made: their properties are checked, and their record and audit entry drafted. Nothing is
//! stored here.

use crate::digest::Digest;
use crate::identity::{Identity, LIVE_ID, TEST_ID};
use crate::keyring::KeyError;
use crate::secret::{LIVE_PREFIX, Secret, TEST_PREFIX, random_bytes, random_token};
use crate::{Scope, ScopeSet};
use serde_json::json;
use tandem_record::{
    Actor, AgentId, AuthMethod, Object, Principal, TenantId, Timestamp, WorkspaceId,
};
use tandem_store::{AuditDraft, KeyRecord};

/// Longest name of a tenant or workspace.
pub(crate) const MAX_NAME_CHARS: usize = 256;

/// The properties of a key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    /// The only agent the key is good for.
    pub agent: Option<AgentId>,
    /// The principal of the key; a new one when `None`.
    pub principal: Option<Principal>,
    pub scopes: ScopeSet,
    pub roles: Vec<String>,
    pub expires_at: Option<Timestamp>,
    pub test: bool,
}

impl NewKey {
    /// A key like this one for the same principal, that ends at another time.
    pub fn like(key: &KeyRecord, expires_at: Option<Timestamp>) -> Self {
        let identity = Identity::of_key(key);
        Self {
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            workspace: key.workspace.clone(),
            agent: key.agent.clone(),
            principal: Some(key.principal.clone()),
            scopes: identity.scopes,
            roles: key.roles.clone(),
            expires_at,
            test: identity.test_key,
        }
    }

    /// A live key that never expires, for `tenant`, with the given scopes.
    pub fn new(
        name: impl Into<String>,
        tenant: TenantId,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Self {
        Self {
            name: name.into(),
            tenant,
            workspace: None,
            agent: None,
            principal: None,
            scopes: scopes.into_iter().collect(),
            roles: Vec::new(),
            expires_at: None,
            test: false,
        }
    }
}

/// A key that is not stored yet, with its audit entry.
#[derive(Debug)]
pub struct KeyDraft {
    pub(crate) record: KeyRecord,
    pub(crate) audit: AuditDraft,
}

impl KeyDraft {
    /// A key with a new secret, which exists only in the return value.
    pub fn with_new_secret(
        new: NewKey,
        by: &Actor,
        now: Timestamp,
    ) -> Result<(Self, Secret), KeyError> {
        Self::replacing(new, None, by, now)
    }

    /// A second key for the principal of `old`.
    pub(crate) fn rotating(
        old: &KeyRecord,
        expires_at: Option<Timestamp>,
        by: &Actor,
        now: Timestamp,
    ) -> Result<(Self, Secret), KeyError> {
        let new = NewKey::like(old, expires_at);
        Self::replacing(new, Some(&old.key_id), by, now)
    }

    fn replacing(
        new: NewKey,
        rotated: Option<&str>,
        by: &Actor,
        now: Timestamp,
    ) -> Result<(Self, Secret), KeyError> {
        let prefix = if new.test { TEST_PREFIX } else { LIVE_PREFIX };
        let secret = Secret::new(format!("{prefix}{}", random_token()));
        let digest = Digest::of(secret.expose());
        Ok((Self::new(digest, new, rotated, by, now)?, secret))
    }

    pub(crate) fn new(
        digest: Digest,
        new: NewKey,
        rotated: Option<&str>,
        by: &Actor,
        now: Timestamp,
    ) -> Result<Self, KeyError> {
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(KeyError::AlreadyExpired);
        }
        let names = [
            Some(new.tenant.as_str()),
            new.workspace.as_ref().map(AsRef::as_ref),
            new.agent.as_ref().map(AsRef::as_ref),
        ];
        let is_name = |name: &str| (1..=MAX_NAME_CHARS).contains(&name.chars().count());
        if !names.into_iter().flatten().all(is_name) {
            return Err(KeyError::InvalidName);
        }
        let kind = if new.test { TEST_ID } else { LIVE_ID };
        let key_id = format!("{kind}{:016x}", u64::from_be_bytes(random_bytes()));
        let record = KeyRecord {
            hash: digest.to_hex(),
            name: new.name,
            tenant: new.tenant,
            workspace: new.workspace,
            principal: new.principal.unwrap_or_else(|| Principal::new(&key_id)),
            scopes: new.scopes.to_stored(),
            roles: new.roles,
            created_at: now,
            expires_at: new.expires_at,
            revoked_at: None,
            made_by: match &by.auth_method {
                AuthMethod::Key(maker) => Some(maker.to_string()),
                AuthMethod::Host | AuthMethod::Link => None,
            },
            rotates: rotated.map(str::to_owned),
            agent: new.agent,
            key_id,
        };
        let audit = key_created_draft(&record, by, now);
        Ok(Self { record, audit })
    }

    /// The key as it will be stored.
    pub fn record(&self) -> &KeyRecord {
        &self.record
    }
}

/// The audit entry of a new key: its permissions, never its secret.
fn key_created_draft(key: &KeyRecord, by: &Actor, now: Timestamp) -> AuditDraft {
    let mut details = Object::new();
    details.insert("holder".to_owned(), json!(key.principal));
    details.insert("scopes".to_owned(), json!(key.scopes));
    details.insert("roles".to_owned(), json!(key.roles));
    if let Some(workspace) = &key.workspace {
        details.insert("workspace".to_owned(), json!(workspace));
    }
    if let Some(agent) = &key.agent {
        details.insert("agent".to_owned(), json!(agent));
    }
    if let Some(old) = &key.rotates {
        details.insert("rotates".to_owned(), json!(old));
    }
    let tenant = Some(&key.tenant);
    AuditDraft::new(now, tenant, by, "key.created", &key.key_id, details)
}
