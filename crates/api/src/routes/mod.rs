//! The routes, one file per resource. Each handler is declared once: its annotation is both what
//! the router matches and what the description of the API says.

mod absent;
mod ancestry;
mod artifacts;
mod audit;
mod bulk_cancel;
mod control;
mod create_run;
mod debug_bundle;
mod delegations;
mod diff;
mod discovery;
mod events;
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
mod mock_provider;
mod outside_events;
mod parent_claim;
mod parked;
mod poll;
mod receipts;
mod registry;
mod runs;
mod storage;
mod test_seams;
mod webhook_log;
mod webhooks;

use crate::api::Shared;
use crate::verb::inside;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use absent::{no_method, no_route};
pub(crate) use create_run::Asked;
pub(crate) use diff::Seen;
pub(crate) use fork::Asked as AskedFork;
pub(crate) use inbox::{actions, answering, find_question, shown, title};
pub(crate) use poll::events_up_to;
pub(crate) use runs::snapshot_extras;
pub(crate) use webhook_log::shown_state;

/// Everything described in the API's own description.
pub(crate) fn described(
    router: OpenApiRouter<Shared>,
    test_seams: bool,
    ancestry: bool,
) -> OpenApiRouter<Shared> {
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
        .routes(inside(routes!(control::pause)))
        .routes(inside(routes!(control::resume)))
        .routes(inside(routes!(fork::fork)))
        .routes(inside(routes!(diff::diff_runs)))
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
        .routes(inside(routes!(inbox::resolve)))
        .routes(routes!(receipts::read))
        .routes(routes!(audit::verify))
        .routes(routes!(audit::export))
        .routes(routes!(outside_events::deliver))
        .routes(routes!(groups::list))
        .routes(routes!(groups::put, groups::read, groups::delete))
        .routes(routes!(delegations::create, delegations::list))
        .routes(routes!(delegations::delete))
        .routes(routes!(keys::create, keys::list))
        .routes(routes!(keys::read, keys::revoke))
        .routes(inside(routes!(keys::rotate)))
        .routes(routes!(webhooks::register))
        .routes(routes!(webhooks::unregister))
        .routes(inside(routes!(webhooks::rotate)))
        .routes(routes!(webhook_log::list))
        .routes(routes!(webhook_log::read))
        .routes(routes!(webhook_log::deliveries))
        .routes(routes!(webhook_log::redeliver));
    let router = match ancestry {
        true => router.routes(routes!(ancestry::read_ancestry)),
        false => router,
    };
    if !test_seams {
        return router;
    }
    router
        .routes(routes!(test_seams::move_clock))
        .routes(routes!(test_seams::arm_crash))
        .routes(routes!(test_seams::read_spans))
        .routes(routes!(mock_models::program))
}

/// Paths of the protocol this host answers only to say that it does not serve them.
pub(crate) fn undescribed(router: OpenApiRouter<Shared>) -> OpenApiRouter<Shared> {
    absent::routes(router)
}
