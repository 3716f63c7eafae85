//! Settings, which are written outside commits, and API keys.

use super::MemoryStore;
use crate::SettingsStore;
use crate::audit::AuditDraft;
use crate::epochs::CachedData;
use crate::fault::Fault;
use crate::keys::{KeyRecord, Keys};
use async_trait::async_trait;
use tandem_record::{TenantId, Timestamp};

#[async_trait]
impl SettingsStore for MemoryStore {
    async fn get(&self, name: &str) -> Result<Option<String>, Fault> {
        Ok(self.state()?.settings.get(name).cloned())
    }

    async fn set(&self, name: &str, value: &str) -> Result<(), Fault> {
        self.state()?
            .settings
            .insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    async fn set_if_absent(&self, name: &str, value: &str) -> Result<String, Fault> {
        Ok(self
            .state()?
            .settings
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned())
            .clone())
    }
}

#[async_trait]
impl Keys for MemoryStore {
    async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>, Fault> {
        let state = self.state()?;
        Ok(state.keys.values().find(|key| key.hash == hash).cloned())
    }

    async fn list_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault> {
        let state = self.state()?;
        let mut keys: Vec<_> = state
            .keys
            .values()
            .filter(|key| tenant.is_none_or(|tenant| key.tenant == *tenant))
            .cloned()
            .collect();
        keys.sort_by_key(|key| key.created_at);
        Ok(keys)
    }

    async fn revoke_key(
        &self,
        tenant: &TenantId,
        key_id: &str,
        at: Timestamp,
        audit: AuditDraft,
    ) -> Result<bool, Fault> {
        let mut state = self.state()?;
        let Some(key) = state.keys.get_mut(key_id).filter(|k| k.tenant == *tenant) else {
            return Ok(false);
        };
        if key
            .revoked_at
            .replace(key.revoked_at.unwrap_or(at))
            .is_none()
        {
            state.append_audit_entry(&audit);
            state.raise_epoch(CachedData::Keys);
        }
        Ok(true)
    }
}
