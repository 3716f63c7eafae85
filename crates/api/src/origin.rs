//! From which site a browser sends a request.
//!
//! Browsers report the site of the page in `Origin`. Because our pages send no referrer, `Origin` may be `null`;
//! then `Sec-Fetch-Site` is checked instead. A client that is no browser sends neither.

use crate::api::Host;
use axum::http::{HeaderMap, header};

/// Whether a page of this host sent the request, or no page at all.
pub(crate) fn is_from_this_host(headers: &HeaderMap, host: &Host) -> bool {
    match origin(headers) {
        Some(origin) => {
            let ours = host.public_url.as_deref() == Some(origin);
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            ours || (authority.is_some() && authority == text(headers, header::HOST.as_str()))
        }
        None => matches!(
            text(headers, "sec-fetch-site"),
            None | Some("same-origin" | "none")
        ),
    }
}

/// The site of the page that sent the request, if the browser tells.
pub(crate) fn origin(headers: &HeaderMap) -> Option<&str> {
    text(headers, header::ORIGIN.as_str()).filter(|origin| *origin != "null")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
