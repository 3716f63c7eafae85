//! Events from outside, delivered to a run. One that a node waits for answers it; one that comes too
//! early is kept for the wait that fits. Repeating a delivery under its event id changes nothing.

use crate::api::Shared;
use crate::at::At;
use crate::caller::{ApprovalsRespond, Caller};
use crate::mutation::{Begun, Mutation};
use crate::problem::Problem;
use crate::said::Said;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tandem_record::{Command, EventFate, Object, Reply, RunId};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = OutsideEvent)]
pub(super) struct Delivered {
    /// The sender's own id of the event.
    event_id: String,
    /// What the wait calls it.
    event_type: String,
    /// Holds what the wait correlates by.
    payload: Object,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/runs/{runId}/events", tag = "interrupts",
    operation_id = "deliverEvent", params(("runId" = String, Path)), request_body = Delivered,
    responses((status = 200, description = "It answered a question, or was delivered before", body = Value),
              (status = 202, description = "Kept for a node that will wait for it", body = Value))
)]
pub(super) async fn deliver(
    State(doors): State<Shared>,
    caller: Caller<ApprovalsRespond>,
    At(run): At<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let delivered: Delivered = request.json()?;
    let run = RunId::from(run);
    doors.visible(&caller, &run).await?;
    let command = Command::DeliverEvent {
        event_id: delivered.event_id,
        event_type: delivered.event_type,
        payload: delivered.payload,
        by: Some(caller.principal.clone()),
    };
    ticket.submit(&doors, &caller, run, command, say).await
}

fn say(run: &RunId, reply: &Reply) -> Said {
    let Reply::EventTaken { fate, status } = reply else {
        unreachable!("an event is answered as one, not with {reply:?}");
    };
    let mut body = json!({"runId": run, "status": status.as_str()});
    match fate {
        EventFate::Matched { node, interrupt } => {
            body["event"] = json!("matched");
            body["nodeId"] = json!(node);
            body["interruptId"] = json!(interrupt);
            Said::ok(body)
        }
        EventFate::Repeated => {
            body["event"] = json!("repeated");
            Said::ok(body)
        }
        EventFate::Kept => {
            body["event"] = json!("kept");
            Said::accepted(body)
        }
    }
}
