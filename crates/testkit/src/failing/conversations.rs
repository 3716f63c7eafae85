//! Reads of conversations and records of tests, passed on through the faults.

use super::FailingStore;
use async_trait::async_trait;
use tandem_record::{AgentId, ChatUserId, EscalationId, SessionId, TenantId};
use tandem_store::{
    AgentLogPage, ChatUserFilter, ChatUserRow, EscalationFilter, EscalationRow, Fault, Listing,
    ListingPage, PageLimit, ReadAgentLog, ReadChatUsers, ReadEscalations, ReadSessions,
    SessionFilter, SessionRow, TestRecord, TestRecordQuery, TestRecords,
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
