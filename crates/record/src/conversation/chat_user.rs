//! What is stored of one user of one agent: the profile, and which session is active.

use super::ChatUser;
use crate::{AgentId, Owner, SessionId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a user becomes known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstContact {
    pub agent_id: AgentId,
    pub owner: Owner,
    pub user: ChatUser,
    pub transport: String,
    /// The user's address at the transport.
    pub address: String,
}

/// The body of a user's row: the profile, and whose user it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedChatUser {
    #[serde(flatten)]
    pub profile: ChatUser,
    /// `None`: belongs to the tenant and to no workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ChatUserEvent {
    Met(Box<FirstContact>),
    ProfileChanged(Box<ProfileChange>),
    SessionOpened { session_id: SessionId },
    SessionClosed { session_id: SessionId },
}

/// New values of a profile; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The user or an operator gave the name: a sender profile does not replace it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub name_is_chosen: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Merged into the preferences; `null` removes a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferences: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ChatUserCommand {
    /// A session begins, with the user's first message if they are new.
    OpenSession {
        contact: Box<FirstContact>,
        session: SessionId,
    },
    CloseSession {
        session: SessionId,
    },
    ChangeProfile(Box<ProfileChange>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ChatUserReply {
    Done,
    /// Another session of the user is active.
    HasSession(SessionId),
    /// The user is not known.
    Unknown,
}
