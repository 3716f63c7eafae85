//! Signing in: with the link the host printed, or with a key.

use super::page::{Detour, bare_chrome, with_status};
use super::session::{SignedIn, check_origin, field, form, set_cookie};
use crate::api::{Doors, Shared};
use crate::caller::peer;
use crate::params::Params;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Redirect, Response};
use tandem_access::{AuthenticateError, Identity, RateKey, Scope, Unauthenticated};
use tandem_console::login_page;
use tandem_runtime::InboxQuery;

pub(super) async fn show(State(doors): State<Shared>, params: Params) -> Response {
    let Some(code) = params.get("code") else {
        return Html(login_page(&bare_chrome(), None)).into_response();
    };
    match doors.codes.redeem(code, doors.now()) {
        Some(identity) => opened(&doors, identity).await,
        None => refused(
            &Problem::from(Unauthenticated::Unknown),
            "This link was used before or is too old. Start the host with --print-login-link for a new one, or use a key.",
        ),
    }
}

pub(super) async fn sign_in(
    State(doors): State<Shared>,
    request: Request,
) -> Result<Response, Detour> {
    let (parts, body) = request.into_parts();
    check_origin(&parts.headers, &doors)?;
    let fields = form(&parts, body, &doors).await?;
    let key = field(&fields, "key").trim();
    let now = doors.now();
    let now_ms = u64::try_from(now.0).unwrap_or(0);
    let limited = doors.requests.check(RateKey::credential(key), now_ms);
    limited.map_err(Problem::from)?;
    match doors.keyring.authenticate(key, now).await {
        Ok(identity) => {
            let key_id = identity.key_id.clone();
            let response = opened(&doors, identity).await;
            // Revoked meanwhile, it would have closed sessions before this one was opened.
            if let Err(error) = doors.keyring.authenticate(key, now).await {
                doors.sessions.close_of_key(&key_id);
                return Err(Problem::from(error).into());
            }
            Ok(response)
        }
        Err(AuthenticateError::Fault(fault)) => Err(fault.into()),
        Err(AuthenticateError::Unauthenticated(why)) => {
            if let Some(address) = peer(&parts) {
                let limited = doors.failures.check(RateKey::address(address), now_ms);
                limited.map_err(Problem::from)?;
            }
            let said = match why {
                Unauthenticated::Expired => "This key has expired.",
                Unauthenticated::Revoked => "This key has been revoked.",
                _ => "This key is not known here.",
            };
            Ok(refused(&Problem::from(why), said))
        }
    }
}

/// Where somebody who is signed in begins.
pub(super) async fn home(State(doors): State<Shared>, reader: SignedIn) -> Redirect {
    Redirect::to(first_page(&doors, &reader).await)
}

/// The inbox when somebody waits for an answer, else the runs.
async fn first_page(doors: &Doors, identity: &Identity) -> &'static str {
    let one = InboxQuery {
        workspace: identity.workspace.clone(),
        limit: 1,
        ..InboxQuery::default()
    };
    let may_read = identity.may(Scope::RunsRead).is_ok();
    match doors.runtime.inbox(&identity.tenant, &one).await {
        Ok(page) if may_read && !page.rows.is_empty() => "/console/inbox",
        // The page itself tells about trouble.
        _ => "/console/runs",
    }
}

async fn opened(doors: &Doors, identity: Identity) -> Response {
    let page = first_page(doors, &identity).await;
    let session = doors.sessions.open(identity, doors.now());
    let mut response = Redirect::to(page).into_response();
    let cookie = set_cookie(doors, &session);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

fn refused(problem: &Problem, said: &str) -> Response {
    with_status(problem, login_page(&bare_chrome(), Some(said)))
}
