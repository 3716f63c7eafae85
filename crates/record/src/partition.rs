//! The unit of isolation inside a host.

use crate::{Owner, TenantId, WorkspaceId};

/// Data that is isolated from all other data: that of one workspace of a tenant, or that of the
/// tenant itself. Passed to every read and write for a caller or a run, so that the workspace is
/// part of the address and not a check that could be forgotten.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    pub tenant: TenantId,
    /// `None`: belongs to the tenant and to no workspace.
    pub workspace: Option<WorkspaceId>,
}

impl Partition {
    /// Whether a caller bound to this partition may see data of `other`. A tenant covers everything
    /// in it, a workspace only its own data.
    pub fn covers(&self, other: &Self) -> bool {
        self.covers_parts(&other.tenant, other.workspace.as_ref())
    }

    /// The same for the two columns of a stored row.
    pub fn covers_parts(&self, tenant: &TenantId, workspace: Option<&WorkspaceId>) -> bool {
        self.tenant == *tenant && (self.workspace.is_none() || self.workspace.as_ref() == workspace)
    }
}

impl From<TenantId> for Partition {
    fn from(tenant: TenantId) -> Self {
        Self {
            tenant,
            workspace: None,
        }
    }
}

impl From<&Owner> for Partition {
    fn from(owner: &Owner) -> Self {
        Self {
            tenant: owner.tenant.clone(),
            workspace: owner.workspace.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tenant: &str, workspace: Option<&str>) -> Partition {
        Partition {
            tenant: tenant.into(),
            workspace: workspace.map(Into::into),
        }
    }

    #[test]
    fn tenant_partition_covers_its_workspaces_and_workspace_covers_only_itself() {
        for (one, other, covers) in [
            (of("a", None), of("a", None), true),
            (of("a", None), of("a", Some("red")), true),
            (of("a", Some("red")), of("a", Some("red")), true),
            (of("a", Some("red")), of("a", Some("blue")), false),
            (of("a", Some("red")), of("a", None), false),
            (of("b", None), of("a", None), false),
            (of("b", Some("red")), of("a", Some("red")), false),
        ] {
            assert_eq!(one.covers(&other), covers, "{one:?} {other:?}");
        }
    }
}
