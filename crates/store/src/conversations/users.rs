//! Users of agents.

use super::{Listing, ListingPage};
use crate::fault::Fault;
use async_trait::async_trait;
use tandem_record::{AgentId, ChatUserId, TenantId, Timestamp};

/// A person as one agent knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatUserRow {
    pub user_id: ChatUserId,
    pub tenant: TenantId,
    pub agent: AgentId,
    /// The identity the transport gives.
    pub external_user_id: String,
    pub created_at: Timestamp,
    pub last_active_at: Timestamp,
    pub tags: Vec<String>,
    /// The profile as JSON, opaque to the store.
    pub body: String,
}

/// Which users of an agent. All conditions must hold; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatUserFilter {
    pub tag: Option<String>,
    /// Active at this time or later.
    pub active_since: Option<Timestamp>,
}

impl ChatUserFilter {
    pub fn matches(&self, row: &ChatUserRow) -> bool {
        let has_tag = |tag: &String| row.tags.contains(tag);
        self.tag.as_ref().is_none_or(has_tag)
            && self.active_since.is_none_or(|at| row.last_active_at >= at)
    }
}

#[async_trait]
pub trait ReadChatUsers: Send + Sync {
    /// One user of a tenant; a user of another tenant is `None`.
    async fn chat_user(
        &self,
        tenant: &TenantId,
        user: &ChatUserId,
    ) -> Result<Option<ChatUserRow>, Fault>;

    /// Users of an agent in order of their ids, which no change of a user affects.
    async fn list_chat_users(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        filter: &ChatUserFilter,
        page: &ListingPage<ChatUserId>,
    ) -> Result<Listing<ChatUserId, ChatUserRow>, Fault>;
}
