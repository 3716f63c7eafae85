//! Where everything is put together.

use crate::access_log;
use crate::api::{Api, Doors, Shared};
use crate::console;
use crate::openapi;
use crate::problem::Problem;
use crate::routes;
use crate::verb::{self, Verbs};
use axum::Router;
use axum::http::header;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use std::any::Any;
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes as described;

/// Opens the doors. Serve the result with connection info, so that failed sign-ins can be limited
/// by address.
pub fn router(api: Api) -> Router {
    let (test_seams, with_console) = (api.test_seams, api.console);
    let doors: Shared = Arc::new(Doors::new(api));
    let blank = OpenApiRouter::with_openapi(openapi::blank(doors.host.version));
    let collected = routes::described(blank, test_seams).routes(described!(describe));
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
    let metrics = doors.runtime.metrics().clone();
    let router = router
        .fallback(routes::no_route)
        .method_not_allowed_fallback(routes::no_method)
        .layer(axum::Extension(Description(description.into())))
        .layer(CatchPanicLayer::custom(
            move |cause: Box<dyn Any + Send>| {
                metrics.panics.inc();
                Problem::internal(&panic_message(&*cause)).into_response()
            },
        ))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&doors),
            access_log::observe,
        ))
        .with_state(doors);
    Router::new().fallback_service(Verbs::new(router, prefixes))
}

#[derive(Clone)]
struct Description(Arc<str>);

#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "discovery", operation_id = "describe",
    responses((status = 200, description = "This document", body = serde_json::Value))
)]
async fn describe(axum::Extension(Description(text)): axum::Extension<Description>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, text.to_string()).into_response()
}

/// What a panic said, for the log.
fn panic_message(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| cause.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a handler panicked".to_owned())
}
