//! Users of agents: the list, and changes of a profile.

use super::submit_error;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{ChatUser, ChatUserReply, ListedChatUser, ProfileChange};
use tandem_record::{AgentId, ChatUserId, Timestamp};
use tandem_runtime::{ChatUserFilter, ChatUserRow, ListingPage};

const MAX_NAME_CHARS: usize = 256;
const MAX_TAGS: usize = 100;
const MAX_TAG_CHARS: usize = 128;
const REPLY_FORMAT: &str = "preferredReplyFormat";
const REPLY_FORMATS: [&str; 4] = ["text", "voice", "mirror", "dynamic"];

/// A user of an agent.
pub struct FoundUser {
    pub agent: AgentId,
    pub profile: ChatUser,
    pub created_at: Timestamp,
    pub last_active_at: Timestamp,
}

impl FoundUser {
    /// `None` if the caller may not see the user.
    fn from_row(row: ChatUserRow, caller: &Identity) -> Option<Self> {
        let listed: ListedChatUser = serde_json::from_str(&row.body).ok()?;
        let partition = caller.partition();
        let is_covered = partition.covers_parts(&row.tenant, listed.workspace.as_ref());
        if !is_covered || !caller.reaches_agent(&row.agent) {
            return None;
        }
        Some(Self {
            profile: listed.profile,
            agent: row.agent,
            created_at: row.created_at,
            last_active_at: row.last_active_at,
        })
    }
}

impl App {
    /// Users of an agent that the caller may see, in order of their ids, and where the next page starts.
    pub async fn list_chat_users(
        &self,
        caller: &Identity,
        agent: &AgentId,
        filter: &ChatUserFilter,
        page: &ListingPage<ChatUserId>,
    ) -> Result<(Vec<FoundUser>, Option<ChatUserId>), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_agent_for(caller, agent)?;
        let store = self.runtime().store();
        let listing = store
            .list_chat_users(&caller.tenant, agent, filter, page)
            .await?;
        let rows = listing.rows.into_iter();
        let users = rows
            .filter_map(|row| FoundUser::from_row(row, caller))
            .collect();
        Ok((users, listing.next))
    }

    /// Changes a profile. A name given here is not replaced by what a transport reports later (Z-248).
    pub async fn change_chat_user(
        &self,
        caller: &Identity,
        user: ChatUserId,
        change: ProfileChange,
        idempotency: Idempotency<FoundUser>,
    ) -> Result<Completion<FoundUser>, AppError> {
        caller.require_scope(Scope::RunsCreate)?;
        check_change(&change)?;
        self.find_chat_user(caller, &user).await?;
        let runtime = self.runtime_for(caller);
        let changed = runtime.change_chat_user(&user, change).await;
        let changed = changed.map_err(|error| submit_error(error, ResourceKind::ChatUser))?;
        match changed {
            ChatUserReply::Done => {}
            ChatUserReply::HasSession(_) | ChatUserReply::Unknown => {
                return Err(AppError::NotFound(ResourceKind::ChatUser));
            }
        }
        let changed = self.find_chat_user(caller, &user).await?;
        self.complete(idempotency, changed).await
    }

    async fn find_chat_user(
        &self,
        caller: &Identity,
        user: &ChatUserId,
    ) -> Result<FoundUser, AppError> {
        let row = self
            .runtime()
            .store()
            .chat_user(&caller.tenant, user)
            .await?;
        let found = row.and_then(|row| FoundUser::from_row(row, caller));
        found.ok_or(AppError::NotFound(ResourceKind::ChatUser))
    }
}

fn check_change(change: &ProfileChange) -> Result<(), AppError> {
    if let Some(name) = &change.display_name
        && !(1..=MAX_NAME_CHARS).contains(&name.trim().chars().count())
    {
        let message = format!("must have 1 to {MAX_NAME_CHARS} characters");
        return Err(AppError::invalid("/displayName", message));
    }
    if let Some(tags) = &change.tags {
        let is_bad = |tag: &String| !(1..=MAX_TAG_CHARS).contains(&tag.chars().count());
        if tags.len() > MAX_TAGS || tags.iter().any(is_bad) {
            let message =
                format!("must hold at most {MAX_TAGS} tags of 1 to {MAX_TAG_CHARS} characters");
            return Err(AppError::invalid("/tags", message));
        }
    }
    if change.preferences.as_ref().is_some_and(|p| !p.is_object()) {
        return Err(AppError::invalid("/preferences", "must be an object"));
    }
    let format = change
        .preferences
        .as_ref()
        .and_then(|p| p.get(REPLY_FORMAT));
    if let Some(format) = format
        && !format.is_null()
        && !format.as_str().is_some_and(|f| REPLY_FORMATS.contains(&f))
    {
        let message = format!("must be one of {}", REPLY_FORMATS.join(", "));
        let path = format!("/preferences/{REPLY_FORMAT}");
        return Err(AppError::invalid(path, message));
    }
    Ok(())
}
