//! Groups and delegations.

use super::MemoryStore;
use super::state::State;
use crate::fault::Fault;
use crate::people::{DelegationRecord, GroupRecord, PeopleChange, ReadPeople};
use async_trait::async_trait;
use tandem_record::{TenantId, Timestamp};

impl State {
    pub(super) fn change_people(&mut self, change: PeopleChange) {
        match change {
            PeopleChange::PutGroup(group) => {
                let key = (group.tenant.clone(), group.name.clone());
                self.groups.insert(key, group);
            }
            PeopleChange::DropGroup { tenant, name } => {
                self.groups.remove(&(tenant, name));
            }
            PeopleChange::PutDelegation(delegation) => {
                let key = (delegation.tenant.clone(), delegation.id.clone());
                self.delegations.insert(key, delegation);
            }
            PeopleChange::DropDelegation { tenant, id } => {
                self.delegations.remove(&(tenant, id));
            }
        }
    }
}

#[async_trait]
impl ReadPeople for MemoryStore {
    async fn groups(&self, tenant: &TenantId) -> Result<Vec<GroupRecord>, Fault> {
        let state = self.state()?;
        let groups = state.groups.values();
        Ok(groups.filter(|g| g.tenant == *tenant).cloned().collect())
    }

    async fn delegations(
        &self,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Result<Vec<DelegationRecord>, Fault> {
        let state = self.state()?;
        let live = |d: &&DelegationRecord| d.tenant == *tenant && d.ends_at > now;
        Ok(state.delegations.values().filter(live).cloned().collect())
    }
}
