//! Settings, which are written outside commits, and API keys.

use super::MemoryStore;
use super::state::State;
use crate::SettingsStore;
use crate::epochs::CachedData;
use crate::fault::Fault;
use crate::keys::{ChooseKeys, KeyRecord, Keys};
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

impl State {
    fn list_keys(&self, tenant: Option<&TenantId>) -> Vec<KeyRecord> {
        let of_tenant = |key: &&KeyRecord| tenant.is_none_or(|tenant| key.tenant == *tenant);
        let mut keys: Vec<_> = self.keys.values().filter(of_tenant).cloned().collect();
        keys.sort_by_key(|key| key.created_at);
        keys
    }
}

#[async_trait]
impl Keys for MemoryStore {
    async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>, Fault> {
        let state = self.state()?;
        Ok(state.keys.values().find(|key| key.hash == hash).cloned())
    }

    async fn list_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault> {
        Ok(self.state()?.list_keys(tenant))
    }

    async fn revoke_keys(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        choose: ChooseKeys,
    ) -> Result<Vec<String>, Fault> {
        let mut state = self.state()?;
        let chosen = choose(&state.list_keys(Some(tenant)));
        let mut ids = Vec::with_capacity(chosen.len());
        for (id, audit) in chosen {
            let key = state.keys.get_mut(&id);
            let good = key.filter(|key| key.tenant == *tenant && key.revoked_at.is_none());
            if let Some(key) = good {
                key.revoked_at = Some(at);
                state.append_audit_entry(&audit);
                state.raise_epoch(CachedData::Keys);
            }
            ids.push(id);
        }
        Ok(ids)
    }
}
