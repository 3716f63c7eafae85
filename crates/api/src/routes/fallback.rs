//! Responses for paths without a route. For some optional families of the protocol the error names
//! the family, so that a client can distinguish "not served by this host" from "unknown path".

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

/// No route matched. Under the API's prefix the caller is authenticated first, so that an anonymous
/// caller cannot probe paths; other paths are reported as a missing prefix.
pub(crate) async fn no_route(State(api): State<SharedState>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path();
    if path.starts_with("/v1/packs/") || path.starts_with("/v1/packs-test/") {
        // Probes for a pack registry treat anything but JSON as "no registry".
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
