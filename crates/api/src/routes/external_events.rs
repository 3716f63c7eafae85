//! External events, delivered to a run. An event that a node waits for resumes the node; an earlier
//! event is stored for a matching wait. Repeating a delivery with the same event id changes
//! nothing.

use crate::api::SharedState;
use crate::caller::{ApprovalsRespond, Caller};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tandem_app::{DeliveredEvent, ExternalEvent};
use tandem_record::{ExternalEventOutcome, Object, RunId};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = OutsideEvent)]
pub(super) struct ExternalEventRequest {
    /// The sender's id of the event.
    event_id: String,
    /// The event type that the node waits for.
    event_type: String,
    /// Contains the values the wait correlates by.
    payload: Object,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/runs/{runId}/events", tag = "interrupts",
    operation_id = "deliverEvent", params(("runId" = String, Path)), request_body = ExternalEventRequest,
    responses((status = 200, description = "It answered a question, or was delivered before", body = Value),
              (status = 202, description = "Kept for a node that will wait for it", body = Value))
)]
pub(super) async fn deliver(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams(run): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let delivered: ExternalEventRequest = request.json()?;
    let run = RunId::from(run);
    let event = ExternalEvent {
        event_id: delivered.event_id,
        event_type: delivered.event_type,
        payload: delivered.payload,
    };
    respond(ticket, render_delivered, |idempotency| {
        api.app.deliver_event(&caller, run, event, idempotency)
    })
    .await
}

fn render_delivered(delivered: &DeliveredEvent) -> ApiResponse {
    let mut body = json!({"runId": delivered.run, "status": delivered.status.as_str()});
    match &delivered.outcome {
        ExternalEventOutcome::Matched { node, interrupt } => {
            body["event"] = json!("matched");
            body["nodeId"] = json!(node);
            body["interruptId"] = json!(interrupt);
            ApiResponse::ok(body)
        }
        ExternalEventOutcome::Duplicate => {
            body["event"] = json!("repeated");
            ApiResponse::ok(body)
        }
        ExternalEventOutcome::Retained => {
            body["event"] = json!("kept");
            ApiResponse::accepted(body)
        }
    }
}
