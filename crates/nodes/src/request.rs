//! Builds the outgoing request from the recorded one.

use crate::credentials::is_credential_header;
use crate::trace::outgoing_trace;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tandem_record::{EffectId, HttpRequest, TraceContext};

/// Headers a workflow may not set: the first three belong to the effect and its trace, the others
/// to the connection. They are ignored and not refused, so that a header copied from a browser does
/// no harm.
const OWN_HEADERS: [&str; 13] = [
    "idempotency-key",
    "traceparent",
    "tracestate",
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Names what is invalid, never the value: it may be a credential.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("the method is not one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")]
    Method,
    #[error("`{0}` is not a header name")]
    HeaderName(String),
    #[error("the value of the header `{0}` is not a text that fits in a header")]
    HeaderValue(String),
}

pub(crate) fn method(request: &HttpRequest) -> Result<Method, Invalid> {
    METHODS
        .into_iter()
        .find(|method| method.as_str().eq_ignore_ascii_case(&request.method))
        .ok_or(Invalid::Method)
}

pub(crate) fn headers(
    request: &HttpRequest,
    effect: &EffectId,
    trace: Option<&TraceContext>,
) -> Result<HeaderMap, Invalid> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let header =
            HeaderName::try_from(name.as_str()).map_err(|_| Invalid::HeaderName(name.clone()))?;
        if OWN_HEADERS.contains(&header.as_str()) {
            tracing::debug!(%effect, header = header.as_str(), "a header of the host is ignored");
            continue;
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => return Err(Invalid::HeaderValue(name.clone())),
        };
        let mut value =
            HeaderValue::try_from(text).map_err(|_| Invalid::HeaderValue(name.clone()))?;
        value.set_sensitive(is_credential_header(header.as_str()));
        headers.insert(header, value);
    }
    let trace = outgoing_trace(trace);
    put(&mut headers, "idempotency-key", effect.as_str())?;
    put(&mut headers, "traceparent", &trace.traceparent)?;
    if let Some(state) = &trace.tracestate {
        put(&mut headers, "tracestate", state)?;
    }
    Ok(headers)
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), Invalid> {
    let value = HeaderValue::try_from(value).map_err(|_| Invalid::HeaderValue(name.to_owned()))?;
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

/// The bytes to send; adds the content type to `headers`. A text with a content type that is not
/// JSON is sent unchanged, everything else as JSON. A `null` body is no body: the record does not
/// distinguish them.
pub(crate) fn body(request: &HttpRequest, headers: &mut HeaderMap) -> Option<Vec<u8>> {
    let body = request.body.as_ref().filter(|body| !body.is_null())?;
    let declared = headers.get(CONTENT_TYPE).map(is_json);
    if declared.is_none() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Some(match body {
        Value::String(text) if declared == Some(false) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    })
}

/// `application/json` and everything `+json`, whatever the parameters.
pub(crate) fn is_json(content_type: &HeaderValue) -> bool {
    let essence = content_type
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}
