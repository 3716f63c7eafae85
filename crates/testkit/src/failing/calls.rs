//! All store traits, forwarded with injected faults.

use super::FailingStore;
use super::plan::{InjectedFault, io_fault};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    DefinitionHash, EffectId, InterruptId, Partition, RunId, Seq, SessionId, StreamId, TenantId,
    Timestamp, WebhookId, WorkflowId,
};
use tandem_store::{
    Audit, AuditDraft, AuditHead, AuditRow, Checkpoint, ChooseKeys, Commit, Committed,
    DelegationRecord, DeliveryListing, DeliveryRow, DueLane, DueTimer, EndedSession, Error, Fault,
    GroupRecord, IdempotencyKey, IdempotencyRecord, KeyRecord, Keys, LaneQuery, LeaseId,
    LeaseRenewal, LeaseRequest, ListedRun, Log, Maintenance, MemoryQuery, MemoryRow, MemoryView,
    Outbox, OutboxEntry, PageLimit, ParkedWork, ReadDefinitions, ReadIdempotency, ReadLog,
    ReadMemory, ReadPeople, ReadTimers, ReadWebhooks, RegisteredWorkflow, RunPosition,
    SettingsStore, SnapshotRecord, StorageUsage, StoredWebhook, StreamSlice, WebhookFeed,
    WorkFailure, WorkFailures,
};

#[async_trait]
impl Log for FailingStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, Error> {
        self.faults.reach().await?;
        match self.faults.of_commit() {
            InjectedFault::None => self.apply(commit).await,
            InjectedFault::FailsBefore => Err(io_fault().into()),
            InjectedFault::NeverFits => {
                Err(Fault::permanent("too_large", "a row is too long").into())
            }
            InjectedFault::FailsAfter => {
                self.apply(commit).await?;
                Err(io_fault().into())
            }
            InjectedFault::SlowBefore(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                // A process that was paused or ended meanwhile writes later or never.
                self.faults.reach().await?;
                self.apply(commit).await
            }
            InjectedFault::SlowAfter(ms) => {
                let result = self.apply(commit).await;
                tokio::time::sleep(Duration::from_millis(ms)).await;
                result
            }
            InjectedFault::CrashesBefore => self.faults.crash_process().await,
            InjectedFault::CrashesAfter => {
                self.apply(commit).await?;
                self.faults.crash_process().await
            }
        }
    }
}

#[async_trait]
impl ReadLog for FailingStore {
    async fn event_page(
        &self,
        stream: &StreamId,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<StreamSlice, Fault> {
        self.faults.of_read().await?;
        self.inner.event_page(stream, after, limit).await
    }

    async fn snapshot(&self, stream: &StreamId) -> Result<Option<SnapshotRecord>, Fault> {
        self.faults.of_read().await?;
        self.inner.snapshot(stream).await
    }
}

#[async_trait]
impl ReadMemory for FailingStore {
    async fn memory_position(&self) -> Result<u64, Fault> {
        self.faults.of_read().await?;
        self.inner.memory_position().await
    }

    async fn memory_entries(
        &self,
        view: &MemoryView,
        query: &MemoryQuery,
    ) -> Result<Vec<MemoryRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.memory_entries(view, query).await
    }

    async fn memory_count(
        &self,
        tenant: &TenantId,
        scope: &str,
        memory_ref: &str,
        now: Timestamp,
        limit: u64,
    ) -> Result<u64, Fault> {
        self.faults.of_read().await?;
        self.inner
            .memory_count(tenant, scope, memory_ref, now, limit)
            .await
    }

    async fn non_expiring_memory(
        &self,
        view: &MemoryView,
        memory_ref: &str,
        prefix: &str,
        above: u64,
        limit: usize,
    ) -> Result<(u64, Vec<MemoryRow>), Fault> {
        self.faults.of_read().await?;
        self.inner
            .non_expiring_memory(view, memory_ref, prefix, above, limit)
            .await
    }

    async fn memory_joins(&self, run: &RunId, below: Option<Seq>) -> Result<Vec<RunId>, Fault> {
        self.faults.of_read().await?;
        self.inner.memory_joins(run, below).await
    }
}

#[async_trait]
impl ReadPeople for FailingStore {
    async fn groups(&self, tenant: &TenantId) -> Result<Vec<GroupRecord>, Fault> {
        self.faults.of_read().await?;
        self.inner.groups(tenant).await
    }

    async fn delegations(
        &self,
        tenant: &TenantId,
        now: Timestamp,
    ) -> Result<Vec<DelegationRecord>, Fault> {
        self.faults.of_read().await?;
        self.inner.delegations(tenant, now).await
    }
}

#[async_trait]
impl ReadDefinitions for FailingStore {
    async fn definition(&self, hash: &DefinitionHash) -> Result<Option<Arc<str>>, Fault> {
        self.faults.of_read().await?;
        self.inner.definition(hash).await
    }

    async fn registered(
        &self,
        owner: &Partition,
        workflow: &WorkflowId,
    ) -> Result<Option<RegisteredWorkflow>, Fault> {
        self.faults.of_read().await?;
        self.inner.registered(owner, workflow).await
    }

    async fn list_registered(&self, owner: &Partition) -> Result<Vec<RegisteredWorkflow>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_registered(owner).await
    }

    async fn list_registered_in_workspaces(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<RegisteredWorkflow>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_registered_in_workspaces(tenant).await
    }
}

#[async_trait]
impl ReadTimers for FailingStore {
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Fault> {
        self.faults.of_read().await?;
        self.inner.due_timers(now, limit).await
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>, Fault> {
        self.faults.of_read().await?;
        self.inner.next_timer().await
    }
}

#[async_trait]
impl Outbox for FailingStore {
    async fn due_lanes(&self, query: LaneQuery) -> Result<Vec<DueLane>, Fault> {
        self.faults.of_read().await?;
        self.inner.due_lanes(query).await
    }

    async fn lease(&self, request: LeaseRequest) -> Result<Vec<OutboxEntry>, Fault> {
        self.faults.of_read().await?;
        self.inner.lease(request).await
    }

    async fn release(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        available_at: Timestamp,
    ) -> Result<(), Fault> {
        self.faults.of_read().await?;
        self.inner.release(effect, lease, available_at).await
    }

    async fn renew_leases(&self, renewal: LeaseRenewal) -> Result<Vec<EffectId>, Fault> {
        self.faults.of_read().await?;
        self.inner.renew_leases(renewal).await
    }

    async fn break_leases(&self, owner: &str) -> Result<u64, Fault> {
        self.faults.of_read().await?;
        self.inner.break_leases(owner).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Fault> {
        self.faults.of_read().await?;
        self.inner.next_due().await
    }

    async fn depth(&self) -> Result<u64, Fault> {
        self.inner.depth().await
    }
}

#[async_trait]
impl WorkFailures for FailingStore {
    async fn record_timer_failure(
        &self,
        timer: &DueTimer,
        failure: WorkFailure,
    ) -> Result<(), Fault> {
        self.faults.of_read().await?;
        self.inner.record_timer_failure(timer, failure).await
    }

    async fn record_effect_failure(
        &self,
        effect: &EffectId,
        lease: &LeaseId,
        failure: WorkFailure,
    ) -> Result<(), Fault> {
        self.faults.of_read().await?;
        self.inner
            .record_effect_failure(effect, lease, failure)
            .await
    }

    async fn list_parked(
        &self,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<ParkedWork>, Fault> {
        self.inner.list_parked(tenant, limit).await
    }

    async fn count_parked(&self) -> Result<u64, Fault> {
        self.inner.count_parked().await
    }

    async fn retry_parked(&self, stream: &StreamId, now: Timestamp) -> Result<u64, Fault> {
        self.inner.retry_parked(stream, now).await
    }
}

#[async_trait]
impl ReadIdempotency for FailingStore {
    async fn idempotency_record(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<IdempotencyRecord>, Fault> {
        self.faults.of_read().await?;
        self.inner.idempotency_record(key).await
    }
}

#[async_trait]
impl Audit for FailingStore {
    async fn audit_head(&self) -> Result<Option<AuditHead>, Fault> {
        self.inner.audit_head().await
    }

    async fn audit_entries(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, Fault> {
        self.inner.audit_entries(after, limit).await
    }

    async fn audit_decision(&self, interrupt: &InterruptId) -> Result<Option<AuditRow>, Fault> {
        self.inner.audit_decision(interrupt).await
    }

    async fn checkpoints(&self, after: u64, limit: usize) -> Result<Vec<Checkpoint>, Fault> {
        self.inner.checkpoints(after, limit).await
    }

    async fn checkpoint_until(&self, seq: u64) -> Result<Option<Checkpoint>, Fault> {
        self.inner.checkpoint_until(seq).await
    }

    async fn put_checkpoint(&self, checkpoint: Checkpoint, after: u64) -> Result<bool, Fault> {
        self.inner.put_checkpoint(checkpoint, after).await
    }
}

#[async_trait]
impl SettingsStore for FailingStore {
    async fn get(&self, name: &str) -> Result<Option<String>, Fault> {
        self.inner.get(name).await
    }

    async fn set(&self, name: &str, value: &str) -> Result<(), Fault> {
        self.inner.set(name, value).await
    }

    async fn set_if_absent(&self, name: &str, value: &str) -> Result<String, Fault> {
        self.inner.set_if_absent(name, value).await
    }
}

#[async_trait]
impl Keys for FailingStore {
    async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRecord>, Fault> {
        self.inner.key_by_hash(hash).await
    }

    async fn list_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, Fault> {
        self.inner.list_keys(tenant).await
    }

    async fn revoke_keys(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        choose: ChooseKeys,
    ) -> Result<Vec<String>, Fault> {
        self.inner.revoke_keys(tenant, at, choose).await
    }
}

#[async_trait]
impl ReadWebhooks for FailingStore {
    async fn webhook(&self, webhook: &WebhookId) -> Result<Option<StoredWebhook>, Fault> {
        self.faults.of_read().await?;
        self.inner.webhook(webhook).await
    }

    async fn list_webhooks(&self, tenant: &TenantId) -> Result<Vec<StoredWebhook>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_webhooks(tenant).await
    }

    async fn webhook_feed(&self, tenant: &TenantId, limit: usize) -> Result<WebhookFeed, Fault> {
        self.faults.of_read().await?;
        self.inner.webhook_feed(tenant, limit).await
    }

    async fn delivery(
        &self,
        webhook: &WebhookId,
        number: u64,
    ) -> Result<Option<DeliveryRow>, Fault> {
        self.inner.delivery(webhook, number).await
    }

    async fn due_deliveries(
        &self,
        webhook: &WebhookId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.due_deliveries(webhook, now, limit).await
    }

    async fn next_delivery(&self, webhook: &WebhookId) -> Result<Option<Timestamp>, Fault> {
        self.faults.of_read().await?;
        self.inner.next_delivery(webhook).await
    }

    async fn list_deliveries(
        &self,
        webhook: &WebhookId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<DeliveryListing, Fault> {
        self.inner.list_deliveries(webhook, before, limit).await
    }
}

#[async_trait]
impl Maintenance for FailingStore {
    async fn ping(&self) -> Result<(), Fault> {
        self.inner.ping().await
    }

    async fn expire_idempotency(&self, before: Timestamp, limit: usize) -> Result<u64, Fault> {
        self.faults.reach().await?;
        self.inner.expire_idempotency(before, limit).await
    }

    async fn ended_runs(
        &self,
        after: Option<(Timestamp, RunPosition)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<ListedRun>, Fault> {
        self.faults.reach().await?;
        self.inner.ended_runs(after, before, limit).await
    }

    async fn purge_run(
        &self,
        run: &RunId,
        tombstone: &str,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault> {
        self.faults.reach().await?;
        self.inner.purge_run(run, tombstone, audit).await
    }

    async fn ended_sessions(
        &self,
        after: Option<(Timestamp, SessionId)>,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<EndedSession>, Fault> {
        self.faults.reach().await?;
        self.inner.ended_sessions(after, before, limit).await
    }

    async fn purge_session(
        &self,
        session: &SessionId,
        audit: Option<AuditDraft>,
    ) -> Result<(), Fault> {
        self.faults.reach().await?;
        self.inner.purge_session(session, audit).await
    }

    async fn storage_usage(&self, tenant: &TenantId) -> Result<StorageUsage, Fault> {
        self.faults.of_read().await?;
        self.inner.storage_usage(tenant).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
