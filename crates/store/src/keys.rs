//! Stored API keys: only a hash is stored, never the key.

use crate::Log;
use crate::audit::AuditDraft;
use crate::epochs::ReadEpochs;
use crate::fault::Fault;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tandem_record::{Principal, TenantId, Timestamp, WorkspaceId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Public id of the key, safe to log.
    pub key_id: String,
    /// Lowercase hex SHA-256 of the secret.
    pub hash: String,
    pub name: String,
    pub tenant: TenantId,
    pub workspace: Option<WorkspaceId>,
    /// Shared by all keys of one principal, so that a key can be rotated without changing the
    /// actor.
    pub principal: Principal,
    pub scopes: Vec<String>,
    pub roles: Vec<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl KeyRecord {
    /// The refusal of a key whose secret belongs to another one.
    pub fn duplicates(&self, other: &str) -> Fault {
        let message = format!("the secret of key {} is that of key {other}", self.key_id);
        Fault::permanent("invalid", message)
    }
}

/// Reads and revocations. A key is made by a commit.
#[async_trait]
pub trait Keys: Log + ReadEpochs {
    /// By the hash of the presented secret. Also returns revoked and expired keys; the caller
    /// checks that.
    async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>, Fault>;
    /// Oldest first; `None` lists every tenant's keys.
    async fn list_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault>;
    /// `false` when there is no such key in the tenant. A second revocation keeps the time of the
    /// first, and only the first gets an audit entry.
    async fn revoke_key(
        &self,
        tenant: &TenantId,
        key_id: &str,
        at: Timestamp,
        audit: AuditDraft,
    ) -> Result<bool, Fault>;
}
