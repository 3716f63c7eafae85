//! Which runs and interrupts a caller may see. A record of another tenant is reported like one that does not
//! exist. A run of another workspace gets its own error, as the protocol requires.

use crate::app::App;
use crate::error::{AppError, ForbiddenReason, ResourceKind, TenantResource};
use tandem_access::{Identity, Scope};
use tandem_record::{InterruptId, RunId, WorkspaceId};
use tandem_runtime::{InterruptRow, StoredRun};

impl App {
    /// The row of a run, for a caller that may read runs.
    pub async fn read_run(&self, caller: &Identity, run: &RunId) -> Result<StoredRun, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_run(caller, run).await
    }

    /// The row of a run this caller may see.
    pub(crate) async fn find_run(
        &self,
        caller: &Identity,
        run: &RunId,
    ) -> Result<StoredRun, AppError> {
        let stored = self.find_run_or_expired(caller, run).await?;
        if self.runtime().is_past_retention(&stored) {
            return Err(AppError::RunExpired);
        }
        Ok(stored)
    }

    /// The same, but also finds a run past retention, of which only the row is left.
    pub(crate) async fn find_run_or_expired(
        &self,
        caller: &Identity,
        run: &RunId,
    ) -> Result<StoredRun, AppError> {
        let runtime = self.runtime();
        let Some(stored) = runtime.find_run(&caller.tenant, run).await? else {
            let other = runtime.find_run(&caller.counterpart_tenant(), run).await?;
            return Err(explain_missing(caller, other.is_some(), ResourceKind::Run));
        };
        check_workspace(caller, stored.row.workspace.as_ref())?;
        Ok(stored)
    }

    /// Refuses a key that is bound to a workspace, for what concerns every workspace.
    pub fn check_tenant_wide(
        &self,
        caller: &Identity,
        resource: TenantResource,
    ) -> Result<(), AppError> {
        match caller.workspace {
            Some(_) => Err(ForbiddenReason::BoundToWorkspace(resource).into()),
            None => Ok(()),
        }
    }

    /// An open or closed interrupt of a run this caller may see; the same rules apply as for the
    /// run.
    pub(crate) async fn find_interrupt(
        &self,
        caller: &Identity,
        id: &InterruptId,
    ) -> Result<InterruptRow, AppError> {
        let runtime = self.runtime();
        let Some(row) = runtime.question(&caller.tenant, id).await? else {
            let other = runtime.question(&caller.counterpart_tenant(), id).await?;
            return Err(explain_missing(
                caller,
                other.is_some(),
                ResourceKind::Interrupt,
            ));
        };
        check_workspace(caller, row.workspace.as_ref())?;
        Ok(row)
    }
}

fn check_workspace(caller: &Identity, of: Option<&WorkspaceId>) -> Result<(), AppError> {
    if caller.workspace.is_some() && caller.workspace.as_ref() != of {
        return Err(ForbiddenReason::OtherWorkspace.into());
    }
    Ok(())
}

/// Why the caller cannot find something. If a record with this id is in the caller's tenant for the other
/// kind of key (test or live), the error says so, whichever workspace it belongs to.
fn explain_missing(caller: &Identity, other_kind: bool, kind: ResourceKind) -> AppError {
    if !other_kind {
        return AppError::NotFound(kind);
    }
    AppError::Forbidden(ForbiddenReason::OtherKeyKind {
        test_key: caller.test_key,
        key_tenant: caller.key_tenant(),
        acts_in: caller.tenant.clone(),
        run_in: caller.counterpart_tenant(),
    })
}
