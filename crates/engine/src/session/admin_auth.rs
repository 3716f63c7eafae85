//! Who an admin is and what they may do, where that is data. Every path fails closed.
//!
//! Policies written as code run in the agent's realm; [`ResolvedActor::from_answer`] and
//! [`allows`] read what they answered. Signals of callers are never stored as they are.

use crate::agent::{AdminAuthData, AdminAuthSpec};
use crate::ids::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use tandem_record::conversation::AdminActor;

/// Longer ids and roles of an actor that code resolved are refused.
const MAX_ID_BYTES: usize = 512;
const API_CHANNEL: &str = "ui_api";
const WHATSAPP: &str = "whatsapp";

/// An authenticated person who may act on conversations, as far as `can` says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResolvedActor {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Roles and scopes of the API key. Not stored: a stored actor has no rights.
    #[serde(skip)]
    key: KeyGrants,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct KeyGrants {
    roles: Vec<String>,
    scopes: Vec<String>,
}

impl ResolvedActor {
    /// The actor as events record it.
    pub fn recorded(&self) -> AdminActor {
        AdminActor {
            id: self.id.clone(),
            role: self.role.clone(),
            channel: self.channel.clone(),
            metadata: self.metadata.clone(),
        }
    }
}

/// What a transport or the API knows about a caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdminSignals<'a> {
    /// The header `X-Admin-Token`.
    pub token: Option<&'a str>,
    pub chat: Option<ChatSignal<'a>>,
    /// The authenticated API key.
    pub key: Option<KeySignal<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub struct ChatSignal<'a> {
    pub transport: &'a str,
    pub address: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct KeySignal<'a> {
    pub principal: &'a str,
    pub roles: &'a [String],
    pub scopes: &'a [String],
}

/// Why a privileged action was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthzDenial {
    NoAuthConfig,
    NoActor,
    Forbidden,
    Error,
    Timeout,
}

/// Resolves the caller and checks the right, for policies that are data. Code is not called here:
/// it counts as an error.
pub fn authorize(
    auth: Option<&AdminAuthSpec>,
    action: &str,
    signals: &AdminSignals<'_>,
) -> Result<ResolvedActor, AuthzDenial> {
    let auth = auth.ok_or(AuthzDenial::NoAuthConfig)?;
    if *auth == AdminAuthSpec::Code {
        return Err(AuthzDenial::Error);
    }
    let actor = resolve_actor(auth, signals).ok_or(AuthzDenial::NoActor)?;
    if can(auth, action, &actor) {
        Ok(actor)
    } else {
        Err(AuthzDenial::Forbidden)
    }
}

pub fn resolve_actor(auth: &AdminAuthSpec, signals: &AdminSignals<'_>) -> Option<ResolvedActor> {
    match auth {
        AdminAuthSpec::Data(data) => match (signals.token, signals.chat) {
            // A wrong token is not made up for by an address.
            (Some(token), _) => by_token(data, token),
            (None, Some(chat)) => by_address(data, chat),
            (None, None) => None,
        },
        AdminAuthSpec::BuiltinKeys { .. } => signals.key.map(by_key),
        AdminAuthSpec::Code => None,
    }
}

/// Whether an actor may perform an action. An action that the policy does not know is denied.
pub fn can(auth: &AdminAuthSpec, action: &str, actor: &ResolvedActor) -> bool {
    let within = |roles: &BTreeMap<String, Vec<String>>, role: &String| {
        let allowed = roles.get(role);
        allowed.is_some_and(|allowed| allowed.iter().any(|one| one == action))
    };
    match auth {
        AdminAuthSpec::Data(data) => {
            let role = actor.role.as_ref();
            role.is_some_and(|role| within(&data.roles, role))
        }
        AdminAuthSpec::BuiltinKeys { roles } => {
            let key = &actor.key;
            key.roles.iter().any(|role| within(roles, role))
                || key.scopes.iter().any(|scope| scope_covers(scope, action))
        }
        AdminAuthSpec::Code => false,
    }
}

/// Whether code answered yes. Everything that is not `true` is a no.
pub fn allows(answer: &Value) -> bool {
    *answer == Value::Bool(true)
}

impl ResolvedActor {
    /// Reads what `resolveActor` of an author returned. Anything but an actor is nobody.
    pub fn from_answer(answer: &Value, channel: &str) -> Option<Self> {
        let short = |text: &&str| !text.trim().is_empty() && text.len() <= MAX_ID_BYTES;
        let id = answer["id"].as_str().filter(short)?;
        let role = match &answer["role"] {
            Value::Null => None,
            Value::String(role) if role.len() <= MAX_ID_BYTES => Some(role.clone()),
            _ => return None,
        };
        // The adapter knows how the actor came; the code cannot say otherwise.
        Some(Self {
            id: id.to_owned(),
            role,
            channel: channel.to_owned(),
            metadata: answer.get("metadata").filter(|m| m.is_object()).cloned(),
            key: KeyGrants::default(),
        })
    }

    fn new(id: &str, role: Option<&String>, channel: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            role: role.cloned(),
            channel: channel.into(),
            metadata: None,
            key: KeyGrants::default(),
        }
    }
}

impl AdminSignals<'_> {
    /// How the caller came, as `actor.channel` names it.
    pub fn channel(&self) -> String {
        match (self.token, self.chat) {
            (None, Some(chat)) => chat_channel(chat.transport),
            _ => API_CHANNEL.to_owned(),
        }
    }

    /// Stands for an unresolved caller in audit entries.
    pub fn digest(&self) -> Option<String> {
        let signal = match (self.token, self.chat, self.key) {
            (Some(token), _, _) => format!("token\0{token}"),
            (None, Some(chat), _) => format!("chat\0{}\0{}", chat.transport, chat.address),
            (None, None, Some(key)) => format!("key\0{}", key.principal),
            (None, None, None) => return None,
        };
        Some(hex(&Sha256::digest(signal.as_bytes())[..16]))
    }
}

/// Compares with every token, so that the time does not tell which one was close.
fn by_token(data: &AdminAuthData, token: &str) -> Option<ResolvedActor> {
    let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
    let mut found = 0_u64;
    for (position, known) in (1_u64..).zip(&data.tokens) {
        let equal = known.hash.ct_eq(&hash);
        found.conditional_assign(&position, equal);
    }
    let known = data
        .tokens
        .get(usize::try_from(found.checked_sub(1)?).ok()?)?;
    Some(ResolvedActor::new(
        &known.actor_id,
        known.role.as_ref(),
        API_CHANNEL,
    ))
}

fn by_address(data: &AdminAuthData, chat: ChatSignal<'_>) -> Option<ResolvedActor> {
    let known = data
        .chat
        .iter()
        .find(|known| known.transport == chat.transport && known.address == chat.address)?;
    let channel = chat_channel(chat.transport);
    Some(ResolvedActor::new(
        &known.actor_id,
        known.role.as_ref(),
        channel,
    ))
}

fn by_key(key: KeySignal<'_>) -> ResolvedActor {
    ResolvedActor {
        key: KeyGrants {
            roles: key.roles.to_vec(),
            scopes: key.scopes.to_vec(),
        },
        ..ResolvedActor::new(key.principal, key.roles.first(), API_CHANNEL)
    }
}

fn chat_channel(transport: &str) -> String {
    if transport == WHATSAPP {
        return WHATSAPP.to_owned();
    }
    format!("chat:{transport}")
}

/// The actions that a scope of an API key covers with `builtin: 'keys'`.
fn scope_covers(scope: &str, action: &str) -> bool {
    let actions: &[&str] = match scope {
        "approvals:respond" => &["hitl.escalation.view", "hitl.escalation.resolve"],
        "conversations:takeover" => &[
            "hitl.takeover.start",
            "hitl.takeover.end",
            "hitl.takeover.message",
            "hitl.proxy.input",
            "hitl.proxy.stop",
            "hitl.proxy.view",
        ],
        _ => &[],
    };
    actions.contains(&action)
}
