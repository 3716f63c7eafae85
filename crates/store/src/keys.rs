//! API keys at rest: only a hash is stored, never the key.

use crate::audit::AuditDraft;
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
    /// Keys of one principal share it, so that a key can be rotated without changing who acts.
    pub principal: Principal,
    pub scopes: Vec<String>,
    pub roles: Vec<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

#[async_trait]
pub trait Keys: Send + Sync {
    /// A key with the same id is replaced. A secret belongs to one key: the hash of another key is
    /// refused as `invalid`. The audit log tells it in the same transaction.
    async fn put_key(&self, key: KeyRecord, audit: AuditDraft) -> Result<(), Fault>;
    /// By the hash of the presented secret. Revoked and expired keys are returned too: the caller
    /// tells them apart.
    async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>, Fault>;
    /// Oldest first; `None` lists every tenant's keys.
    async fn list_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault>;
    /// `false` when there is no such key in the tenant. Revoking twice keeps the first time, and
    /// only the first is audit.
    async fn revoke_key(
        &self,
        tenant: &TenantId,
        key_id: &str,
        at: Timestamp,
        audit: AuditDraft,
    ) -> Result<bool, Fault>;
}
