//! Who may act on behalf of the desk: as data, as code of the author, or by the host's API keys.

use crate::object_reader::ObjectReader;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const MAX_ADMINS: usize = 1_000;
const MAX_ROLES: usize = 100;
const MAX_ACTIONS: usize = 200;
const HASH_PREFIX: &str = "sha256:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminAuthSpec {
    Data(AdminAuthData),
    /// `resolveActor` and `can` are functions of the author.
    Code,
    /// The API key's principal, scopes and roles.
    BuiltinKeys {
        /// Role of a key to the actions it may perform besides those of its scopes.
        roles: BTreeMap<String, Vec<String>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AdminAuthData {
    pub tokens: Vec<AdminToken>,
    pub chat: Vec<AdminChat>,
    /// Role to the actions it may perform.
    pub roles: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminToken {
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    pub actor_id: String,
    pub role: Option<String>,
}

/// An address from which an admin writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminChat {
    pub transport: String,
    pub address: String,
    pub actor_id: String,
    pub role: Option<String>,
}

pub(super) fn admin_auth(config: &ObjectReader<'_>) -> Option<AdminAuthSpec> {
    let auth = config.object("adminAuth")?;
    if auth.get("builtin").is_some() {
        auth.choice("builtin", &[("keys", ())]);
        for name in ["tokens", "chat", "resolveActor", "can"] {
            if auth.get(name).is_some() {
                auth.report(name, "cannot be combined with builtin");
            }
        }
        return Some(AdminAuthSpec::BuiltinKeys {
            roles: roles(&auth),
        });
    }
    if auth.get("resolveActor").is_some() || auth.get("can").is_some() {
        for name in ["resolveActor", "can"] {
            if auth.get(name).is_none() {
                auth.report(name, "is required; resolveActor and can belong together");
            }
            auth.function(name);
        }
        for name in ["tokens", "chat", "roles"] {
            if auth.get(name).is_some() {
                auth.report(name, "cannot be combined with resolveActor and can");
            }
        }
        return Some(AdminAuthSpec::Code);
    }
    Some(AdminAuthSpec::Data(data(&auth)))
}

fn roles(auth: &ObjectReader<'_>) -> BTreeMap<String, Vec<String>> {
    let section = auth.section("roles");
    let roles = auth.entries("roles", MAX_ROLES).into_iter();
    let roles = roles.map(|(role, _)| {
        let actions = section.texts(role, MAX_ACTIONS).unwrap_or_default();
        (role.to_owned(), actions)
    });
    roles.collect()
}

fn data(auth: &ObjectReader<'_>) -> AdminAuthData {
    let roles = roles(auth);
    let role_of = |entry: &ObjectReader<'_>| {
        let role = entry.text("role")?;
        if !roles.contains_key(&role) {
            entry.report("role", "is not a role of adminAuth.roles");
        }
        Some(role)
    };
    let tokens = auth.objects("tokens", MAX_ADMINS).into_iter();
    let tokens = tokens.map(|entry| AdminToken {
        hash: hash(&entry),
        actor_id: entry.required_text("actorId"),
        role: role_of(&entry),
    });
    let chat = auth.objects("chat", MAX_ADMINS).into_iter();
    let chat = chat.map(|entry| AdminChat {
        transport: entry.required_text("transport"),
        address: entry.required_text("address"),
        actor_id: entry.required_text("actorId"),
        role: role_of(&entry),
    });
    AdminAuthData {
        tokens: tokens.collect(),
        chat: chat.collect(),
        roles,
    }
}

fn hash(entry: &ObjectReader<'_>) -> [u8; 32] {
    let text = entry.required_text("hash");
    let digits = text.strip_prefix(HASH_PREFIX);
    let Some(bytes) = digits.and_then(from_hex) else {
        if !text.trim().is_empty() {
            entry.report("hash", "must be sha256: and 64 hexadecimal digits");
        }
        return [0; 32];
    };
    bytes
}

fn from_hex(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, i) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&digits[i..i + 2], 16).ok()?;
    }
    Some(bytes)
}
