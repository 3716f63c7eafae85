//! What a reply to a confirmation means.
//!
//! With a schema the steps are separate, because the caller may ask a model between them:
//! [`ConfirmReader::read_directly`], then the extraction, whose value goes to
//! [`ConfirmReader::read_extracted`], then [`ConfirmReader::read_refusal`].
//! A schema that lives in a realm is validated there: the caller tries the values of
//! [`ConfirmReader::candidates`] in order.

use super::scalar;
use super::{KeywordMatch, Keywords, Language};
use crate::flow::{AuthorSchema, SchemaSource};
use serde_json::Value;
use tandem_schema::{MAX_WORK, Meter};

/// A longer reply is no payload.
const MAX_REPLY_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub enum ConfirmReading {
    /// `true`, or the payload.
    Positive(Value),
    /// `false`, or `null` with a schema.
    Negative(Value),
    Unrecognized,
}

/// Reads replies to one confirmation.
#[derive(Debug)]
pub struct ConfirmReader<'a> {
    pub keywords: &'a Keywords,
    pub schema: Option<&'a AuthorSchema>,
    pub language: Language,
}

impl ConfirmReader<'_> {
    /// All steps, without a model.
    pub fn read(&self, text: &str) -> ConfirmReading {
        let direct = self.read_directly(text);
        direct.unwrap_or_else(|| self.read_refusal(text))
    }

    /// The reply itself as an answer. Without a schema this is the only step.
    pub fn read_directly(&self, text: &str) -> Option<ConfirmReading> {
        let Some(schema) = self.schema else {
            return Some(match self.keywords.read(text) {
                KeywordMatch::Positive => ConfirmReading::Positive(true.into()),
                KeywordMatch::Negative => ConfirmReading::Negative(false.into()),
                KeywordMatch::Unrecognized => ConfirmReading::Unrecognized,
            });
        };
        if schema.is_in_realm() {
            return None;
        }
        let mut candidates = self.candidates(text).into_iter();
        candidates.find_map(|value| self.read_extracted(value))
    }

    /// A value that a model extracted, if it fits the schema.
    pub fn read_extracted(&self, value: Value) -> Option<ConfirmReading> {
        let errors = self.schema?.errors(&value, &Meter::with_limit(MAX_WORK));
        errors.is_empty().then(|| payload(value))
    }

    /// Whether the reply refuses, after nothing else could be read from it.
    pub fn read_refusal(&self, text: &str) -> ConfirmReading {
        match self.keywords.read(text) {
            KeywordMatch::Negative if self.schema.is_some() => {
                ConfirmReading::Negative(Value::Null)
            }
            KeywordMatch::Negative => ConfirmReading::Negative(false.into()),
            KeywordMatch::Positive | KeywordMatch::Unrecognized => ConfirmReading::Unrecognized,
        }
    }

    /// What the reply can stand for, in the order in which it should be validated.
    pub fn candidates(&self, text: &str) -> Vec<Value> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_REPLY_BYTES {
            return Vec::new();
        }
        let mut candidates: Vec<Value> = serde_json::from_str(text).ok().into_iter().collect();
        match self.schema.map(AuthorSchema::source) {
            Some(SchemaSource::Json(schema)) => {
                let boolean = |text: &str| self.boolean(text);
                candidates.extend(scalar::coerce(text, schema, self.language, boolean));
            }
            // Its type is known to its code only: everything a text can be.
            Some(SchemaSource::Realm(_)) | None => {
                let any = serde_json::json!({"type": ["number", "boolean"]});
                let boolean = |text: &str| self.boolean(text);
                candidates.push(Value::String(text.to_owned()));
                candidates.extend(scalar::coerce(text, &any, self.language, boolean));
            }
        }
        candidates
    }

    fn boolean(&self, text: &str) -> Option<bool> {
        match self.keywords.read(text) {
            KeywordMatch::Positive => Some(true),
            KeywordMatch::Negative => Some(false),
            KeywordMatch::Unrecognized => None,
        }
    }
}

/// A value that fits the schema. The answer `false` is a refusal.
pub fn payload(value: Value) -> ConfirmReading {
    match value {
        Value::Bool(false) => ConfirmReading::Negative(value),
        value => ConfirmReading::Positive(value),
    }
}
