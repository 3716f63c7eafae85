//! Options that a caller may give besides the inputs of a run.

use crate::conformance::{MOCK_PROVIDER_KEY, read_mock_provider};
use crate::definition::{Problem, nearest};
use serde_json::Value;
use tandem_record::{Object, RunOptions};

const MAX_TAGS: usize = 100;
const MAX_TAG_CHARS: usize = 256;
const MAX_METADATA_DEPTH: usize = 4;
const MAX_METADATA_BYTES: usize = 8192;
/// The protocol keeps this beginning of a key to itself, so another key with it is a misspelled one.
const AI_PREFIX: &str = "ai.";
const AI_KEYS: [&str; 3] = ["ai.provider", "ai.model", "ai.credentialRef"];

/// Problems of tags, metadata and reserved `configurable` keys.
pub fn check_options(options: &RunOptions) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(tags) = &options.tags {
        if tags.len() > MAX_TAGS {
            problems.push(Problem::new("/tags", format!("at most {MAX_TAGS} tags")));
        }
        for (i, tag) in tags.iter().enumerate() {
            if tag.is_empty() || tag.chars().count() > MAX_TAG_CHARS {
                let message = format!("a tag has 1 to {MAX_TAG_CHARS} characters");
                problems.push(Problem::new(format!("/tags/{i}"), message));
            }
        }
    }
    if let Some(metadata) = &options.metadata {
        check_metadata(metadata, &mut problems);
    }
    for (key, value) in options.configurable.iter().flatten() {
        if key == MOCK_PROVIDER_KEY {
            problems.extend(read_mock_provider(value).err().into_iter().flatten());
        }
        if let Some(message) = check_reserved(key, value) {
            problems.push(Problem::new(format!("/configurable/{key}"), message));
        }
        if key.starts_with(AI_PREFIX) && !AI_KEYS.contains(&key.as_str()) {
            let message = match nearest(key, AI_KEYS) {
                Some(meant) => format!("is not an option; did you mean `{meant}`?"),
                None => format!("is not an option; there are {}", AI_KEYS.join(", ")),
            };
            problems.push(Problem::new(format!("/configurable/{key}"), message));
        }
    }
    problems
}

fn check_metadata(metadata: &Object, problems: &mut Vec<Problem>) {
    let depth = 1 + metadata.values().map(depth).max().unwrap_or(0);
    if depth > MAX_METADATA_DEPTH {
        let message = format!("nested deeper than {MAX_METADATA_DEPTH} levels");
        problems.push(Problem::new("/metadata", message));
    }
    let size = serde_json::to_string(metadata).map_or(usize::MAX, |text| text.len());
    if size > MAX_METADATA_BYTES {
        let message = format!("larger than {MAX_METADATA_BYTES} bytes");
        problems.push(Problem::new("/metadata", message));
    }
}

/// Levels of objects and arrays in a value; a scalar has none.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Reserved keys have fixed types; other keys are passed to the workflow's own schema.
fn check_reserved(key: &str, value: &Value) -> Option<&'static str> {
    let number_in = |low: f64, high: f64| value.as_f64().is_some_and(|n| n >= low && n <= high);
    let ok = match key {
        // No upper end: a value above the host's limit is valid and means that limit.
        "recursionLimit" | "runTimeoutMs" | "maxLoopIterations" | "maxTokens" => {
            let wrong = value.as_u64().is_none_or(|n| n < 1);
            return wrong.then_some("must be a whole number of at least 1");
        }
        "temperature" => return (!number_in(0.0, 2.0)).then_some("must be a number from 0 to 2"),
        "escalationThreshold" => {
            return (!number_in(0.0, 1.0)).then_some("must be a number from 0 to 1");
        }
        "model" | "ai.provider" | "ai.model" | "ai.credentialRef" => {
            let wrong = value.as_str().is_none_or(str::is_empty);
            return wrong.then_some("must be a text of at least one character");
        }
        "promptOverrides" => value
            .as_object()
            .is_some_and(|m| m.values().all(Value::is_string)),
        "reasoningVerbosity" => matches!(value.as_str(), Some("summary" | "full" | "off")),
        _ => true,
    };
    (!ok).then_some("has the wrong type for this key")
}
