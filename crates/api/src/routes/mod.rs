//! The routes, one file per resource. Each handler is declared once: its annotation defines both
//! the route and its entry in the OpenAPI document.

mod ancestry;
mod artifacts;
mod audit;
mod bulk_cancel;
mod control;
mod conversation;
mod create_run;
mod debug_bundle;
mod delegations;
mod diff;
mod discovery;
mod events;
mod external_events;
mod fallback;
mod fork;
mod groups;
mod health;
mod inbox;
mod interrupts;
mod keys;
mod links;
mod list_runs;
mod memory;
mod mock_models;
mod parked;
mod poll;
mod receipts;
mod registry;
mod runs;
mod storage;
mod test_seams;
mod webhook_log;
mod webhooks;

use crate::api::SharedState;
use crate::verb::to_router_path;
use crate::web_chat;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use conversation::{assignment, compared_lines, console_call, schedule_status};
pub(crate) use diff::ProjectedRun;
pub(crate) use fallback::{no_method, no_route};
pub(crate) use fork::ForkRunRequest;
pub(crate) use inbox::{actions, expired_at, question_position, title};
pub(crate) use list_runs::run_cursor;
pub(crate) use runs::snapshot_extras;
pub(crate) use webhook_log::delivery_state_name;

/// Routes that are part of the OpenAPI document.
pub(crate) fn add_documented_routes(
    router: OpenApiRouter<SharedState>,
    test_seams: bool,
    ancestry: bool,
) -> OpenApiRouter<SharedState> {
    let router = router
        .routes(routes!(discovery::discover))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .routes(routes!(registry::read))
        .routes(routes!(registry::post))
        .routes(routes!(registry::list))
        .routes(routes!(registry::put, registry::read_own, registry::delete))
        .routes(routes!(create_run::create_run, list_runs::list_runs))
        .routes(routes!(list_runs::list_runs_of_host))
        .routes(routes!(runs::read_run))
        .routes(routes!(events::stream_events))
        .routes(routes!(poll::poll_events))
        .routes(routes!(control::cancel))
        .routes(routes!(bulk_cancel::bulk_cancel))
        .routes(to_router_path(routes!(control::pause)))
        .routes(to_router_path(routes!(control::resume)))
        .routes(to_router_path(routes!(fork::fork)))
        .routes(to_router_path(routes!(diff::diff_runs)))
        .routes(routes!(memory::read_memory))
        .routes(routes!(storage::read_storage))
        .routes(routes!(parked::list))
        .routes(routes!(parked::retry))
        .routes(routes!(artifacts::read_artifact))
        .routes(routes!(debug_bundle::read_bundle))
        .routes(routes!(ancestry::vendor_kinds))
        .routes(routes!(interrupts::resolve_at_node))
        .routes(routes!(links::inspect, links::answer))
        .routes(routes!(inbox::list))
        .routes(routes!(inbox::read))
        .routes(to_router_path(routes!(inbox::resolve)))
        .routes(routes!(receipts::read))
        .routes(routes!(audit::verify))
        .routes(routes!(audit::export))
        .routes(routes!(external_events::deliver))
        .routes(routes!(groups::list))
        .routes(routes!(groups::put, groups::read, groups::delete))
        .routes(routes!(delegations::create, delegations::list))
        .routes(routes!(delegations::delete))
        .routes(routes!(keys::create, keys::list))
        .routes(routes!(keys::read, keys::revoke))
        .routes(to_router_path(routes!(keys::rotate)))
        .routes(routes!(webhooks::register))
        .routes(routes!(webhooks::unregister))
        .routes(to_router_path(routes!(webhooks::rotate)))
        .routes(routes!(webhook_log::list))
        .routes(routes!(webhook_log::read))
        .routes(routes!(webhook_log::deliveries))
        .routes(routes!(webhook_log::redeliver));
    let router = web_chat::add_routes(conversation::add_routes(router));
    let router = match ancestry {
        true => router.routes(routes!(ancestry::read_ancestry)),
        false => router,
    };
    if !test_seams {
        return router;
    }
    conversation::add_test_routes(router)
        .routes(routes!(test_seams::move_clock))
        .routes(routes!(test_seams::arm_crash))
        .routes(routes!(test_seams::read_spans))
        .routes(routes!(mock_models::program))
}

/// Paths of the protocol that only get the response "not served by this host".
pub(crate) fn add_undocumented_routes(
    router: OpenApiRouter<SharedState>,
) -> OpenApiRouter<SharedState> {
    fallback::routes(router)
}
