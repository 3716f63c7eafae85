//! Visitors of web chats: people without a key, each known by a token of their own.
//!
//! A token is 32 random bytes and a signature of the host over them and the agent. It is the only credential
//! of a conversation on the web, so nobody can make one up or guess one. The host stores no token: the user of
//! a visitor is named after a hash of the random part, and that name opens nothing.

use crate::digest::Digest;
use crate::link::LinkSigner;
use crate::secret::{Secret, random_token};
use tandem_record::AgentId;

/// Longest token worth looking at.
const MAX_TOKEN_BYTES: usize = 256;
/// Hexadecimal digits of the hash in a visitor's name.
const NAME_DIGITS: usize = 32;

/// Whom a conversation on the web belongs to. Safe to store and to show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VisitorId(String);

impl VisitorId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(random: &str) -> Self {
        let hash = Digest::of(random).to_hex();
        Self(format!("web-{}", &hash[..NAME_DIGITS]))
    }
}

impl LinkSigner {
    /// A token for a new visitor of an agent's web chat.
    pub fn issue_visitor_token(&self, agent: &AgentId) -> (VisitorId, Secret) {
        let random = random_token();
        let signature = self.sign_bytes(&signed_text(agent, &random));
        let token = Secret::new(format!("{random}.{signature}"));
        (VisitorId::of(&random), token)
    }

    /// The visitor of a token that this host issued for the agent; `None` for anything else.
    pub fn verify_visitor_token(&self, agent: &AgentId, token: &str) -> Option<VisitorId> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (random, signature) = token.split_once('.')?;
        self.verify_bytes(&signed_text(agent, random), signature)
            .then(|| VisitorId::of(random))
    }
}

/// Begins with what no signed link begins with, so that one cannot stand in for the other.
fn signed_text(agent: &AgentId, random: &str) -> Vec<u8> {
    format!("web-visitor\n{random}\n{agent}").into_bytes()
}
