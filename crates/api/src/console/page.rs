//! Pages and error pages as responses.

use super::session::SignedIn;
use crate::api::ApiState;
use crate::problem::{Problem, ProblemBody};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use tandem_app::{AppError, Fault};
use tandem_console::{Chrome, error_page};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The frame of a page for somebody who is signed in.
pub(super) fn chrome(api: &ApiState, reader: &SignedIn) -> Chrome {
    Chrome {
        signed_in_as: Some(reader.principal.to_string()),
        tenant: Some(reader.tenant.to_string()),
        csrf: Some(reader.csrf()),
        version: api.host.version,
    }
}

/// The page frame without sign-in.
pub(super) fn anonymous_chrome() -> Chrome {
    Chrome {
        signed_in_as: None,
        tenant: None,
        csrf: None,
        version: VERSION,
    }
}

/// The response instead of a page.
pub(super) enum PageError {
    SignInRequired,
    Failed(Problem),
}

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self::Failed(problem)
    }
}

impl From<Fault> for PageError {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault.into())
    }
}

impl From<AppError> for PageError {
    fn from(error: AppError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<tandem_access::Denied> for PageError {
    fn from(denied: tandem_access::Denied) -> Self {
        Self::Failed(denied.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::SignInRequired => return Redirect::to("/console/login").into_response(),
            Self::Failed(problem) => problem,
        };
        let html = error_page(
            &anonymous_chrome(),
            problem.status(),
            problem.title(),
            problem.message(),
            problem.next_step(),
        );
        with_status(&problem, html)
    }
}

/// A page with the status of its problem.
pub(super) fn with_status(problem: &Problem, html: String) -> Response {
    let status = StatusCode::from_u16(problem.status()).expect("a problem has a valid status");
    let mut response = (status, Html(html.clone())).into_response();
    response.extensions_mut().insert(ProblemBody::Html(html));
    response
}

pub(super) async fn not_found() -> PageError {
    PageError::Failed(Problem::not_found("page"))
}
