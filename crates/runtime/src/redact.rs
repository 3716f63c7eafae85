//! The one place where secrets are taken out of facts, before they become durable. What a reader
//! must not see although the run needs it (values marked sensitive) is masked by the projection
//! instead; what nobody may ever see stops here.
//!
//! Only values are cleaned. Names and ids hold the run together and are left alone, even when one
//! of them happens to look like a credential: the id of an effect is forty-three random characters.

use crate::split::{self, Glance};
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// Shapes of credentials that have no business in a log.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\b(?:sk-[A-Za-z0-9_-]{16,}",
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}",
        r"|xox[baprs]-[A-Za-z0-9-]{10,}",
        r"|gh[pousr]_[A-Za-z0-9]{20,}",
        r"|tdm_(?:live|test)_[A-Za-z0-9_-]{20,}",
        r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        r"|[Bb]earer [A-Za-z0-9._~+/=-]{16,})",
    ))
    .expect("the pattern is fixed")
});

/// Secrets shorter than this would blank out ordinary words.
const MIN_SECRET_CHARS: usize = 8;

/// Direct members of an event that name something.
const NAMES: [&str; 23] = [
    "t",
    "node",
    "type_id",
    "workflow_id",
    "definition",
    "resets",
    "trigger",
    "interrupted",
    "interrupt",
    "child",
    "failed_node",
    "by",
    "by_parent",
    "name",
    "channel",
    "reducer",
    "kind",
    "key",
    "status",
    "policy",
    "artifact_id",
    "artifact_type",
    "sources",
];
/// Where what a node waits for holds words that are not the engine's own.
const WORDS_OF_WORK: [&str; 3] = [
    "/request",
    "/mock/script/pieces",
    "/mock/script/ending/failure",
];
/// Members of a run's request that are values.
const REQUESTED: [&str; 4] = ["inputs", "options", "scope_id", "callback_url"];

#[derive(Default, Clone)]
pub struct Redactor {
    /// Longest first.
    known: Vec<Known>,
    /// Absent when nothing is known.
    glance: Option<Glance>,
}

#[derive(Clone)]
struct Known {
    id: String,
    value: String,
    /// As it stands in JSON.
    escaped: String,
}

impl Redactor {
    /// Knows these secrets by id.
    pub fn new<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut known: Vec<Known> = secrets
            .filter(|(_, value)| value.chars().count() >= MIN_SECRET_CHARS)
            .map(|(id, value)| Known {
                id: id.to_owned(),
                value: value.to_owned(),
                escaped: escaped(value),
            })
            .collect();
        known.sort_by_key(|secret| std::cmp::Reverse(secret.escaped.len()));
        let glance = Glance::new(known.iter().map(|secret| &*secret.escaped));
        Self { known, glance }
    }

    /// An event as it is stored, its values without secrets; `None` when there was nothing to take
    /// out.
    pub(crate) fn scrub_event(&self, body: &str) -> Option<String> {
        // Nearly every event is clean, and a look at its text says so.
        if self.scrub(body).is_none() && !self.may_be_split(body) {
            return None;
        }
        let before: Value = serde_json::from_str(body).expect("an event is JSON");
        let mut after = before.clone();
        for (key, value) in after["e"].as_object_mut().into_iter().flatten() {
            let names = value.is_string()
                || value
                    .as_array()
                    .is_some_and(|a| a.iter().all(Value::is_string));
            match key.as_str() {
                "work" => {
                    for told in WORDS_OF_WORK {
                        if let Some(words) = value.pointer_mut(told) {
                            self.clean(words);
                        }
                    }
                }
                "request" => {
                    let members = value.as_object_mut().into_iter().flatten();
                    members
                        .filter(|(key, _)| REQUESTED.contains(&key.as_str()))
                        .for_each(|(_, value)| self.clean(value));
                }
                key if names && NAMES.contains(&key) => {}
                "entry" | "output" if value.get("memory_ref").is_some() => {
                    self.clean_entry(value);
                }
                _ => self.clean(value),
            }
        }
        (before != after).then(|| after.to_string())
    }

    /// Takes secrets out of a value, keys included.
    pub(crate) fn clean(&self, value: &mut Value) {
        if let Some(clean) = self.scrub(&value.to_string()) {
            *value = serde_json::from_str(&clean)
                .expect("replacing text inside JSON strings keeps a value readable");
        }
        if self.may_be_split(&value.to_string()) {
            let known = self.known.iter();
            split::mask(value, known.map(|secret| (&*secret.value, &*secret.id)));
        }
    }

    /// What is written and what it is tagged with are one text to a reader.
    fn clean_entry(&self, entry: &mut Value) {
        let Some(members) = entry.as_object_mut() else {
            return;
        };
        let names = ["value", "tags"].into_iter();
        let (names, texts): (Vec<&str>, Vec<Value>) = names
            .filter_map(|name| Some((name, members.remove(name)?)))
            .unzip();
        let mut texts = Value::Array(texts);
        self.clean(&mut texts);
        self.clean(entry);
        for (place, name) in names.into_iter().enumerate() {
            entry[name] = texts[place].take();
        }
    }

    fn may_be_split(&self, json: &str) -> bool {
        let glance = self.glance.as_ref();
        glance.is_some_and(|glance| glance.may_be_split(json))
    }

    /// The text without secrets; `None` when there was nothing to take out.
    pub fn scrub(&self, json: &str) -> Option<String> {
        let mut scrubbed = None;
        let glance = self.glance.as_ref();
        let whole = glance.is_some_and(|glance| glance.is_whole(json));
        for Known { id, escaped, .. } in self.known.iter().filter(|_| whole) {
            let text: &str = scrubbed.as_deref().unwrap_or(json);
            if text.contains(escaped.as_str()) {
                scrubbed = Some(text.replace(escaped.as_str(), &format!("[REDACTED:{id}]")));
            }
        }
        let text: &str = scrubbed.as_deref().unwrap_or(json);
        match SHAPES.replace_all(text, "[REDACTED]") {
            std::borrow::Cow::Borrowed(_) => scrubbed,
            std::borrow::Cow::Owned(clean) => Some(clean),
        }
    }
}

fn escaped(value: &str) -> String {
    let quoted = serde_json::to_string(value).expect("text is always JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_and_credential_shapes_disappear() {
        let redactor = Redactor::new(
            [
                ("db", "hunter2-hunter2"),
                ("short", "abc"),
                ("quoted", "va\"lue-12345"),
            ]
            .into_iter(),
        );
        let scrub = |value: &str| {
            let json = serde_json::to_string(value).unwrap();
            redactor.scrub(&json)
        };
        assert_eq!(
            scrub("x hunter2-hunter2 y").as_deref(),
            Some("\"x [REDACTED:db] y\"")
        );
        assert_eq!(
            scrub("va\"lue-12345").as_deref(),
            Some("\"[REDACTED:quoted]\"")
        );
        assert_eq!(scrub("abc and skills and a bearer of news"), None);
        let mut pieces = serde_json::json!(["ab", "c", "a", "bc"]);
        redactor.clean(&mut pieces);
        assert_eq!(
            pieces,
            serde_json::json!(["ab", "c", "a", "bc"]),
            "too short"
        );
        for token in [
            "sk-abcdefghijklmnopqrstuv",
            "AKIAABCDEFGHIJKLMNOP",
            "ghp_abcdefghijklmnopqrstuvwxyz",
            "Bearer abcdefghijklmnop1234",
            "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        ] {
            assert_eq!(scrub(token).as_deref(), Some("\"[REDACTED]\""), "{token}");
        }
    }
}
