//! Conversations: agents, users, sessions, escalations, schedules, and the trail of rights.

mod admin_request;
mod agents;
mod audit;
mod compared_answers;
mod desk_work;
mod escalations;
mod flows;
mod inbound;
mod inspection;
mod media;
mod proxies;
mod schedules;
mod session_events;
mod sessions;
mod takeover;
mod test_seams;
mod transports;

use crate::api::SharedState;
use axum::http::HeaderMap;
use tandem_access::Identity;
use tandem_app::conversation::{ADMIN_TOKEN, AdminCall};
use tandem_wire::conversation as wire;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use compared_answers::compared_lines;
pub(crate) use desk_work::assignment;
pub(crate) use schedules::schedule_status;

pub(super) fn add_routes(router: OpenApiRouter<SharedState>) -> OpenApiRouter<SharedState> {
    router
        .routes(routes!(inbound::deliver))
        .routes(routes!(transports::deliver, transports::verify))
        .routes(routes!(transports::pairing))
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
        .routes(routes!(media::read))
        .routes(routes!(inspection::messages))
        .routes(routes!(inspection::keys))
        .routes(routes!(inspection::outbox))
        .routes(routes!(inspection::journal))
        .routes(routes!(inspection::compare))
        .routes(routes!(compared_answers::compare_answers))
        .routes(routes!(flows::start))
        .routes(routes!(flows::abort))
        .routes(routes!(flows::settle_divergence))
        .routes(routes!(escalations::list))
        .routes(routes!(escalations::read))
        .routes(routes!(escalations::resolve))
        .routes(routes!(escalations::resolve_of_session))
        .routes(routes!(desk_work::claim))
        .routes(routes!(desk_work::release))
        .routes(routes!(desk_work::assign))
        .routes(routes!(takeover::start))
        .routes(routes!(takeover::write))
        .routes(routes!(takeover::end))
        .routes(routes!(proxies::list))
        .routes(routes!(proxies::read))
        .routes(routes!(proxies::input))
        .routes(routes!(proxies::stop))
        .routes(routes!(schedules::list, schedules::create))
        .routes(routes!(
            schedules::read,
            schedules::update,
            schedules::cancel
        ))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(schedules::runs))
        .routes(routes!(schedules::recipients))
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

/// A call of an admin from the console. The rules of the agent see the headers but those that sign the browser in,
/// and the token the admin entered.
pub(crate) fn console_call<'a>(
    caller: &'a Identity,
    headers: &HeaderMap,
    admin_token: Option<&str>,
) -> AdminCall<'a> {
    let mut call = admin_call(caller, headers);
    call.headers.remove("cookie");
    if let Some(token) = admin_token {
        let token = token.to_owned();
        call.headers.insert(ADMIN_TOKEN.to_owned(), token);
    }
    call
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
        chat: None,
    }
}
