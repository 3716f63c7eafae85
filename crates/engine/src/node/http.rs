//! `vendor.tandem.http`: one HTTP call. This module only parses its configuration; the HTTP client
//! checks which addresses it may reach.

use super::ParseContext;
use super::settings::{Setting, object, value};
use crate::definition::document::Retry;
use serde_json::Value;
use tandem_record::{HttpRequest, Object};

/// The timeout of a call when its author sets none.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 10 * 60_000;

pub(super) const SETTINGS: &[Setting] = &[
    value("method"),
    value("url"),
    value("headers"),
    value("body"),
    value("timeoutMs"),
    object("retry", RETRY),
    value("output"),
];
pub(super) const RETRY: &[Setting] = &[
    value("maxAttempts"),
    value("backoff"),
    value("backoffMs"),
    value("maxBackoffMs"),
];

#[derive(Debug)]
pub(crate) struct HttpConfig {
    method: String,
    /// Absent when the port `url` provides it.
    url: Option<String>,
    headers: Object,
    body: Option<Value>,
    timeout_ms: u64,
    pub(crate) retry: Option<Retry>,
    pub(crate) output: Option<String>,
}

impl HttpConfig {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let method = cx
            .text(config, "method")?
            .unwrap_or_else(|| "GET".to_owned());
        let method = method.to_ascii_uppercase();
        if !["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str()) {
            return cx.bad(
                "method",
                format!("{method:?} is not a method this node can use"),
            );
        }
        let headers = match config.get("headers") {
            None | Some(Value::Null) => Object::new(),
            Some(Value::Object(headers)) if headers.values().all(Value::is_string) => {
                headers.clone()
            }
            Some(_) => return cx.bad("headers", "must map header names to text"),
        };
        let retry = match config.get("retry") {
            None | Some(Value::Null) => None,
            Some(value) => match serde_json::from_value(value.clone()) {
                Ok(retry) => Some(retry),
                Err(e) => return cx.bad("retry", e.to_string()),
            },
        };
        let timeout_ms = cx
            .whole(config, "timeoutMs", 1)?
            .unwrap_or(DEFAULT_TIMEOUT_MS);
        if timeout_ms > MAX_TIMEOUT_MS {
            return cx.bad("timeoutMs", format!("must be at most {MAX_TIMEOUT_MS}"));
        }
        Some(Self {
            method,
            url: cx.text(config, "url")?.filter(|u| !u.is_empty()),
            headers,
            body: config.get("body").cloned(),
            timeout_ms,
            retry,
            output: cx.text(config, "output")?,
        })
    }

    /// A recorded call with its headers restored.
    pub(crate) fn complete(&self, recorded: &HttpRequest) -> HttpRequest {
        HttpRequest {
            headers: self.headers.clone(),
            ..recorded.clone()
        }
    }

    /// The call for these inputs: ports `url` and `body` replace absent configuration.
    pub(crate) fn request(&self, inputs: &Object) -> Option<HttpRequest> {
        let port = inputs.get("url").and_then(Value::as_str);
        let url = self.url.clone().or_else(|| port.map(str::to_owned))?;
        Some(HttpRequest {
            method: self.method.clone(),
            url,
            headers: Object::new(),
            body: self.body.clone().or_else(|| inputs.get("body").cloned()),
            timeout_ms: self.timeout_ms,
        })
    }
}
