//! A successful answer, in a form that can be told now and told again from the store.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tandem_runtime::StoredResponse;

const REPLAYED: HeaderName = HeaderName::from_static("openwop-idempotent-replay");

pub(crate) struct Said {
    status: StatusCode,
    /// `None` for an answer without a body.
    body: Option<Value>,
}

impl Said {
    pub(crate) fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
        }
    }

    pub(crate) fn created(body: Value) -> Self {
        Self {
            status: StatusCode::CREATED,
            body: Some(body),
        }
    }

    pub(crate) fn accepted(body: Value) -> Self {
        Self {
            status: StatusCode::ACCEPTED,
            body: Some(body),
        }
    }

    pub(crate) fn nothing() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: None,
        }
    }

    pub(crate) fn stored(&self) -> StoredResponse {
        StoredResponse {
            status: self.status.as_u16(),
            body: self.body.as_ref().map(Value::to_string).unwrap_or_default(),
        }
    }
}

impl IntoResponse for Said {
    fn into_response(self) -> Response {
        let location = self.body.as_ref().and_then(location);
        response(self.stored(), location)
    }
}

/// An answer given before, marked as such.
pub(crate) fn replay(stored: StoredResponse) -> Response {
    let body = serde_json::from_str(&stored.body).ok();
    let location = body.as_ref().and_then(location);
    let mut response = response(stored, location);
    let yes = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED, yes);
    response
}

/// Where what the answer speaks of is to be found.
fn location(body: &Value) -> Option<HeaderValue> {
    HeaderValue::from_str(body["statusUrl"].as_str()?).ok()
}

fn response(stored: StoredResponse, location: Option<HeaderValue>) -> Response {
    let status =
        StatusCode::from_u16(stored.status).expect("only statuses this crate sent are stored");
    if stored.body.is_empty() {
        return status.into_response();
    }
    // What was created says where it is; the header repeats it, for a replay as well.
    let location = location.filter(|_| status == StatusCode::CREATED);
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, content_type, stored.body).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}
