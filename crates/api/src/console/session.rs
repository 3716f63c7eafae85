//! Authentication of a browser: a cookie for reading, a cookie and a form token for changes.
//!
//! A change must also come from a page of this origin.

use super::page::PageError;
use crate::access_log::AccessLogContext;
use crate::api::{ApiState, SharedState};
use crate::body;
use crate::connection_key::check_connection;
use crate::origin::is_from_this_host;
use crate::problem::Problem;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use std::ops::Deref;
use tandem_access::{Identity, OpenedSession, RateKey, Session};

const COOKIE: &str = "tandem_session";

/// The session of a signed-in user.
pub(super) struct SignedIn(Session);

impl SignedIn {
    pub(super) fn session(&self) -> &Session {
        &self.0
    }

    pub(super) fn csrf(&self) -> String {
        self.0.csrf.expose().to_owned()
    }
}

impl Deref for SignedIn {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.0.identity
    }
}

impl FromRequestParts<SharedState> for SignedIn {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, api: &SharedState) -> Result<Self, PageError> {
        let id = cookie(&parts.headers).ok_or(PageError::SignInRequired)?;
        let now = api.now();
        let now_ms = u64::try_from(now.0).unwrap_or(0);
        let limited = api.requests.check(RateKey::credential(id), now_ms);
        limited.map_err(Problem::from)?;
        api.app.end_revoked().await;
        let session = api.sessions.get(id, now).ok_or(PageError::SignInRequired)?;
        if let Some(log_context) = parts.extensions.get::<AccessLogContext>() {
            log_context.set_caller(&session.identity, None);
        }
        check_connection(parts, &session.identity)?;
        Ok(Self(session))
    }
}

/// A form posted by one of our pages from a signed-in browser.
pub(super) struct PostedForm {
    pub(super) by: SignedIn,
    fields: Vec<(String, String)>,
}

impl PostedForm {
    pub(super) fn field(&self, name: &str) -> &str {
        field(&self.fields, name)
    }

    /// All fields of the form.
    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.fields
    }
}

impl FromRequest<SharedState> for PostedForm {
    type Rejection = PageError;

    async fn from_request(request: Request, api: &SharedState) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let by = SignedIn::from_request_parts(&mut parts, api).await?;
        check_origin(&parts.headers, api)?;
        let fields = form(&parts, body, api).await?;
        if !by.0.csrf_matches(field(&fields, "csrf")) {
            let message = "The form is from another session; reload the page and try again.";
            return Err(Problem::forbidden(message).into());
        }
        Ok(Self { by, fields })
    }
}

pub(super) async fn form(
    parts: &Parts,
    body: axum::body::Body,
    api: &ApiState,
) -> Result<Vec<(String, String)>, Problem> {
    let bytes = body::read(&parts.headers, body, &api.settings).await?;
    Ok(url::form_urlencoded::parse(&bytes).into_owned().collect())
}

pub(super) fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let found = fields.iter().find(|(n, _)| n == name);
    found.map_or("", |(_, value)| value.as_str())
}

pub(super) fn check_origin(headers: &HeaderMap, api: &ApiState) -> Result<(), Problem> {
    match is_from_this_host(headers, &api.host) {
        true => Ok(()),
        false => Err(Problem::forbidden("The form was sent from another site.")),
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let sent = headers.get_all(header::COOKIE).iter();
    sent.filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE).then_some(value))
}

/// Makes a browser forget its session.
pub(super) fn clear_cookie() -> HeaderValue {
    let text = format!("{COOKIE}=; Path=/console; HttpOnly; SameSite=Strict; Max-Age=0");
    HeaderValue::try_from(text).expect("the name of a cookie is plain")
}

/// The cookie of a new session. Kept from scripts, from other sites and from the API's paths.
pub(super) fn set_cookie(api: &ApiState, opened: &OpenedSession) -> HeaderValue {
    let over_tls = api
        .host
        .public_url
        .as_deref()
        .is_some_and(|url| url.starts_with("https://"));
    let secure = if over_tls { "; Secure" } else { "" };
    let id = opened.id.expose();
    let text = format!("{COOKIE}={id}; Path=/console; HttpOnly; SameSite=Strict{secure}");
    let mut value = HeaderValue::try_from(text).expect("a session id is base64url");
    value.set_sensitive(true);
    value
}
