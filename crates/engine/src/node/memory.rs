//! `vendor.tandem.memory`.

use super::ParseContext;
use super::settings::{Setting, value};
use serde_json::Value;
use tandem_record::Object;

/// Longest TTL of an entry: a century. A longer one is probably a wrong unit.
const MAX_TTL_SECONDS: f64 = 100.0 * 366.0 * 86_400.0;
const MAX_KEY_CHARS: usize = 1500;
const MAX_TAGS: usize = 32;
const MAX_TAG_CHARS: usize = 256;
/// Number of entries of a listing without a limit, and the maximum of any listing.
const DEFAULT_LISTED: usize = 100;
const MAX_LISTED: usize = 500;

/// The settings of all actions.
pub(super) const SETTINGS: &[Setting] = &[
    value("action"),
    value("key"),
    value("keyFrom"),
    value("value"),
    value("valueFrom"),
    value("ttlSeconds"),
    value("tags"),
    value("tag"),
    value("text"),
    value("limit"),
    value("output"),
];

#[derive(Debug)]
pub(crate) struct MemoryConfig {
    pub(crate) action: MemoryAction,
    /// Variable that receives the result.
    pub(crate) output: Option<String>,
}

#[derive(Debug)]
pub(crate) enum MemoryAction {
    Put {
        /// Without a key the entry is a note, named by its id.
        key: Option<String>,
        value: MemorySource,
        ttl_ms: Option<u64>,
        tags: Vec<String>,
    },
    Get {
        key: MemoryKey,
    },
    List {
        tag: Option<String>,
        /// Only entries that contain this text, ignoring case.
        text: Option<String>,
        limit: usize,
    },
    Delete {
        key: MemoryKey,
    },
}

impl MemoryAction {
    pub(crate) fn only_reads(&self) -> bool {
        match self {
            Self::Get {
                key: MemoryKey::Text(_),
            }
            | Self::List { .. } => true,
            // The key is only known during execution; a replay looks everything up at once.
            Self::Get {
                key: MemoryKey::Variable(_),
            }
            | Self::Put { .. }
            | Self::Delete { .. } => false,
        }
    }
}

/// The key of a lookup.
#[derive(Debug)]
pub(crate) enum MemoryKey {
    Text(String),
    /// Named by a variable: the id of a note, for example.
    Variable(String),
}

/// Where a written value comes from.
#[derive(Debug)]
pub(crate) enum MemorySource {
    Value(Value),
    Variable(String),
}

impl MemoryConfig {
    /// The variables whose values the node uses.
    pub(crate) fn variables_read(&self) -> impl Iterator<Item = &str> {
        let (key, value) = match &self.action {
            MemoryAction::Put { value, .. } => (None, Some(value)),
            MemoryAction::Get { key } | MemoryAction::Delete { key } => (Some(key), None),
            MemoryAction::List { .. } => (None, None),
        };
        let key = key.and_then(|key| match key {
            MemoryKey::Variable(name) => Some(name.as_str()),
            MemoryKey::Text(_) => None,
        });
        let value = value.and_then(|value| match value {
            MemorySource::Variable(name) => Some(name.as_str()),
            MemorySource::Value(_) => None,
        });
        key.into_iter().chain(value)
    }

    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let action = match cx.required_text(config, "action")?.as_str() {
            "put" => MemoryAction::Put {
                key: optional_key(config, cx)?,
                value: source(config, cx)?,
                ttl_ms: ttl_ms(config, cx)?,
                tags: tags(config, cx)?,
            },
            "get" => MemoryAction::Get {
                key: key(config, cx)?,
            },
            "delete" => MemoryAction::Delete {
                key: key(config, cx)?,
            },
            "list" | "search" => MemoryAction::List {
                tag: cx.text(config, "tag")?,
                text: cx.text(config, "text")?.map(|text| text.to_lowercase()),
                limit: limit(config, cx)?,
            },
            other => {
                return cx.bad(
                    "action",
                    format!("{other:?} is none of put, get, list, search and delete"),
                );
            }
        };
        Some(Self {
            action,
            output: cx.text(config, "output")?,
        })
    }
}

fn key(config: &Object, cx: &mut ParseContext<'_>) -> Option<MemoryKey> {
    match (optional_key(config, cx)?, cx.text(config, "keyFrom")?) {
        (Some(_), Some(_)) => cx.bad("keyFrom", "give either key or keyFrom"),
        (Some(key), None) => Some(MemoryKey::Text(key)),
        (None, Some(name)) => Some(MemoryKey::Variable(name)),
        (None, None) => cx.bad("key", "key or keyFrom is required"),
    }
}

fn optional_key(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<String>> {
    match cx.text(config, "key")? {
        Some(key) if !is_key(&key) => cx.bad(
            "key",
            format!("must be a text of 1 to {MAX_KEY_CHARS} characters"),
        ),
        given => Some(given),
    }
}

/// Whether an entry can have this key.
pub(crate) fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_KEY_CHARS && !text.contains('\0')
}

fn source(config: &Object, cx: &mut ParseContext<'_>) -> Option<MemorySource> {
    match (config.get("value"), cx.text(config, "valueFrom")?) {
        (Some(_), Some(_)) => cx.bad("valueFrom", "give either value or valueFrom"),
        (Some(value), None) => Some(MemorySource::Value(value.clone())),
        (None, Some(name)) => Some(MemorySource::Variable(name)),
        (None, None) => cx.bad("value", "value or valueFrom is required"),
    }
}

fn ttl_ms(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<u64>> {
    let Some(given) = config.get("ttlSeconds").filter(|v| !v.is_null()) else {
        return Some(None);
    };
    let seconds = given.as_f64();
    // An entry with less than a millisecond would expire at once.
    match seconds.filter(|s| *s >= 0.001 && *s <= MAX_TTL_SECONDS) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be positive and below a century"
        )]
        Some(seconds) => Some(Some((seconds * 1000.0) as u64)),
        None => cx.bad("ttlSeconds", "must be more than 0 and at most a century"),
    }
}

fn tags(config: &Object, cx: &mut ParseContext<'_>) -> Option<Vec<String>> {
    let given = match config.get("tags") {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(Value::Array(tags)) if tags.len() <= MAX_TAGS => tags,
        Some(_) => {
            return cx.bad(
                "tags",
                format!("must be a list of at most {MAX_TAGS} texts"),
            );
        }
    };
    let fits = |tag: &&str| tag.chars().count() <= MAX_TAG_CHARS;
    let read: Option<Vec<&str>> = given.iter().map(|t| t.as_str().filter(fits)).collect();
    match read {
        Some(read) => {
            let non_empty = read.into_iter().filter(|tag| !tag.is_empty());
            Some(non_empty.map(str::to_owned).collect())
        }
        None => cx.bad(
            "tags",
            format!("a tag has at most {MAX_TAG_CHARS} characters"),
        ),
    }
}

fn limit(config: &Object, cx: &mut ParseContext<'_>) -> Option<usize> {
    let requested = cx.whole(config, "limit", 0)?.filter(|n| *n > 0);
    let requested = requested.map_or(DEFAULT_LISTED, |n| usize::try_from(n).unwrap_or(usize::MAX));
    Some(requested.min(MAX_LISTED))
}
