//! The only place where secrets are removed from events, before they become durable. Values that a
//! run needs but a reader must not see (values marked sensitive) are masked by the projection
//! instead. Values that must never be seen are removed here.
//!
//! Redaction works on strings as values, never on JSON as text: no escape hides a secret, and no
//! replacement can break a document. [`tandem_record::UserData`] defines which parts of a record
//! are data. Names and ids are not changed, even when one of them looks like a credential.
//!
//! A configured secret is also known in its common encodings ([`encodings`]).
//!
//! Nearly every record is clean. [`Texts`] collects its strings while it is serialized, and one search
//! through them says so; only a record that may hold a secret is looked at part by part.

mod encodings;
mod finder;
mod known;
mod shapes;
mod split;
mod stream;
mod texts;

#[cfg(test)]
mod tests;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use finder::Finder;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use tandem_record::{Object, UserData, UserDataRefs};
pub(crate) use texts::Texts;

/// Shorter secrets would mask ordinary words.
const MIN_SECRET_CHARS: usize = 8;
/// A mask can form another secret together with the text beside it. Bounded because a secret may
/// consist of masks alone.
const MAX_ROUNDS: usize = 4;
const MARK: &str = "[REDACTED]";
/// Encoded forms are not looked for in pieces, so more of their beginning can be asked for: hex and base64
/// are everywhere.
const ENCODED_HEAD_BYTES: usize = 8;

#[derive(Clone)]
pub struct Redactor {
    configured: Vec<ConfiguredSecret>,
    /// For each form of a configured secret, its index in `configured`.
    owners: Vec<usize>,
    /// Finds these forms. `None` when no secret is configured.
    forms: Option<AhoCorasick>,
    /// The forms in order, to find those that begin like a text.
    sorted_forms: Vec<String>,
    longest_form: usize,
    /// Tells whether both ends of a secret are there, which it needs, in one piece or in several.
    ends: Option<split::Ends>,
    /// Parts that every secret contains: literals of the shapes, then the beginnings of the forms.
    signs: Finder,
    /// Whether a form begins like this literal of a shape, which then is found in its place.
    hides_form: [bool; shapes::COUNT],
    /// A secret could be written as a JSON number.
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
        let mut owners = Vec::new();
        let mut forms = Vec::new();
        // In one piece or in several: as they are, and in JSON that is itself a text.
        let mut splittable = Vec::new();
        for (owner, (_, value)) in secrets.iter().enumerate() {
            let escaped = Some(encodings::json(value)).filter(|escaped| escaped != value);
            splittable.extend([(*value).to_owned()].into_iter().chain(escaped));
            owners.resize(splittable.len(), owner);
        }
        forms.extend(splittable.iter().cloned());
        for (owner, (_, value)) in secrets.iter().enumerate() {
            forms.extend(encodings::all(value));
            owners.resize(forms.len(), owner);
        }
        let heads: BTreeSet<&str> = splittable.iter().map(|form| split::head(form)).collect();
        let encoded = forms[splittable.len()..]
            .iter()
            .map(|form| head_of_encoded(form));
        let encoded: BTreeSet<&str> = encoded
            .filter(|head| !heads.iter().any(|shorter| head.starts_with(shorter)))
            .collect();
        let heads: Vec<&str> = heads.into_iter().chain(encoded).collect();
        let mut hides_form = [false; shapes::COUNT];
        for (literal, hides) in shapes::literals().zip(&mut hides_form) {
            *hides = heads
                .iter()
                .any(|head| head.starts_with(literal) || literal.starts_with(head));
        }
        let mut signs: Vec<&str> = shapes::literals().collect();
        signs.extend(heads);
        // Small rather than fast: it is used where a sign was found.
        let automaton = (!forms.is_empty()).then(|| {
            AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(&forms)
                .expect("secrets are few and short")
        });
        let reveals_secret = |id: &str| {
            shapes::redact(id).is_some() || automaton.as_ref().is_some_and(|all| all.is_match(id))
        };
        let configured = secrets.iter().map(|(id, value)| ConfiguredSecret {
            value: (*value).to_owned(),
            mark: match reveals_secret(id) {
                true => MARK.to_owned(),
                false => format!("[REDACTED:{id}]"),
            },
        });
        let numeric = |form: &String| form.bytes().all(|b| b"0123456789.-+eE".contains(&b));
        let configured = configured.collect();
        let longest_form = forms.iter().map(String::len).max().unwrap_or(0);
        let mut sorted_forms = forms.clone();
        sorted_forms.sort_unstable();
        Self {
            configured,
            sorted_forms,
            longest_form,
            numeric: splittable.iter().any(numeric),
            signs: Finder::new(&signs),
            hides_form,
            ends: split::Ends::new(&splittable),
            forms: automaton,
            owners,
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
        let mut forms_checked = false;
        while let Some(found) = self.signs.find(text, from) {
            let sign = found.pattern().as_usize();
            let shape = (sign < shapes::COUNT).then_some(sign);
            if let Some(shape) = shape {
                // What comes before is not configured here: another text may.
                let credential = matcher.credential(text.as_bytes(), shape, found.range());
                if credential.is_some() || (escaped && shapes::may_be_escaped(shape)) {
                    return true;
                }
            }
            if shape.is_none_or(|shape| self.hides_form[shape])
                && !std::mem::replace(&mut forms_checked, true)
                && (self.ends.as_ref().is_some_and(|ends| ends.both_in(text))
                    || self.holds_known_secret(text))
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

fn head_of_encoded(form: &str) -> &str {
    &form[..form.floor_char_boundary(ENCODED_HEAD_BYTES)]
}
