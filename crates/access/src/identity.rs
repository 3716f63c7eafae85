//! The authenticated caller: tenant, workspace, principal and scopes.

use crate::{Scope, ScopeSet};
use std::sync::Arc;
use tandem_record::{
    Actor, AgentId, AuthMethod, Owner, Partition, Principal, TenantId, Timestamp, WorkspaceId,
};
use tandem_store::KeyRecord;

/// Cheap to clone. Holds no secret, so it may be logged.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The id of the presented key; safe to log and to audit.
    pub key_id: Arc<str>,
    /// Shared by every key of one rotation, so that a principal outlives a single key.
    pub principal: Principal,
    /// The tenant whose data the caller may access.
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    /// The only agent whose conversations the caller reads and writes; it reaches nothing else.
    pub agent: Option<AgentId>,
    pub scopes: ScopeSet,
    pub roles: Arc<[String]>,
    /// Test keys must not access live data, and live keys must not access test data.
    pub test_key: bool,
    /// When the key expires; a browser session ends with it.
    pub expires_at: Option<Timestamp>,
}

/// The key is valid but lacks a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key lacks the scope {scope}")]
pub struct Denied {
    pub scope: Scope,
}

/// Prefix of a live key's public id. The stored record has no column for the kind of a key, so the
/// id carries it, like the prefix of the secret.
pub(crate) const LIVE_ID: &str = "key_live_";
pub(crate) const TEST_ID: &str = "key_test_";

/// Length of what follows the prefix of an id.
const ID_DIGITS: usize = 16;

/// The principal of the keys that the operator configures. Programs share them.
pub const BOOTSTRAP_PRINCIPAL: &str = "bootstrap";

/// Whether a principal is one person or service, by a name that was given to it. A key without a name is its
/// own principal, and may be shared.
pub(crate) fn is_person(principal: &Principal) -> bool {
    let name = principal.as_str();
    if name == BOOTSTRAP_PRINCIPAL {
        return false;
    }
    let digits = name.strip_prefix(LIVE_ID).or(name.strip_prefix(TEST_ID));
    let is_key_id = |digits: &str| {
        digits.len() == ID_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    !digits.is_some_and(is_key_id)
}

/// Suffix of the tenant name for data of test keys. All data is stored by tenant, so a separate
/// name keeps test data and live data apart and is visible on everything created there.
const TEST_TENANT_SUFFIX: &str = "~test";

/// Permits conformance node types in workflows of any id. Only a holder can assign it, and the
/// first holder is configured by the operator.
pub const CONFORMANCE_ROLE: &str = "conformance";

/// Tenants whose keys may act in this one.
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
            agent: record.agent.clone(),
            scopes: ScopeSet::from_stored(&record.scopes),
            roles: record.roles.clone().into(),
            test_key,
            expires_at: record.expires_at,
        }
    }

    /// The data the caller may access: that of its workspace, or of its whole tenant.
    pub fn partition(&self) -> Partition {
        Partition {
            tenant: self.tenant.clone(),
            workspace: self.workspace.clone(),
        }
    }

    /// Whether the caller may know of conversations of this agent.
    pub fn reaches_agent(&self, agent: &AgentId) -> bool {
        self.agent.as_ref().is_none_or(|own| own == agent)
    }

    /// The tenant for the other kind of key: for a test key the live tenant, for a live key the
    /// tenant of its test keys.
    pub fn counterpart_tenant(&self) -> TenantId {
        match self.test_key {
            true => self.key_tenant(),
            false => TenantId::from(format!("{}{TEST_TENANT_SUFFIX}", self.tenant)),
        }
    }

    /// The tenant that owns the key, for test and live keys alike.
    pub fn key_tenant(&self) -> TenantId {
        let side = self.tenant.as_str().strip_suffix(TEST_TENANT_SUFFIX);
        match side.filter(|_| self.test_key) {
            Some(live) => TenantId::from(live),
            None => self.tenant.clone(),
        }
    }

    /// The key, after the tenant that owns it.
    pub(crate) fn owned_key(&self) -> (TenantId, Arc<str>) {
        (self.key_tenant(), Arc::clone(&self.key_id))
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

    /// Whether the caller may run conformance node types in workflows of any id. The operator
    /// assigns the role: a key created by another key has no role its creator lacks.
    pub fn permits_conformance(&self) -> bool {
        self.has_role(CONFORMANCE_ROLE)
    }

    /// The caller as an actor of the audit log.
    pub fn actor(&self) -> Actor {
        Actor {
            auth_method: AuthMethod::Key(Arc::clone(&self.key_id)),
            principal: Some(self.principal.clone()),
            roles: Arc::clone(&self.roles),
            acting_for: None,
        }
    }

    /// The owner recorded on what this caller creates.
    pub fn owner(&self) -> Owner {
        Owner {
            tenant: self.tenant.clone(),
            workspace: self.workspace.clone(),
            principal: Some(self.principal.clone()),
        }
    }
}
