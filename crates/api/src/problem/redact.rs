//! Problems without secrets. A problem may quote what was sent: the name of an unknown field, an id, a value
//! of the wrong type. Where it is made nobody knows the secrets of the host, so its body passes the
//! redactor as it leaves, in the one place that every response passes.

use axum::body::Body;
use axum::response::Response;
use tandem_app::App;

/// Part of a response: its body is a problem and may quote the request.
#[derive(Clone)]
pub(crate) enum ProblemBody {
    Json(String),
    /// A page with a problem on it.
    Html(String),
}

/// The response as it may leave.
pub(crate) fn redact(app: &App, mut response: Response) -> Response {
    let clean = match response.extensions_mut().remove() {
        Some(ProblemBody::Json(body)) => app.redacted_json(body),
        // The page around the problem is the host's own; only what is known is taken out.
        Some(ProblemBody::Html(body)) => app.mask_known_secrets(body),
        None => return response,
    };
    response.map(|_| Body::from(clean))
}
