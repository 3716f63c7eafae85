//! Where everything is put together.

use crate::access_log::Observe;
use crate::api::{Api, Doors, Shared};
use crate::console;
use crate::openapi;
use crate::routes;
use crate::verb::{self, Verbs};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes as described;

/// Opens the doors.
pub fn router(api: Api) -> Verbs {
    let (test_seams, with_console) = (api.test_seams, api.console);
    let doors: Shared = Arc::new(Doors::new(api));
    let blank = OpenApiRouter::with_openapi(openapi::blank(doors.host.version));
    let collected =
        routes::described(blank, test_seams, doors.serves_ancestry()).routes(described!(describe));
    let (router, mut description) = routes::undescribed(collected).split_for_parts();
    let prefixes = verb::document(&mut description);
    openapi::finish(&mut description);
    let description = description
        .to_json()
        .expect("a description is plain data with text keys");
    let mut router = router;
    if with_console {
        router = router.merge(console::routes());
    }
    let described = doors.description.set(description.into());
    described.expect("these doors were only just made");
    let router = router
        .fallback(routes::no_route)
        .method_not_allowed_fallback(routes::no_method)
        .layer(Observe(Arc::clone(&doors)))
        .with_state(doors);
    Verbs::new(router, prefixes)
}

#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "discovery", operation_id = "describe",
    responses((status = 200, description = "This document", body = serde_json::Value))
)]
async fn describe(State(doors): State<Shared>) -> Response {
    let text = doors.description.get().cloned().unwrap_or_default();
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, text).into_response()
}
