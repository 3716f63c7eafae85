//! Operations of a tenant: storage, and work that kept failing.

use crate::app::App;
use crate::detached_request::run_to_completion;
use crate::error::{AppError, ResourceKind, TenantResource};
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Scope};
use tandem_record::{StreamId, Timestamp};
use tandem_runtime::{ParkedWork, StorageUsage};

/// Parked work of a run or webhook that is tried again.
pub struct RetriedWork {
    pub subject: StreamId,
    pub retried: u64,
}

impl App {
    /// Storage used by the caller's tenant, and when the next of its logs is purged.
    pub async fn storage_usage(
        &self,
        caller: &Identity,
    ) -> Result<(StorageUsage, Option<Timestamp>), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.check_tenant_wide(caller, TenantResource::Storage)?;
        Ok(self.runtime().storage_usage(&caller.tenant).await?)
    }

    /// Timers and effects of the tenant that failed so often that they are not tried again.
    pub async fn list_parked_work(&self, caller: &Identity) -> Result<Vec<ParkedWork>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.check_tenant_wide(caller, TenantResource::ParkedWork)?;
        Ok(self.runtime().parked_work(&caller.tenant).await?)
    }

    /// Tries all parked work of a run or webhook again, now.
    pub async fn retry_parked_work(
        &self,
        caller: &Identity,
        subject: StreamId,
        idempotency: Idempotency<RetriedWork>,
    ) -> Result<Completion<RetriedWork>, AppError> {
        caller.require_scope(Scope::RunsCancel)?;
        self.check_tenant_wide(caller, TenantResource::ParkedWork)?;
        let (runtime, tenant) = (self.runtime_for(caller), caller.tenant.clone());
        let stream = subject.clone();
        let retried =
            run_to_completion(async move { runtime.retry_parked(&tenant, &stream).await }).await?;
        let retried = retried.ok_or(AppError::NotFound(ResourceKind::ParkedSubject))?;
        self.complete(idempotency, RetriedWork { subject, retried })
            .await
    }
}
