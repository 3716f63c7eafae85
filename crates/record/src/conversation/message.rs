//! Messages and the people who write them.

use crate::{ChatUserId, MessageId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message as a transport delivered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InboundMessage {
    pub message_id: MessageId,
    /// The address of the sender.
    pub from: String,
    pub body: String,
    /// `text` when absent.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_profile: Option<SenderProfile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<Value>,
    /// The client of the UI channel that sent it; absent for messages of other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The message it replies to, as the network names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted_id: Option<String>,
    /// A bridge of some host relayed it: it is not relayed again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relayed: bool,
    pub received_at: Timestamp,
    /// When the user wrote it, as the network says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SenderProfile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

/// What an agent knows of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatUser {
    pub id: ChatUserId,
    pub external_user_id: String,
    pub display_name: String,
    /// The user or an operator gave the name: a sender profile does not replace it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub name_is_chosen: bool,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub preferences: Value,
    /// Absent until the user says something about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<UserConsent>,
}

impl ChatUser {
    /// Somebody of whom only the address is known.
    pub fn stranger(id: ChatUserId, external_user_id: &str) -> Self {
        Self {
            id,
            external_user_id: external_user_id.to_owned(),
            display_name: external_user_id.to_owned(),
            name_is_chosen: false,
            tags: Vec::new(),
            preferences: Value::Object(crate::Object::new()),
            consent: None,
        }
    }
}

/// What the user agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserConsent {
    /// Messages the user did not cause.
    pub proactive: bool,
}

/// A person who acts on a session by right, as the agent's rules resolved them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdminActor {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    User,
    Assistant,
    /// Of the host, for the model: nobody wrote it.
    Note,
}

/// Who wrote an assistant's message, if not the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    pub kind: String,
    pub actor_id: String,
}

/// One message of the conversation as the model and readers see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerMessage {
    pub id: String,
    pub role: MessageRole,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    pub at: Timestamp,
}
