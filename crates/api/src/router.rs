//! Assembles routes, layers and state.

use crate::access_log::AccessLogLayer;
use crate::api::{ApiConfig, ApiState, SharedState};
use crate::console;
use crate::openapi;
use crate::routes;
use crate::verb::{self, VerbRouter};
use crate::web_chat;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes as described;

/// Builds the router of the HTTP API.
pub fn router(config: ApiConfig) -> VerbRouter {
    let (test_seams, with_console) = (config.test_seams, config.console);
    let api: SharedState = Arc::new(ApiState::new(config));
    let blank = OpenApiRouter::with_openapi(openapi::blank(api.host.version));
    let collected = routes::add_documented_routes(blank, test_seams, api.serves_ancestry())
        .routes(described!(describe));
    let (router, mut description) = routes::add_undocumented_routes(collected).split_for_parts();
    let prefixes = verb::restore_public_paths(&mut description);
    openapi::finish(&mut description);
    let description = description
        .to_json()
        .expect("the OpenAPI document is plain data with text keys");
    let mut router = router.merge(web_chat::routes());
    if with_console {
        router = router.merge(console::routes());
    }
    let described = api.openapi_json.set(description.into());
    described.expect("the OpenAPI document is set once, here");
    let router = router
        .fallback(routes::no_route)
        .method_not_allowed_fallback(routes::no_method)
        .layer(AccessLogLayer(Arc::clone(&api)))
        .with_state(api);
    VerbRouter::new(router, prefixes)
}

#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "discovery", operation_id = "describe",
    responses((status = 200, description = "This document", body = serde_json::Value))
)]
async fn describe(State(api): State<SharedState>) -> Response {
    let text = api.openapi_json.get().cloned().unwrap_or_default();
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, text).into_response()
}
