//! An audit entry before it has a sequence, and as it is parsed from a row.

use super::canonical::write_canonical;
use super::hash::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;
use tandem_record::{Actor, Object, TenantId, Timestamp};

/// Action of entries about decided questions; their target is the question.
pub const DECISION: &str = "interrupt.resolve";

/// An audit entry of a commit before it has a sequence. Encoded when it is created, so that the
/// writer only inserts the sequence and hashes it: the field names sort so that the fields which
/// depend on the sequence are in the middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditDraft {
    before_place: String,
    after_place: String,
}

impl AuditDraft {
    /// `details` must not contain secrets: they are not redacted later. The actor's principal is
    /// added to them.
    pub fn new(
        at: Timestamp,
        tenant: Option<&TenantId>,
        actor: &Actor,
        action: &str,
        target: &str,
        mut details: Object,
    ) -> Self {
        if let Some(principal) = &actor.principal {
            details.insert("principal".to_owned(), Value::from(principal.as_str()));
        }
        let mut before = Vec::with_capacity(384);
        before.extend_from_slice(br#"{"action":"#);
        text(&mut before, action);
        before.extend_from_slice(br#","actor":"#);
        text(&mut before, &actor.auth_method.to_string());
        before.extend_from_slice(br#","details":"#);
        write_canonical(&mut before, &Value::Object(details));
        before.extend_from_slice(br#","occurredAt":"#);
        text(&mut before, &occurred_at(at));
        let mut after = Vec::with_capacity(96);
        after.extend_from_slice(br#","target":"#);
        text(&mut after, target);
        after.extend_from_slice(br#","tenant":"#);
        match tenant {
            Some(tenant) => text(&mut after, tenant.as_str()),
            None => after.extend_from_slice(b"null"),
        }
        after.push(b'}');
        let utf8 = |bytes| String::from_utf8(bytes).expect("JSON is UTF-8");
        Self {
            before_place: utf8(before),
            after_place: utf8(after),
        }
    }

    /// The entry at its sequence: its canonical form, stored unchanged, and its hash.
    pub fn encode_at(&self, seq: u64, before: Option<Hash>) -> (String, Hash) {
        let Self {
            before_place,
            after_place,
        } = self;
        // Capacity for the two names, a hash and a number.
        let mut body = String::with_capacity(before_place.len() + after_place.len() + 112);
        body.push_str(before_place);
        match before {
            Some(hash) => write!(body, r#","prevHash":"{hash}","seq":{seq}"#),
            None => write!(body, r#","prevHash":null,"seq":{seq}"#),
        }
        .expect("writing to a string cannot fail");
        body.push_str(after_place);
        let hash = Hash::of(body.as_bytes());
        (body, hash)
    }
}

/// A parsed entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub seq: u64,
    pub occurred_at: String,
    pub tenant: Option<String>,
    pub actor: String,
    pub action: String,
    pub target: String,
    pub details: Object,
    pub prev_hash: Option<String>,
}

/// A text in canonical form. Ordinary JSON escapes it in the same way, and faster.
fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text is JSON");
}

/// RFC 3339 in UTC with milliseconds.
pub(super) fn occurred_at(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

pub(super) fn read_time(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(at.as_millisecond()))
}
