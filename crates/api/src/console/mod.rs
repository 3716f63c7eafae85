//! The console under `/console`: sessions, forms and streams. The console crate renders the pages.
//! Actions are the use cases of the API, with the identity and the scopes of the key the session was opened
//! with.

mod agents_view;
mod assets;
mod compare;
mod compared_answers;
mod conversation_bridge;
mod conversation_card;
mod conversation_list;
mod conversation_page;
mod conversation_takeover;
mod conversation_view;
mod desk_offer;
mod escalation_list;
mod escalation_view;
mod fork;
mod history;
mod inbox;
mod inbox_answer;
mod inbox_live;
mod inbox_view;
mod live_rows;
mod login;
mod page;
mod people_view;
mod run_list;
mod run_live;
mod run_page;
mod run_tree_view;
mod run_view;
mod schedule_list;
mod schedule_page;
mod schedule_view;
mod session;
mod shown_bytes;
mod webhooks;
mod workflows;

use crate::api::SharedState;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{Redirect, Response};
use axum::routing::{get, post};

pub(crate) use assets::asset_response;

pub(crate) fn routes() -> Router<SharedState> {
    let root = || async { Redirect::to("/console") };
    Router::new()
        .route("/", get(root))
        .route("/console", get(login::home))
        .route("/console/", get(login::home))
        .route("/console/login", get(login::show).post(login::sign_in))
        .route("/console/logout", post(login::sign_out))
        .route("/console/assets/{name}", get(assets::file))
        .route("/console/inbox", get(inbox::list))
        .route("/console/inbox/live", get(inbox_live::live))
        .route("/console/inbox/{interruptId}", get(inbox::question))
        .route(
            "/console/inbox/{interruptId}/answer",
            post(inbox_answer::answer),
        )
        .route("/console/conversations", get(conversation_list::show))
        .route("/console/conversations/live", get(conversation_list::live))
        .route(
            "/console/conversations/{sessionId}",
            get(conversation_page::show),
        )
        .route(
            "/console/conversations/{sessionId}/live",
            get(conversation_page::live),
        )
        .route(
            "/console/conversations/{sessionId}/end",
            post(conversation_page::end),
        )
        .route(
            "/console/conversations/{sessionId}/takeover",
            post(conversation_takeover::take_over),
        )
        .route(
            "/console/conversations/{sessionId}/takeover/messages",
            post(conversation_takeover::write),
        )
        .route(
            "/console/conversations/{sessionId}/handback",
            post(conversation_takeover::hand_back),
        )
        .route(
            "/console/conversations/{sessionId}/compare-answers",
            post(compared_answers::compare),
        )
        .route(
            "/console/proxies/{proxyId}/stop",
            post(conversation_bridge::stop),
        )
        .route(
            "/console/proxies/{proxyId}/input",
            post(conversation_bridge::write),
        )
        .route(
            "/console/proxies/{proxyId}/messages",
            post(conversation_bridge::show),
        )
        .route("/console/escalations", get(escalation_list::show))
        .route("/console/escalations/live", get(escalation_list::live))
        .route(
            "/console/escalations/{escalationId}",
            post(escalation_list::act),
        )
        .route("/console/schedules", get(schedule_list::show))
        .route("/console/schedules/live", get(schedule_list::live))
        .route("/console/schedules/{scheduleId}", get(schedule_page::show))
        .route(
            "/console/schedules/{scheduleId}/live",
            get(schedule_page::live),
        )
        .route(
            "/console/schedules/{scheduleId}/{action}",
            post(schedule_page::act),
        )
        .route(
            "/console/schedule-runs/{scheduleRunId}",
            get(schedule_page::run),
        )
        .route("/console/runs", get(run_list::show))
        .route("/console/runs/live", get(run_list::live))
        .route("/console/runs/{runId}", get(run_page::show))
        .route("/console/runs/{runId}/live", get(run_live::live))
        .route(
            "/console/runs/{runId}/history",
            get(history::redirect_to_event),
        )
        .route("/console/runs/{runId}/at/{seq}", get(history::show))
        .route("/console/runs/{runId}/fork", post(fork::make))
        .route("/console/runs/{runId}/diff/{otherId}", get(compare::show))
        .route("/console/runs/{runId}/{action}", post(run_page::act))
        .route("/console/workflows", get(workflows::list))
        .route("/console/workflows/{workflowId}", get(workflows::show))
        .route(
            "/console/workflows/{workflowId}/runs",
            post(workflows::start),
        )
        .route("/console/webhooks", get(webhooks::list))
        .route("/console/webhooks/{webhookId}", get(webhooks::show))
        .route(
            "/console/webhooks/{webhookId}/deliveries/{number}",
            post(webhooks::redeliver),
        )
        .route("/console/{*rest}", get(page::not_found))
        .layer(middleware::from_fn(guard))
}

/// Everything a page needs comes from this origin. No other origin may frame the page, run scripts
/// in it or get its URL as referrer.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let set: [(HeaderName, &'static str); 4] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Pages show what one key may see; only assets set their own cache header.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
