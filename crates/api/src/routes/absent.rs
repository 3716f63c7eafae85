//! Paths that lead nowhere, and how to say so. Some optional families of the protocol want to be
//! declined by name, so that a client can tell "not here" from "no such thing".

use crate::api::Shared;
use crate::caller::{Anyone, Caller};
use crate::problem::Problem;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use utoipa_axum::router::OpenApiRouter;

const DECLINED: [(&str, &str); 6] = [
    ("/v1/runs/{runId}/annotations", "feedback"),
    ("/v1/host/workspace/files", "workspace"),
    ("/v1/host/workspace/files/{*path}", "workspace"),
    ("/v1/prompts", "prompts"),
    ("/v1/prompts:render", "prompts"),
    ("/v1/prompts/{templateId}", "prompts"),
];

pub(super) fn routes(mut router: OpenApiRouter<Shared>) -> OpenApiRouter<Shared> {
    for (path, capability) in DECLINED {
        let decline =
            move |_: Caller<Anyone>| async move { Problem::capability_not_provided(capability) };
        router = router.route(path, any(decline));
    }
    router
}

/// No route matched. Nothing under the API's prefix is a plain "not found"; anything else is a
/// caller who forgot the prefix.
pub(crate) async fn no_route(uri: Uri) -> Response {
    let path = uri.path();
    if path.starts_with("/v1/packs/") || path.starts_with("/v1/packs-test/") {
        // Probes for a pack registry take anything but JSON as "there is none".
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    }
    let versioned = path == "/v1" || path.starts_with("/v1/") || path.starts_with("/.well-known/");
    if versioned {
        Problem::not_found("path").into_response()
    } else {
        Problem::unversioned(path).into_response()
    }
}

pub(crate) async fn no_method() -> Problem {
    Problem::method_not_allowed()
}
