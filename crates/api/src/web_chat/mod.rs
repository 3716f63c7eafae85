//! The web chat: the page `/chat/{agentId}`, the script that shows it on other sites, and the UI channel (Z-41)
//! that the page talks over.
//!
//! Visitors have no key. An agent is on the web only if its file says so, and a visitor reaches their own
//! conversation only, with a token that this host issued. No cookie is used, so no other site can act for a
//! visitor.

mod limits;
mod page;
mod protocol;
mod socket;
mod upgrade;

use crate::api::SharedState;
use axum::Router;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;

pub(crate) use limits::VisitorLimits;

/// Pages and files.
pub(crate) fn routes() -> Router<SharedState> {
    Router::new()
        .route("/chat/embed.js", get(page::embed_script))
        .route("/chat/assets/{name}", get(page::file))
        .route("/chat/{agentId}", get(page::show))
}

/// The UI channel.
pub(crate) fn add_routes(router: OpenApiRouter<SharedState>) -> OpenApiRouter<SharedState> {
    router.routes(utoipa_axum::routes!(upgrade::connect))
}
