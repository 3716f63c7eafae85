//! The conformance suite's model: a program for each node, set by a test, consumed entry by entry.
//! Plain data, so that it can be stored across restarts.

use super::sample::sample;
use super::{count_usage, inputs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::{EffectId, ModelAnswer, ModelRefusal, ModelRequest, ModelStop};

/// Limit of entries in one program.
pub const MAX_PROGRAM: usize = 100;

/// The answers a node gets, call by call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MockProgram {
    entries: Vec<MockEntry>,
    /// Which entry each call took; a repeated call takes the same entry.
    #[serde(default)]
    taken: BTreeMap<EffectId, usize>,
}

/// One answer as the suite writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MockEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal_text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_category: Option<String>,
}

impl MockProgram {
    pub fn new(entries: Vec<MockEntry>) -> Self {
        Self {
            entries,
            taken: BTreeMap::new(),
        }
    }

    /// The answer to a call; `None` when the program has no more entries.
    pub fn take(&mut self, effect: &EffectId, request: &ModelRequest) -> Option<ModelAnswer> {
        let next = self.taken.len();
        let at = self.taken.get(effect).copied().unwrap_or(next);
        let entry = self.entries.get(at)?;
        self.taken.insert(effect.clone(), at);
        Some(entry.answer(request))
    }
}

/// The answer for a node without a program: the smallest value that fits its schema.
pub fn unprogrammed_answer(request: &ModelRequest) -> ModelAnswer {
    // A text that is JSON, also where the value is itself a text.
    let content = match &request.schema {
        Some(schema) => sample(schema).to_string().into(),
        None => "ok".into(),
    };
    let entry = MockEntry {
        content: Some(content),
        stop_reason: None,
        refusal_text: None,
        safety_category: None,
    };
    entry.answer(request)
}

impl MockEntry {
    fn answer(&self, request: &ModelRequest) -> ModelAnswer {
        let text = self.content.as_ref().map(|content| match content {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let stop = self.stop_reason.as_deref();
        let refused = matches!(stop, Some("safety" | "refusal" | "content_filter"));
        ModelAnswer {
            usage: Some(count_usage(
                inputs(request),
                text.as_deref().unwrap_or_default(),
            )),
            text,
            data: None,
            stop: match stop {
                None | Some("end_turn" | "stop" | "safety" | "refusal" | "content_filter") => {
                    ModelStop::End
                }
                Some("max_tokens") => ModelStop::MaxTokens,
                Some("length") => ModelStop::Length,
                Some("stop_sequence") => ModelStop::StopSequence,
                Some(_) => ModelStop::Unknown,
            },
            refusal: refused.then(|| ModelRefusal {
                text: self.refusal_text.clone(),
                category: self.safety_category.clone(),
            }),
        }
    }
}
