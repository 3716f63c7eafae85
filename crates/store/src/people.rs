//! Members of approver groups, and delegations. Changed by commits ([`crate::PeopleChange`]); read
//! here.

use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::{Principal, TenantId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    pub tenant: TenantId,
    pub name: String,
    /// Names as written: a principal, `role:<role>` or `group:<group>`.
    pub members: Vec<String>,
    pub changed_at: Timestamp,
}

/// `from` allows `to` to act for them, from `starts_at` until `ends_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegationRecord {
    /// Unique within the tenant.
    pub id: String,
    pub tenant: TenantId,
    pub from: Principal,
    pub to: Principal,
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeopleChange {
    /// A group of the same name is replaced.
    PutGroup(GroupRecord),
    DropGroup {
        tenant: TenantId,
        name: String,
    },
    /// A delegation of the same id is replaced.
    PutDelegation(DelegationRecord),
    DropDelegation {
        tenant: TenantId,
        id: String,
    },
}

#[async_trait]
pub trait ReadPeople: Send + Sync {
    /// Every group of the tenant, by name.
    async fn groups(&self, tenant: &TenantId) -> Result<Vec<GroupRecord>, Fault>;

    /// Every delegation of the tenant that has not ended by `now`, by id, including those that have
    /// not started.
    async fn delegations(
        &self,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Result<Vec<DelegationRecord>, Fault>;
}
