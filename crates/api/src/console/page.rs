//! Pages and error pages as responses.

use crate::api::Doors;
use crate::problem::Problem;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use tandem_access::Identity;
use tandem_console::{Chrome, error_page};
use tandem_runtime::Fault;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The frame of a page for somebody who is signed in.
pub(super) fn chrome(doors: &Doors, identity: &Identity) -> Chrome {
    Chrome {
        signed_in_as: Some(identity.principal.to_string()),
        tenant: Some(identity.tenant.to_string()),
        version: doors.host.version,
    }
}

/// The frame for somebody who is not.
pub(super) fn bare_chrome() -> Chrome {
    Chrome {
        signed_in_as: None,
        tenant: None,
        version: VERSION,
    }
}

/// What a browser gets instead of a page.
pub(super) enum Detour {
    SignIn,
    Trouble(Problem),
}

impl From<Problem> for Detour {
    fn from(problem: Problem) -> Self {
        Self::Trouble(problem)
    }
}

impl From<Fault> for Detour {
    fn from(fault: Fault) -> Self {
        Self::Trouble(fault.into())
    }
}

impl From<tandem_access::Denied> for Detour {
    fn from(denied: tandem_access::Denied) -> Self {
        Self::Trouble(denied.into())
    }
}

impl IntoResponse for Detour {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::SignIn => return Redirect::to("/console/login").into_response(),
            Self::Trouble(problem) => problem,
        };
        let html = error_page(
            &bare_chrome(),
            problem.status(),
            problem.title(),
            problem.message(),
            problem.next_step(),
        );
        with_status(&problem, html)
    }
}

/// A page under the status its problem has.
pub(super) fn with_status(problem: &Problem, html: String) -> Response {
    let status = StatusCode::from_u16(problem.status()).expect("a problem has a valid status");
    (status, Html(html)).into_response()
}

pub(super) async fn nothing() -> Detour {
    Detour::Trouble(Problem::not_found("page"))
}
