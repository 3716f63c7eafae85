//! Reads of conversations and records of tests, passed on through the faults.

use super::FailingStore;
use async_trait::async_trait;
use tandem_record::{
    AgentId, ChatUserId, EscalationId, ProxyId, ScheduleId, ScheduleRunId, SessionId, TenantId,
};
use tandem_store::{
    AgentLogPage, ChatUserFilter, ChatUserRow, Desk, DeskSelection, EscalationFilter,
    EscalationRow, Fault, Listing, ListingPage, PageLimit, ProxyFilter, ProxyRow, ReadAgentLog,
    ReadChatUsers, ReadEscalations, ReadProxies, ReadSchedules, ReadSessions, ScheduleFilter,
    ScheduleRecipientRow, ScheduleRow, ScheduleRunRow, SessionFilter, SessionRow, TestRecord,
    TestRecordQuery, TestRecords,
};

#[async_trait]
impl ReadChatUsers for FailingStore {
    async fn chat_user(
        &self,
        tenant: &TenantId,
        user: &ChatUserId,
    ) -> Result<Option<ChatUserRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.chat_user(tenant, user).await
    }

    async fn list_chat_users(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        filter: &ChatUserFilter,
        page: &ListingPage<ChatUserId>,
    ) -> Result<Listing<ChatUserId, ChatUserRow>, Fault> {
        self.faults.of_read().await?;
        self.inner
            .list_chat_users(tenant, agent, filter, page)
            .await
    }
}

#[async_trait]
impl ReadSessions for FailingStore {
    async fn session_of_any_tenant(
        &self,
        session: &SessionId,
    ) -> Result<Option<SessionRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.session_of_any_tenant(session).await
    }

    async fn list_sessions(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        page: &ListingPage<SessionId>,
    ) -> Result<Option<Listing<SessionId, SessionRow>>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_sessions(tenant, filter, page).await
    }
}

#[async_trait]
impl ReadEscalations for FailingStore {
    async fn escalation(
        &self,
        tenant: &TenantId,
        escalation: &EscalationId,
    ) -> Result<Option<EscalationRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.escalation(tenant, escalation).await
    }

    async fn list_escalations(
        &self,
        tenant: &TenantId,
        filter: &EscalationFilter,
        page: &ListingPage<EscalationId>,
    ) -> Result<Option<Listing<EscalationId, EscalationRow>>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_escalations(tenant, filter, page).await
    }
}

#[async_trait]
impl ReadProxies for FailingStore {
    async fn proxy(&self, tenant: &TenantId, proxy: &ProxyId) -> Result<Option<ProxyRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.proxy(tenant, proxy).await
    }

    async fn list_proxies(
        &self,
        tenant: &TenantId,
        filter: &ProxyFilter,
        page: &ListingPage<ProxyId>,
    ) -> Result<Option<Listing<ProxyId, ProxyRow>>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_proxies(tenant, filter, page).await
    }

    async fn proxies_of_desk(
        &self,
        desk: &Desk,
        selection: &DeskSelection,
        limit: usize,
    ) -> Result<Vec<ProxyRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.proxies_of_desk(desk, selection, limit).await
    }
}

#[async_trait]
impl ReadAgentLog for FailingStore {
    async fn agent_log(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        after: u64,
        limit: PageLimit,
    ) -> Result<AgentLogPage, Fault> {
        self.faults.of_read().await?;
        self.inner.agent_log(tenant, agent, after, limit).await
    }
}

#[async_trait]
impl TestRecords for FailingStore {
    async fn add_test_record(&self, record: TestRecord) -> Result<u64, Fault> {
        self.faults.reach().await?;
        self.inner.add_test_record(record).await
    }

    async fn test_records(&self, query: &TestRecordQuery) -> Result<Vec<(u64, TestRecord)>, Fault> {
        self.faults.of_read().await?;
        self.inner.test_records(query).await
    }
}

#[async_trait]
impl ReadSchedules for FailingStore {
    async fn schedule(
        &self,
        tenant: &TenantId,
        schedule: &ScheduleId,
    ) -> Result<Option<ScheduleRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.schedule(tenant, schedule).await
    }

    async fn list_schedules(
        &self,
        tenant: &TenantId,
        filter: &ScheduleFilter,
        page: &ListingPage<ScheduleId>,
    ) -> Result<Option<Listing<ScheduleId, ScheduleRow>>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_schedules(tenant, filter, page).await
    }

    async fn schedule_run(
        &self,
        tenant: &TenantId,
        run: &ScheduleRunId,
    ) -> Result<Option<ScheduleRunRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.schedule_run(tenant, run).await
    }

    async fn list_schedule_runs(
        &self,
        schedule: &ScheduleId,
        page: &ListingPage<ScheduleRunId>,
    ) -> Result<Option<Listing<ScheduleRunId, ScheduleRunRow>>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_schedule_runs(schedule, page).await
    }

    async fn list_schedule_recipients(
        &self,
        run: &ScheduleRunId,
        page: &ListingPage<u32>,
    ) -> Result<Listing<u32, ScheduleRecipientRow>, Fault> {
        self.faults.of_read().await?;
        self.inner.list_schedule_recipients(run, page).await
    }
}
