//! Groups of approvers and delegations of a tenant.

use crate::runtime::Runtime;
use serde_json::json;
use tandem_record::{Object, TenantId};
use tandem_store::{AuditDraft, Commit, DelegationRecord, Error, Fault, GroupRecord, PeopleChange};

impl Runtime {
    pub async fn groups(&self, tenant: &TenantId) -> Result<Vec<GroupRecord>, Fault> {
        self.store().groups(tenant).await
    }

    pub async fn put_group(&self, group: GroupRecord) -> Result<(), Fault> {
        self.change_people(PeopleChange::PutGroup(group)).await
    }

    pub async fn drop_group(&self, tenant: &TenantId, name: &str) -> Result<(), Fault> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        self.change_people(PeopleChange::DropGroup { tenant, name })
            .await
    }

    /// Delegations that have not ended.
    pub async fn delegations(&self, tenant: &TenantId) -> Result<Vec<DelegationRecord>, Fault> {
        self.store().delegations(tenant, self.clock().now()).await
    }

    pub async fn put_delegation(&self, delegation: DelegationRecord) -> Result<(), Fault> {
        self.change_people(PeopleChange::PutDelegation(delegation))
            .await
    }

    pub async fn drop_delegation(&self, tenant: &TenantId, id: &str) -> Result<(), Fault> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.change_people(PeopleChange::DropDelegation { tenant, id })
            .await
    }

    /// A change of who may decide is recorded in the audit log with its author.
    fn audit_draft_of(&self, change: &PeopleChange) -> AuditDraft {
        let mut details = Object::new();
        let (action, tenant, target) = match change {
            PeopleChange::PutGroup(group) => {
                details.insert("members".to_owned(), json!(group.members));
                ("group.set", &group.tenant, &group.name)
            }
            PeopleChange::DropGroup { tenant, name } => ("group.delete", tenant, name),
            PeopleChange::PutDelegation(delegation) => {
                details.insert("from".to_owned(), json!(delegation.from));
                details.insert("to".to_owned(), json!(delegation.to));
                ("delegation.create", &delegation.tenant, &delegation.id)
            }
            PeopleChange::DropDelegation { tenant, id } => ("delegation.delete", tenant, id),
        };
        let now = self.clock().now();
        AuditDraft::new(now, Some(tenant), self.actor(), action, target, details)
    }

    async fn change_people(&self, change: PeopleChange) -> Result<(), Fault> {
        let commit = Commit {
            audit: vec![self.audit_draft_of(&change)],
            people: vec![change],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(_) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
            Err(Error::Conflict(conflict)) => Err(Fault::permanent("bug", conflict.to_string())),
        }
    }
}
