//! The content key of a request: equal requests have equal keys, in every run and at every time.
//! The hash includes the name of the formula, so that another formula gives other keys.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tandem_record::{Event, ModelRequest, Object, Work};

/// The formula of [`content_key`].
pub const RECIPE: &str = "openwop-semantic-request-v2";

/// SHA-256, as lower-case hexadecimal digits, over the canonical JSON (RFC 8785) of the
/// [`semantic_request`].
pub fn content_key(request: &ModelRequest) -> String {
    let canonical = serde_jcs::to_vec(&semantic_request(request))
        .expect("a request is plain data with a canonical form");
    let digest = Sha256::digest(&canonical);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything that can change the answer, under the names of the formula. Absent values are left
/// out, never null; texts are used as they are, without normalization.
pub fn semantic_request(request: &ModelRequest) -> Value {
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|m| json!({"role": m.role.as_str(), "content": m.content}))
        .collect();
    let mut document = Object::from_iter([
        ("recipe".to_owned(), json!(RECIPE)),
        (
            "provider".to_owned(),
            json!(request.provider.to_lowercase()),
        ),
        ("model".to_owned(), json!(request.model)),
        ("messages".to_owned(), json!(messages)),
    ]);
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            document.insert(name.to_owned(), value);
        }
    };
    put("temperature", request.temperature.map(|t| json!(t)));
    put(
        "maxOutputTokens",
        request.max_output_tokens.map(|n| json!(n)),
    );
    put(
        "responseFormat",
        request
            .schema
            .as_ref()
            .map(|schema| json!({"type": "json", "schema": schema})),
    );
    Value::Object(document)
}

/// Computes a new key for an event after a secret was removed from its request. A key over the
/// secret could be used to test guesses of it.
pub fn rekey(event: &mut Event) {
    match event {
        Event::NodeStarted {
            work: Some(work), ..
        } => rekey_work(work),
        Event::ModelRetried(retry) => rekey_work(&mut retry.work),
        _ => {}
    }
}

pub(crate) fn rekey_work(work: &mut Work) {
    if let Work::Model { key, request, .. } = work {
        *key = content_key(request);
    }
}
