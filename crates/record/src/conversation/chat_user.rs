//! What is stored of one user of one agent: the profile, and which session is active.

use super::{ChatUser, UserConsent};
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
    /// Whether the user accepts messages they did not cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proactive: Option<bool>,
    /// Merged into the preferences; `null` removes a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferences: Option<Value>,
}

impl ProfileChange {
    /// Adds a later change; its values win.
    pub fn merge(&mut self, later: Self) {
        self.name_is_chosen |= later.name_is_chosen;
        self.display_name = later.display_name.or(self.display_name.take());
        self.tags = later.tags.or(self.tags.take());
        self.proactive = later.proactive.or(self.proactive);
        self.preferences = match (self.preferences.take(), later.preferences) {
            (Some(Value::Object(mut earlier)), Some(Value::Object(later))) => {
                earlier.extend(later);
                Some(Value::Object(earlier))
            }
            (earlier, later) => later.or(earlier),
        };
    }

    /// Changes a profile.
    pub fn apply_to(&self, profile: &mut ChatUser) {
        if let Some(name) = &self.display_name {
            profile.display_name.clone_from(name);
            profile.name_is_chosen |= self.name_is_chosen;
        }
        if let Some(tags) = &self.tags {
            profile.tags.clone_from(tags);
        }
        if let Some(proactive) = self.proactive {
            profile.consent = Some(UserConsent { proactive });
        }
        let Some(Value::Object(new)) = &self.preferences else {
            return;
        };
        if !profile.preferences.is_object() {
            profile.preferences = Value::Object(crate::Object::new());
        }
        if let Value::Object(preferences) = &mut profile.preferences {
            for (key, value) in new {
                match value {
                    Value::Null => drop(preferences.remove(key)),
                    value => drop(preferences.insert(key.clone(), value.clone())),
                }
            }
        }
    }
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
