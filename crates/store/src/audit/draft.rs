//! An entry before it has its place, and as it is read back.

use super::hash::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tandem_record::{Actor, Object, TenantId, Timestamp};

/// The action of entries that tell how a question was decided; their target is the question.
pub const DECISION: &str = "interrupt.resolve";

/// What a commit wants told. Rendered when it is made, so that the writer only has to put in the
/// place and hash it: the names of an entry's fields sort so that what depends on the place is in
/// the middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditDraft {
    before_place: String,
    after_place: String,
}

impl AuditDraft {
    /// `details` must be free of secrets: nothing takes them out later. The actor's principal is
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
        let before_place = format!(
            r#"{{"action":{},"actor":{},"details":{},"occurredAt":{}"#,
            text(action),
            text(&actor.via.to_string()),
            canonical_object(&details),
            text(&occurred_at(at)),
        );
        let tenant = tenant.map_or_else(|| "null".to_owned(), |tenant| text(tenant.as_str()));
        let after_place = format!(r#","target":{},"tenant":{tenant}}}"#, text(target));
        Self {
            before_place,
            after_place,
        }
    }

    /// The entry at its place: its canonical form, to be stored as it is, and its hash.
    pub fn placed(&self, seq: u64, before: Option<Hash>) -> (String, Hash) {
        let Self {
            before_place,
            after_place,
        } = self;
        let before = before.map_or_else(|| "null".to_owned(), |hash| format!("\"{hash}\""));
        let body = format!(r#"{before_place},"prevHash":{before},"seq":{seq}{after_place}"#);
        let hash = Hash::of(body.as_bytes());
        (body, hash)
    }
}

/// An entry as it is read back.
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

/// A text in canonical form. Ordinary JSON escapes it the same way, and faster.
fn text(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

pub(super) fn canonical(value: &impl Serialize) -> String {
    serde_jcs::to_string(value).expect("plain data with text keys has a canonical form")
}

/// Every entry has details, and nearly all of them are texts under short names: those ordinary JSON
/// writes in canonical form as well, at a fraction of the cost.
fn canonical_object(details: &Object) -> String {
    let plain = |(name, value): (&String, &Value)| name.is_ascii() && value.is_string();
    if details.iter().all(plain) {
        return serde_json::to_string(details).expect("texts are JSON");
    }
    canonical(details)
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
