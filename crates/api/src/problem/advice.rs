//! Problems as a console page shows them: a title and what to do next.

use super::Problem;
use axum::http::StatusCode;

impl Problem {
    pub(crate) fn title(&self) -> &'static str {
        match self.status {
            StatusCode::BAD_REQUEST => "Invalid request",
            StatusCode::UNAUTHORIZED => "Not signed in",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::NOT_FOUND => "Nothing here",
            StatusCode::CONFLICT => "Not possible now",
            StatusCode::TOO_MANY_REQUESTS => "Too fast",
            _ => "Something went wrong",
        }
    }

    pub(crate) fn next_step(&self) -> &'static str {
        match self.status {
            StatusCode::BAD_REQUEST => "Go back, correct what is named above, and send it again.",
            StatusCode::UNAUTHORIZED => "Sign in again.",
            StatusCode::FORBIDDEN => {
                "Sign in with a key that has the scope, or go back and reload the page."
            }
            StatusCode::NOT_FOUND => "Check the address, or find it in the list.",
            StatusCode::CONFLICT => "Go back and reload the page to see the current state.",
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                "Wait a moment and try again."
            }
            _ => "Try again. If it fails again, look for this request in the host's log.",
        }
    }
}
