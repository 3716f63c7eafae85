//! Conversations: agents, users, sessions, escalations, and the trail of rights.

mod agents;
mod audit;
mod escalations;
mod flows;
mod inbound;
mod inspection;
mod session_events;
mod sessions;
mod test_seams;

use crate::api::SharedState;
use axum::http::HeaderMap;
use tandem_access::Identity;
use tandem_app::conversation::AdminCall;
use tandem_wire::conversation as wire;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn add_routes(router: OpenApiRouter<SharedState>) -> OpenApiRouter<SharedState> {
    router
        .routes(routes!(inbound::deliver))
        .routes(routes!(agents::list))
        .routes(routes!(agents::read))
        .routes(routes!(agents::users))
        .routes(routes!(agents::change_user))
        .routes(routes!(agents::events))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::read))
        .routes(routes!(sessions::end))
        .routes(routes!(sessions::set_mode))
        .routes(routes!(session_events::read))
        .routes(routes!(inspection::messages))
        .routes(routes!(inspection::keys))
        .routes(routes!(inspection::outbox))
        .routes(routes!(inspection::journal))
        .routes(routes!(flows::start))
        .routes(routes!(flows::abort))
        .routes(routes!(flows::settle_divergence))
        .routes(routes!(escalations::list))
        .routes(routes!(escalations::read))
        .routes(routes!(escalations::resolve))
        .routes(routes!(escalations::resolve_of_session))
        .routes(routes!(audit::list))
}

/// Routes for tests.
pub(super) fn add_test_routes(router: OpenApiRouter<SharedState>) -> OpenApiRouter<SharedState> {
    router
        .routes(routes!(test_seams::outbound))
        .routes(routes!(test_seams::set_faults))
        .routes(routes!(test_seams::model_calls))
        .routes(routes!(test_seams::replace_script))
        .routes(routes!(test_seams::tool_calls))
}

/// A call of an admin: the rules of the agent see every header.
pub(super) fn admin_call<'a>(caller: &'a Identity, headers: &HeaderMap) -> AdminCall<'a> {
    let readable = headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    AdminCall {
        caller,
        headers: readable.collect(),
        show_session: wire::session,
    }
}
