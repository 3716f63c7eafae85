//! From what came back to what the node puts out.

use crate::credentials::Credentials;
use crate::request::is_json;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::{Value, json};
use tandem_record::{MAX_NESTING, Object, nests_deeper};

/// Headers a workflow can use. The rest stays out: cookies and the like would end up in the log.
const RETURNED_HEADERS: [reqwest::header::HeaderName; 4] =
    [CONTENT_TYPE, LOCATION, ETAG, RETRY_AFTER];

/// A body, read no further than a limit.
pub(crate) enum Body {
    Whole(Vec<u8>),
    /// The first `limit` bytes of a longer one.
    Cut(Vec<u8>),
}

/// Reads in pieces, so that a body larger than the limit is never held in memory whole, whatever
/// length it was announced with.
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

/// `{status, headers, body}`. A body that claims to be JSON and is not, or nests deeper than can be
/// kept, is given as text; none at all is `null`.
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

/// The beginning of an error's body, masked before it is cut: half a credential is not recognised
/// any more. Where reading stopped early the end may be half of one, so as much as that is dropped.
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
