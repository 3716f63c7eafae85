//! Parked work: timers and effects that kept failing. Lists them and retries them on request.

use crate::api::SharedState;
use crate::caller::{Caller, RunsCancel, RunsRead};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tandem_app::{ParkedWork, RetriedWork};
use tandem_record::StreamId;
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/host/tandem/parked", tag = "operations", operation_id = "listParkedWork",
    description = "Timers and effects of the caller's tenant that failed so often that they are tried no \
                   more until somebody asks for it.",
    responses((status = 200, description = "Parked work, at most 500", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
) -> Result<Json<Value>, Problem> {
    let parked = api.app.list_parked_work(&caller).await?;
    let parked: Vec<Value> = parked.iter().map(to_json).collect();
    Ok(Json(json!({"parked": parked})))
}

#[utoipa::path(
    post, path = "/v1/host/tandem/parked/{subject}/retry", tag = "operations",
    operation_id = "retryParkedWork",
    description = "Tries all parked work of a run or webhook again, now.",
    params(("subject" = String, Path, description = "As the listing names it: `run:<runId>` or `webhook:<webhookId>`")),
    responses((status = 202, description = "How much is tried again", body = Value))
)]
pub(super) async fn retry(
    State(api): State<SharedState>,
    caller: Caller<RunsCancel>,
    PathParams(subject): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let subject = StreamId::from(subject);
    respond(ticket, render_retried, |idempotency| {
        api.app.retry_parked_work(&caller, subject, idempotency)
    })
    .await
}

fn render_retried(RetriedWork { subject, retried }: &RetriedWork) -> ApiResponse {
    ApiResponse::accepted(json!({"subject": subject, "retried": retried}))
}

fn to_json(work: &ParkedWork) -> Value {
    let mut item = json!({
        "subject": work.stream.as_str(),
        "kind": work.kind,
        "name": work.name,
        "failures": work.failures,
        "error": work.error,
        "failedAt": rfc3339(work.failed_at),
    });
    if let Some(run) = work.stream.run() {
        item["runId"] = json!(run);
    }
    item
}
