//! The only place where secrets are removed from events, before they become durable. Values that a
//! run needs but a reader must not see (values marked sensitive) are masked by the projection
//! instead. Values that must never be seen are removed here.
//!
//! Redaction works on strings as values, never on JSON as text: no escape hides a secret, and no
//! replacement can break a document. [`tandem_record::UserData`] defines which parts of a record
//! are data. Names and ids are not changed, even when one of them looks like a credential.
//!
//! Nearly all records are clean. [`Texts`] collects the strings of a record while it is serialized,
//! and one search over them decides. Only a record that may hold a secret is examined part by part.

mod finder;
mod shapes;
mod split;
mod texts;

#[cfg(test)]
mod tests;

use aho_corasick::AhoCorasick;
use finder::Finder;
use serde_json::Value;
use std::collections::HashMap;
use tandem_record::{Object, UserData, UserDataRefs};
pub(crate) use texts::Texts;

/// Shorter secrets would mask ordinary words.
const MIN_SECRET_CHARS: usize = 8;
/// A mask can form another secret together with the text beside it. Bounded because a secret may
/// consist of masks alone.
const MAX_ROUNDS: usize = 4;
const MARK: &str = "[REDACTED]";

#[derive(Clone)]
pub struct Redactor {
    configured: Vec<ConfiguredSecret>,
    /// For each form of a configured secret, its index in `configured`.
    owners: Vec<usize>,
    /// Finds these forms. `None` when no secret is configured.
    forms: Option<AhoCorasick>,
    /// Checks whether both ends of a form are present, which every form needs, in one piece or in
    /// several.
    ends: Option<split::Ends>,
    /// Parts that every secret contains: literals of the shapes, then the beginnings of the forms.
    signs: Finder,
    /// Whether a secret could be written as a JSON number.
    numeric: bool,
}

#[derive(Clone)]
struct ConfiguredSecret {
    value: String,
    mark: String,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(std::iter::empty())
    }
}

impl Redactor {
    /// Redacts these secrets, given as id and value.
    pub fn new<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let secrets: Vec<(&str, &str)> = secrets
            // The mask itself cannot be a secret.
            .filter(|(_, value)| {
                value.chars().count() >= MIN_SECRET_CHARS && !MARK.contains(*value)
            })
            .collect();
        let reveals_secret = |id: &str| {
            shapes::redact(id).is_some() || secrets.iter().any(|(_, value)| id.contains(value))
        };
        let mut configured = Vec::new();
        let mut forms = Vec::new();
        let mut owners = Vec::new();
        for (id, value) in &secrets {
            let mark = match reveals_secret(id) {
                true => MARK.to_owned(),
                false => format!("[REDACTED:{id}]"),
            };
            // A document may hold JSON as text, in which the secret is escaped.
            let quoted = Value::from(*value).to_string();
            let escaped = quoted[1..quoted.len() - 1].to_owned();
            for form in [
                Some((*value).to_owned()),
                Some(escaped).filter(|e| e != value),
            ] {
                owners.extend(form.as_ref().map(|_| configured.len()));
                forms.extend(form);
            }
            let value = (*value).to_owned();
            configured.push(ConfiguredSecret { value, mark });
        }
        let numeric = |form: &String| form.bytes().all(|b| b"0123456789.-+eE".contains(&b));
        let mut signs: Vec<&str> = shapes::literals().collect();
        signs.extend(forms.iter().map(|form| split::head(form)));
        Self {
            numeric: forms.iter().any(numeric),
            signs: Finder::new(&signs),
            ends: split::Ends::new(&forms),
            forms: (!forms.is_empty())
                .then(|| AhoCorasick::new(&forms).expect("secrets are few and short")),
            owners,
            configured,
        }
    }

    /// An empty collector, filled while records are serialized.
    pub(crate) fn texts(&self) -> Texts {
        Texts {
            with_numbers: self.numeric,
            search_json_only: self.configured.is_empty(),
            ..Texts::default()
        }
    }

    /// Whether a record with this JSON and these texts must be examined. Never `false` for a record
    /// that holds a secret.
    pub(crate) fn needs_redaction(&self, json: &str, texts: &Texts) -> bool {
        if texts.search_json_only {
            return self.may_hold_secret(json, true);
        }
        self.may_hold_secret(&texts.values, false) || self.may_hold_secret(&texts.names, false)
    }

    fn may_hold_secret(&self, text: &str, escaped: bool) -> bool {
        let mut matcher = shapes::Matcher::default();
        let mut from = 0;
        let mut ends_checked = false;
        while let Some(found) = self.signs.find(text, from) {
            let sign = found.pattern().as_usize();
            if sign < shapes::COUNT {
                // What precedes the literal is not checked here: it may be in another text.
                let credential = matcher.credential(text.as_bytes(), sign, found.range());
                if credential.is_some() || (escaped && shapes::may_be_escaped(sign)) {
                    return true;
                }
            } else if !std::mem::replace(&mut ends_checked, true)
                && self.ends.as_ref().is_some_and(|ends| ends.both_in(text))
            {
                return true;
            }
            from = found.start() + 1;
        }
        false
    }

    /// Redacts data that is stored together, keys included. Returns whether anything was found.
    pub(crate) fn redact(&self, mut places: UserDataRefs<'_>) -> bool {
        let mut changed = false;
        for place in &mut places {
            changed |= match place {
                UserData::Text(text) => self.replace(text),
                UserData::Value(value) => self.replace_in_value(value),
                UserData::Object(object) => self.replace_in_object(object),
            };
        }
        if let Some(ends) = &self.ends {
            let mut texts = split::texts_of(places);
            let joined: String = texts.iter().map(|text| text.as_str()).collect();
            if ends.both_in(&joined) {
                for ConfiguredSecret { value, mark } in &self.configured {
                    changed |= split::mask(&mut texts, value, mark);
                }
            }
        }
        changed
    }

    /// Redacts a value. Returns whether anything was found.
    pub fn redact_value(&self, value: &mut Value) -> bool {
        self.redact(vec![UserData::Value(value)])
    }

    /// The redacted text; `None` when there was nothing to redact.
    pub fn redact_text(&self, text: &str) -> Option<String> {
        let mut clean: Option<String> = None;
        for _ in 0..MAX_ROUNDS {
            let text = clean.as_deref().unwrap_or(text);
            let configured = self.replace_configured(text);
            let shaped = shapes::redact(configured.as_deref().unwrap_or(text));
            match shaped.or(configured) {
                Some(cleaner) => clean = Some(cleaner),
                None => break,
            }
        }
        clean
    }

    fn replace(&self, text: &mut String) -> bool {
        let clean = self.redact_text(text);
        let changed = clean.is_some();
        if let Some(clean) = clean {
            *text = clean;
        }
        changed
    }

    fn replace_configured(&self, text: &str) -> Option<String> {
        let found = self.forms.as_ref()?.find_overlapping_iter(text);
        let mut found: Vec<_> = found
            .map(|found| (found.range(), self.owners[found.pattern().as_usize()]))
            .collect();
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut clean = String::new();
        let mut copied = 0;
        for (range, owner) in found {
            // Overlapping secrets are masked together.
            if range.start >= copied {
                clean.push_str(&text[copied..range.start]);
                clean.push_str(&self.configured[owner].mark);
            }
            copied = copied.max(range.end);
        }
        (copied > 0).then(|| clean + &text[copied..])
    }

    fn replace_in_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.replace(text),
            Value::Array(items) => {
                let changed = items.iter_mut().map(|item| self.replace_in_value(item));
                changed.fold(false, |any, changed| any | changed)
            }
            Value::Object(object) => self.replace_in_object(object),
            Value::Number(number) if self.numeric => {
                let clean = self.replace_configured(&number.to_string());
                let changed = clean.is_some();
                if let Some(clean) = clean {
                    *value = Value::String(clean);
                }
                changed
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn replace_in_object(&self, object: &mut Object) -> bool {
        let mut changed = false;
        for value in object.values_mut() {
            changed |= self.replace_in_value(value);
        }
        if object.keys().all(|key| self.redact_text(key).is_none()) {
            return changed;
        }
        let mut renamed = Vec::new();
        for (key, value) in std::mem::take(object) {
            match self.redact_text(&key) {
                Some(clean) => renamed.push((clean, value)),
                None => drop(object.insert(key, value)),
            }
        }
        // Different secrets may get the same mask. Number the keys so that their members stay
        // apart.
        let mut times: HashMap<String, usize> = HashMap::new();
        for (mask, value) in renamed {
            let count = times.entry(mask.clone()).or_insert(0);
            let mut key = mask.clone();
            while object.contains_key(&key) {
                *count += 1;
                key = format!("{mask} ({})", *count + 1);
            }
            object.insert(key, value);
        }
        true
    }
}
