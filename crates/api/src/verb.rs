//! Verbs on the last path segment: `/v1/runs/{runId}:pause`.
//!
//! axum cannot match a parameter with a suffix. So a route is declared under its public path and
//! stored in the router as `/v1/runs/{runId}/@pause`. The request path is rewritten before routing.
//! The OpenAPI document shows the public path.
//!
//! The segment is split at its last colon, which may be percent-encoded. The text after it is a
//! verb, known or not, if it begins with a letter: an unknown verb matches no route and gets 404. Ids of
//! questions of conversations end with a colon and a number.

use axum::extract::Request;
use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;
use axum::http::Uri;
use axum::response::Response;
use axum::{Router, ServiceExt};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::UtoipaMethodRouter;

/// Between the id and the verb inside the router. A caller who sends this path reaches the same
/// route with the same checks.
const ROUTER_SEPARATOR: &str = "}/@";
const PUBLIC_SEPARATOR: &str = "}:";

/// A documented route under the path that the router can match.
pub(crate) fn to_router_path<S>(
    (schemas, mut paths, methods): UtoipaMethodRouter<S>,
) -> UtoipaMethodRouter<S> {
    paths.paths = std::mem::take(&mut paths.paths)
        .into_iter()
        .map(|(path, item)| (path.replace(PUBLIC_SEPARATOR, ROUTER_SEPARATOR), item))
        .collect();
    (schemas, paths, methods)
}

/// The public template of a route.
pub(crate) fn public_template(template: &str) -> String {
    template.replace(ROUTER_SEPARATOR, PUBLIC_SEPARATOR)
}

/// Puts the public paths into the OpenAPI document and returns the collections that have verbs.
pub(crate) fn restore_public_paths(openapi: &mut OpenApi) -> Vec<String> {
    let paths = std::mem::take(&mut openapi.paths.paths);
    let mut prefixes: Vec<String> = paths
        .keys()
        .filter_map(|path| {
            let (before, _) = path.split_once(ROUTER_SEPARATOR)?;
            let (prefix, _) = before.rsplit_once('{')?;
            Some(prefix.to_owned())
        })
        .collect();
    prefixes.sort();
    prefixes.dedup();
    openapi.paths.paths = paths
        .into_iter()
        .map(|(path, item)| (public_template(&path), item))
        .collect();
    prefixes
}

/// All routes; rewrites requests with a verb before routing.
#[derive(Clone)]
pub struct VerbRouter {
    router: Router,
    prefixes: Arc<[String]>,
}

impl VerbRouter {
    pub(crate) fn new(router: Router, prefixes: Vec<String>) -> Self {
        Self {
            router,
            prefixes: prefixes.into(),
        }
    }

    /// Adds the peer address to every request, so that failed sign-ins can be limited by address.
    pub fn into_make_service(self) -> IntoMakeServiceWithConnectInfo<Self, SocketAddr> {
        ServiceExt::<Request>::into_make_service_with_connect_info(self)
    }
}

impl Service<Request> for VerbRouter {
    type Response = Response;
    type Error = Infallible;
    type Future = <Router as Service<Request>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        if let Some(rewritten) = rewrite(request.uri(), &self.prefixes) {
            *request.uri_mut() = rewritten;
        }
        self.router.call(request)
    }
}

fn rewrite(uri: &Uri, prefixes: &[String]) -> Option<Uri> {
    let path = rewrite_path(uri.path(), prefixes)?;
    let mut parts = uri.clone().into_parts();
    let path_and_query = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    parts.path_and_query = Some(path_and_query.parse().ok()?);
    Uri::from_parts(parts).ok()
}

fn rewrite_path(path: &str, prefixes: &[String]) -> Option<String> {
    if !path.starts_with("/v1/") {
        return None;
    }
    let (before, last) = path.rsplit_once('/')?;
    if !last.contains([':', '%']) {
        return None;
    }
    let plain = last.replace("%3A", ":").replace("%3a", ":");
    let of_collection = prefixes
        .iter()
        .any(|prefix| prefix.strip_suffix('/') == Some(before));
    match plain.rsplit_once(':') {
        Some((id, verb))
            if of_collection && verb.starts_with(|c: char| c.is_ascii_alphabetic()) =>
        {
            Some(format!("{before}/{id}/@{verb}"))
        }
        Some(_) if plain != last => Some(format!("{before}/{plain}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_colon_of_last_segment_separates_id_and_verb() {
        let prefixes = vec!["/v1/runs/".to_owned()];
        let rewrite = |path: &str| rewrite_path(path, &prefixes);
        assert_eq!(
            rewrite("/v1/runs/r:pause").as_deref(),
            Some("/v1/runs/r/@pause")
        );
        assert_eq!(
            rewrite("/v1/runs/r%3Apause").as_deref(),
            Some("/v1/runs/r/@pause")
        );
        assert_eq!(
            rewrite("/v1/runs/a:b:c").as_deref(),
            Some("/v1/runs/a:b/@c")
        );
        assert_eq!(
            rewrite("/v1/runs%3abulk-cancel").as_deref(),
            Some("/v1/runs:bulk-cancel")
        );
        assert_eq!(rewrite("/v1/runs/flow-1:3"), None);
        assert_eq!(
            rewrite("/v1/runs/flow-1%3A3").as_deref(),
            Some("/v1/runs/flow-1:3")
        );
        assert_eq!(
            rewrite("/v1/runs/flow-1%3A3:resolve").as_deref(),
            Some("/v1/runs/flow-1:3/@resolve")
        );
        assert_eq!(rewrite("/v1/runs:bulk-cancel"), None);
        assert_eq!(rewrite("/v1/runs/r/events"), None);
        assert_eq!(rewrite("/v1/workflows/a:b"), None);
        assert_eq!(rewrite("/console/runs/r:pause"), None);
    }
}
