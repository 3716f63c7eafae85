//! Stored API keys: only a hash is stored, never the key.

use crate::Log;
use crate::audit::AuditDraft;
use crate::epochs::ReadEpochs;
use crate::fault::Fault;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tandem_record::{AgentId, Principal, TenantId, Timestamp, WorkspaceId};

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
    /// The key that made this one, by creating or rotating it. `None` for keys that the host made, and for
    /// those that releases before this stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// The key that this one takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotates: Option<String>,
    /// The only agent whose conversations the key reads and writes; it reaches nothing else. `None` for a key that is
    /// not bound to an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

/// The code of [`KeyRecord::maker_is_revoked`].
pub const MAKER_REVOKED: &str = "maker_revoked";

impl KeyRecord {
    /// The refusal of a key whose secret belongs to another one.
    pub fn duplicates(&self, other: &str) -> Fault {
        let message = format!("the secret of key {} is that of key {other}", self.key_id);
        Fault::permanent("invalid", message)
    }

    /// The refusal of a key whose maker was revoked before it was stored. Whoever revokes a key revokes what it
    /// made, and must miss nothing.
    pub fn maker_is_revoked(&self) -> Fault {
        let message = format!("the key that makes {} is revoked", self.key_id);
        Fault::permanent(MAKER_REVOKED, message)
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
    /// Revokes what `choose` picks of the tenant's keys, which it gets oldest first, in one transaction: no key
    /// is made between the choice and the revocation. Returns the ids that were picked. A second revocation
    /// keeps the time of the first, and only the first gets an audit entry.
    async fn revoke_keys(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        choose: ChooseKeys,
    ) -> Result<Vec<String>, Fault>;
}

/// The ids of the keys to revoke, each with its audit entry. May be called again for the same revocation.
pub type ChooseKeys = Box<dyn Fn(&[KeyRecord]) -> Vec<(String, AuditDraft)> + Send + Sync>;
