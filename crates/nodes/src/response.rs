//! Builds a node's outputs from a response.

use crate::credentials::Credentials;
use crate::request::is_json;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::{Value, json};
use tandem_record::{MAX_NESTING, Object, nests_deeper};

/// Headers a workflow can use. Others are dropped: cookies and the like would be stored in the log.
const RETURNED_HEADERS: [reqwest::header::HeaderName; 4] =
    [CONTENT_TYPE, LOCATION, ETAG, RETRY_AFTER];

/// A body, read up to a limit.
pub(crate) enum Body {
    Whole(Vec<u8>),
    /// The first `limit` bytes of a longer one.
    Cut(Vec<u8>),
}

/// Reads in chunks, so that a body larger than the limit is never completely in memory, whatever
/// length it declares.
pub(crate) async fn read(response: &mut Response, limit: usize) -> Result<Body, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok(Body::Cut(bytes));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Body::Whole(bytes))
}

/// `{status, headers, body}`. A body that claims to be JSON and is not, or is nested too deeply to
/// be stored, is returned as text; no body is `null`.
pub(crate) fn outputs(response: &Response, bytes: &[u8], credentials: &Credentials) -> Object {
    let text = credentials.mask(String::from_utf8_lossy(bytes));
    let claims_json = response.headers().get(CONTENT_TYPE).is_some_and(is_json);
    let body = if text.is_empty() {
        Value::Null
    } else {
        (claims_json && !nests_deeper(text.as_bytes(), MAX_NESTING))
            .then(|| serde_json::from_str(&text).ok())
            .flatten()
            .unwrap_or_else(|| Value::String(text.into_owned()))
    };
    Object::from_iter([
        ("status".to_owned(), json!(response.status().as_u16())),
        (
            "headers".to_owned(),
            Value::Object(returned_headers(response.headers(), credentials)),
        ),
        ("body".to_owned(), body),
    ])
}

fn returned_headers(headers: &HeaderMap, credentials: &Credentials) -> Object {
    RETURNED_HEADERS
        .iter()
        .filter_map(|name| {
            let value = headers.get(name)?.to_str().ok()?;
            Some((name.to_string(), json!(credentials.mask(value))))
        })
        .collect()
}

/// The beginning of an error's body, masked before it is cut: part of a credential would not be
/// recognised. If reading stopped early, the end may be part of one, so the length of a credential
/// is dropped there.
pub(crate) fn excerpt(body: Body, limit: usize, credentials: &Credentials) -> String {
    let (bytes, unsure) = match body {
        Body::Whole(bytes) => (bytes, 0),
        Body::Cut(bytes) => (bytes, credentials.longest().saturating_sub(1)),
    };
    let mut text = credentials
        .mask(String::from_utf8_lossy(&bytes))
        .into_owned();
    let end = text.len().saturating_sub(unsure).min(limit);
    text.truncate(text.floor_char_boundary(end));
    text
}
