//! The console's mount.
use crate::api::Shared;
use axum::Router;
use axum::routing::get;

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route("/console/todo", get(|| async { "" }))
}
