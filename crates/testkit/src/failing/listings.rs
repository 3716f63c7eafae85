//! Listings of runs and questions, passed on through the faults.

use super::FailingStore;
use async_trait::async_trait;
use tandem_record::{InterruptId, Partition, RunId, TenantId, WorkspaceId};
use tandem_store::{
    Fault, InboxChoices, InboxPage, InboxQuery, InterruptFilter, InterruptListing, InterruptRow,
    Page, ReadInterrupts, ReadRuns, RunFilter, RunListing, RunPosition, StoredRun,
};

#[async_trait]
impl ReadInterrupts for FailingStore {
    async fn interrupt(
        &self,
        tenant: &TenantId,
        interrupt: &InterruptId,
    ) -> Result<Option<InterruptRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.interrupt(tenant, interrupt).await
    }

    async fn interrupt_position(
        &self,
        of: &Partition,
        interrupt: &InterruptId,
    ) -> Result<Option<RunPosition>, Fault> {
        self.faults.of_read().await?;
        self.inner.interrupt_position(of, interrupt).await
    }

    async fn list_interrupts(
        &self,
        tenant: &TenantId,
        filter: &InterruptFilter,
        page: &Page,
    ) -> Result<InterruptListing, Fault> {
        self.faults.of_read().await?;
        self.inner.list_interrupts(tenant, filter, page).await
    }

    async fn inbox(&self, tenant: &TenantId, query: &InboxQuery) -> Result<InboxPage, Fault> {
        self.faults.of_read().await?;
        self.inner.inbox(tenant, query).await
    }

    async fn inbox_choices(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
    ) -> Result<InboxChoices, Fault> {
        self.faults.of_read().await?;
        self.inner.inbox_choices(tenant, workspace).await
    }
}

#[async_trait]
impl ReadRuns for FailingStore {
    async fn run(&self, tenant: &TenantId, run: &RunId) -> Result<Option<StoredRun>, Fault> {
        self.faults.of_read().await?;
        self.inner.run(tenant, run).await
    }

    async fn run_of_any_tenant(&self, run: &RunId) -> Result<Option<StoredRun>, Fault> {
        self.faults.of_read().await?;
        self.inner.run_of_any_tenant(run).await
    }

    async fn list_runs(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<RunListing, Fault> {
        self.faults.of_read().await?;
        self.inner.list_runs(tenant, filter, page).await
    }

    async fn run_position(
        &self,
        of: &Partition,
        run: &RunId,
    ) -> Result<Option<RunPosition>, Fault> {
        self.faults.of_read().await?;
        self.inner.run_position(of, run).await
    }

    async fn live_run_in_scope(
        &self,
        owner: &Partition,
        scope: &str,
    ) -> Result<Option<RunId>, Fault> {
        self.faults.of_read().await?;
        self.inner.live_run_in_scope(owner, scope).await
    }

    async fn count_descendants(
        &self,
        tenant: &TenantId,
        run: &RunId,
        limit: u64,
    ) -> Result<u64, Fault> {
        self.faults.of_read().await?;
        self.inner.count_descendants(tenant, run, limit).await
    }

    async fn count_by_status(&self) -> Result<Vec<(String, u64)>, Fault> {
        self.faults.of_read().await?;
        self.inner.count_by_status().await
    }
}
