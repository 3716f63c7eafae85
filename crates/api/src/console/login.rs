//! Sign-in: with the printed login link, or with a key.

use super::page::{PageError, anonymous_chrome, with_status};
use super::session::{PostedForm, SignedIn, check_origin, clear_cookie, field, form, set_cookie};
use crate::api::{ApiState, SharedState};
use crate::caller::peer_address;
use crate::params::Params;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Redirect, Response};
use tandem_access::{AuthenticateError, Identity, RateKey, Unauthenticated};
use tandem_app::{AppError, ForbiddenReason, InboxQuery};
use tandem_console::login_page;

pub(super) async fn show(State(api): State<SharedState>, params: Params) -> Response {
    let Some(code) = params.get("code") else {
        return Html(login_page(&anonymous_chrome(), None)).into_response();
    };
    api.app.end_revoked().await;
    match api.codes.redeem(code, api.now()) {
        Some(identity) => opened(&api, identity).await,
        None => refused(
            &Problem::from(Unauthenticated::Unknown),
            "This link was used before or has expired. Start the host with --print-login-link for a new one, or use a key.",
        ),
    }
}

pub(super) async fn sign_in(
    State(api): State<SharedState>,
    request: Request,
) -> Result<Response, PageError> {
    let (parts, body) = request.into_parts();
    check_origin(&parts.headers, &api)?;
    let fields = form(&parts, body, &api).await?;
    let key = field(&fields, "key").trim();
    let now = api.now();
    let now_ms = u64::try_from(now.0).unwrap_or(0);
    let limited = api.requests.check(RateKey::credential(key), now_ms);
    limited.map_err(Problem::from)?;
    match api.keyring.authenticate(key, now).await {
        Ok(identity) if identity.agent.is_some() => {
            let problem = Problem::from(AppError::from(ForbiddenReason::BoundToAgent));
            let message = "This key is good for one agent only. The console shows all of them.";
            Ok(refused(&problem, message))
        }
        Ok(identity) => {
            let key_id = identity.key_id.clone();
            let response = opened(&api, identity).await;
            // If the key was revoked in the meantime, its sessions were closed before this one was
            // opened.
            if let Err(error) = api.keyring.authenticate(key, now).await {
                api.sessions.close_for_key(&key_id);
                return Err(Problem::from(error).into());
            }
            Ok(response)
        }
        Err(AuthenticateError::Fault(fault)) => Err(fault.into()),
        Err(AuthenticateError::Unauthenticated(why)) => {
            if let Some(address) = peer_address(&parts) {
                let limited = api.failures.check(RateKey::address(address), now_ms);
                limited.map_err(Problem::from)?;
            }
            let message = match why {
                Unauthenticated::Expired => "This key has expired.",
                Unauthenticated::Revoked => "This key has been revoked.",
                _ => "This key is not known here.",
            };
            Ok(refused(&Problem::from(why), message))
        }
    }
}

/// Ends the session of the browser, and its streams.
pub(super) async fn sign_out(State(api): State<SharedState>, posted: PostedForm) -> Response {
    api.sessions.close(posted.by.session());
    let mut response = Redirect::to("/console/login").into_response();
    let headers = response.headers_mut();
    headers.insert(header::SET_COOKIE, clear_cookie());
    response
}

/// Where somebody who is signed in begins.
pub(super) async fn home(State(api): State<SharedState>, reader: SignedIn) -> Redirect {
    Redirect::to(first_page(&api, &reader).await)
}

/// The inbox when it has open questions, else the run list.
async fn first_page(api: &ApiState, identity: &Identity) -> &'static str {
    let one = InboxQuery {
        limit: 1,
        ..InboxQuery::default()
    };
    match api.app.read_inbox(identity, one).await {
        Ok(page) if !page.rows.is_empty() => "/console/inbox",
        // The page itself shows the error.
        _ => "/console/runs",
    }
}

async fn opened(api: &ApiState, identity: Identity) -> Response {
    let page = first_page(api, &identity).await;
    let session = api.sessions.open(identity, api.now());
    let mut response = Redirect::to(page).into_response();
    let cookie = set_cookie(api, &session);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

fn refused(problem: &Problem, message: &str) -> Response {
    with_status(problem, login_page(&anonymous_chrome(), Some(message)))
}
