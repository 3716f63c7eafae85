//! The caller, as far as the host cares: where they belong, who acts, what they may do.

use crate::{Scope, ScopeSet};
use std::sync::Arc;
use tandem_record::{
    Actor, AuthMethod, Owner, Partition, Principal, TenantId, Timestamp, WorkspaceId,
};
use tandem_store::KeyRecord;

/// Cheap to clone, and free of secrets: it may be logged.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The key that was presented; safe to log and to audit.
    pub key_id: Arc<str>,
    /// Shared by every key of one rotation, so that who acts outlives a key.
    pub principal: Principal,
    /// Whose data it may touch.
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    pub scopes: ScopeSet,
    pub roles: Arc<[String]>,
    /// Test keys must not touch live data, nor the reverse.
    pub test_key: bool,
    /// When the key behind this identity ends; a browser session ends with it.
    pub expires_at: Option<Timestamp>,
}

/// The key is good but lacks a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key lacks the scope {scope}")]
pub struct Denied {
    pub scope: Scope,
}

/// Which kind of key a stored record is. The record has no column for it, so the key's public id
/// says it, as the secret's prefix does to its holder.
pub(crate) const LIVE_ID: &str = "key_live_";
pub(crate) const TEST_ID: &str = "key_test_";

/// What a tenant's name ends in on the side of its test keys. Everything is kept by tenant, so a
/// name of its own keeps the two sides apart and shows on everything made there.
const TEST_TENANT_SUFFIX: &str = "~test";

/// The role of a tenant that runs conformance tests.
const CONFORMANCE_ROLE: &str = "conformance";
/// Tenants that may have keys which act in this one.
pub(crate) fn key_tenants(tenant: &TenantId) -> impl Iterator<Item = TenantId> {
    let live = tenant
        .as_str()
        .strip_suffix(TEST_TENANT_SUFFIX)
        .map(TenantId::from);
    std::iter::once(tenant.clone()).chain(live)
}

impl Identity {
    pub fn of_key(record: &KeyRecord) -> Self {
        let test_key = record.key_id.starts_with(TEST_ID);
        let tenant = match test_key {
            true => TenantId::from(format!("{}{TEST_TENANT_SUFFIX}", record.tenant)),
            false => record.tenant.clone(),
        };
        Self {
            key_id: Arc::from(record.key_id.as_str()),
            principal: record.principal.clone(),
            tenant,
            workspace: record.workspace.clone(),
            scopes: ScopeSet::from_stored(&record.scopes),
            roles: record.roles.clone().into(),
            test_key,
            expires_at: record.expires_at,
        }
    }

    /// Whose data the caller may touch: its workspace's, or all of its tenant's.
    pub fn partition(&self) -> Partition {
        Partition {
            tenant: self.tenant.clone(),
            workspace: self.workspace.clone(),
        }
    }

    /// The same tenant on the side this key does not act on: of a test key the live tenant, of a
    /// live key the tenant of its test keys.
    pub fn counterpart_tenant(&self) -> TenantId {
        match self.test_key {
            true => self.key_tenant(),
            false => TenantId::from(format!("{}{TEST_TENANT_SUFFIX}", self.tenant)),
        }
    }

    /// The tenant that has the key itself, whichever side the key is for.
    pub fn key_tenant(&self) -> TenantId {
        let side = self.tenant.as_str().strip_suffix(TEST_TENANT_SUFFIX);
        match side.filter(|_| self.test_key) {
            Some(live) => TenantId::from(live),
            None => self.tenant.clone(),
        }
    }

    pub fn require_scope(&self, scope: Scope) -> Result<(), Denied> {
        if self.scopes.contains(scope) {
            Ok(())
        } else {
            Err(Denied { scope })
        }
    }

    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|held| held == role)
    }

    /// Whether the tenant may run what exists for conformance tests in workflows of any id. The role
    /// comes from the operator: a key made by another key has no role its maker lacks.
    pub fn permits_conformance(&self) -> bool {
        self.has_role(CONFORMANCE_ROLE)
    }

    /// The caller as the audit log will know it.
    pub fn actor(&self) -> Actor {
        Actor {
            auth_method: AuthMethod::Key(Arc::clone(&self.key_id)),
            principal: Some(self.principal.clone()),
            roles: Arc::clone(&self.roles),
            acting_for: None,
        }
    }

    /// The triple recorded on what this caller creates.
    pub fn owner(&self) -> Owner {
        Owner {
            tenant: self.tenant.clone(),
            workspace: self.workspace.clone(),
            principal: Some(self.principal.clone()),
        }
    }
}
