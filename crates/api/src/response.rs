//! A successful response, in a form that can be sent now and stored for a repeated request.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use tandem_app::StoredResponse;

const REPLAYED: HeaderName = HeaderName::from_static("openwop-idempotent-replay");

pub(crate) struct ApiResponse {
    response: StoredResponse,
    location: Option<HeaderValue>,
}

impl ApiResponse {
    pub(crate) fn ok(body: impl Serialize) -> Self {
        Self::new(StatusCode::OK, &body)
    }

    pub(crate) fn created(body: impl Serialize) -> Self {
        Self::new(StatusCode::CREATED, &body)
    }

    pub(crate) fn accepted(body: impl Serialize) -> Self {
        Self::new(StatusCode::ACCEPTED, &body)
    }

    pub(crate) fn no_content() -> Self {
        let response = StoredResponse {
            status: StatusCode::NO_CONTENT.as_u16(),
            body: String::new(),
        };
        Self {
            response,
            location: None,
        }
    }

    fn new(status: StatusCode, body: &impl Serialize) -> Self {
        let response = StoredResponse {
            status: status.as_u16(),
            body: serde_json::to_string(body).expect("responses are plain data with text keys"),
        };
        Self {
            response,
            location: None,
        }
    }

    /// Sets `Location` to the created resource; the body's `statusUrl` has the same value.
    pub(crate) fn with_location(self, url: &str) -> Self {
        Self {
            location: HeaderValue::from_str(url).ok(),
            ..self
        }
    }

    pub(crate) fn stored(&self) -> StoredResponse {
        self.response.clone()
    }
}

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        response(self.response, self.location)
    }
}

/// A stored response, marked as a replay.
pub(crate) fn replay(stored: StoredResponse) -> Response {
    let location = location(&stored);
    let mut response = response(stored, location);
    let yes = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED, yes);
    response
}

/// The URL of the resource in a stored response.
fn location(stored: &StoredResponse) -> Option<HeaderValue> {
    if stored.status != StatusCode::CREATED {
        return None;
    }
    let body: Value = serde_json::from_str(&stored.body).ok()?;
    HeaderValue::from_str(body["statusUrl"].as_str()?).ok()
}

fn response(stored: StoredResponse, location: Option<HeaderValue>) -> Response {
    let status =
        StatusCode::from_u16(stored.status).expect("stored statuses were sent by this crate");
    if stored.body.is_empty() {
        return status.into_response();
    }
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, content_type, stored.body).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}
