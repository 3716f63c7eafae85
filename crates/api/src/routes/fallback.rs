//! Paths that lead nowhere, and how to say so. Some optional families of the protocol want to be
//! declined by name, so that a client can tell "not here" from "no such thing".

use crate::api::SharedState;
use crate::caller::{self, AnyScope, Caller};
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use utoipa_axum::router::OpenApiRouter;

const UNSUPPORTED: [(&str, &str); 6] = [
    ("/v1/runs/{runId}/annotations", "feedback"),
    ("/v1/host/workspace/files", "workspace"),
    ("/v1/host/workspace/files/{*path}", "workspace"),
    ("/v1/prompts", "prompts"),
    ("/v1/prompts:render", "prompts"),
    ("/v1/prompts/{templateId}", "prompts"),
];

pub(super) fn routes(mut router: OpenApiRouter<SharedState>) -> OpenApiRouter<SharedState> {
    for (path, capability) in UNSUPPORTED {
        let decline =
            move |_: Caller<AnyScope>| async move { Problem::capability_not_provided(capability) };
        router = router.route(path, any(decline));
    }
    router
}

/// No route matched. Under the API's prefix a caller is known before it learns that nothing is
/// there; anything else is a caller who forgot the prefix.
pub(crate) async fn no_route(State(api): State<SharedState>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path();
    if path.starts_with("/v1/packs/") || path.starts_with("/v1/packs-test/") {
        // Probes for a pack registry take anything but JSON as "there is none".
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    }
    let problem = if path == "/v1" || path.starts_with("/v1/") {
        match caller::authenticate(&parts, &api).await {
            Ok(_) => Problem::not_found("path"),
            Err(problem) => problem,
        }
    } else if path.starts_with("/.well-known/") {
        Problem::not_found("path")
    } else {
        Problem::unversioned(path)
    };
    problem.into_response()
}

pub(crate) async fn no_method() -> Problem {
    Problem::method_not_allowed()
}
