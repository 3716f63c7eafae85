//! `POST /v1/runs:bulk-cancel`.

use super::conversation::admin_call;
use crate::api::SharedState;
use crate::body::present;
use crate::caller::{Caller, RunsCancel};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::BulkCancelResult;
use tandem_record::{RunId, RunStatus};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = BulkCancel)]
pub(super) struct BulkCancelRequest {
    run_ids: Vec<String>,
    #[serde(default, deserialize_with = "present")]
    reason: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/runs:bulk-cancel", tag = "runs", operation_id = "bulkCancelRuns",
    request_body = BulkCancelRequest,
    responses((status = 200, description = "One result per id, in the order asked", body = Value))
)]
pub(super) async fn bulk_cancel(
    State(api): State<SharedState>,
    caller: Caller<RunsCancel>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let requested: BulkCancelRequest = request.json()?;
    let runs: Vec<RunId> = requested.run_ids.into_iter().map(RunId::from).collect();
    // Whether a flow may be cancelled depends on the admin who asks.
    let begun = match runs.iter().any(RunId::is_flow_run) {
        true => request.begin_for_admin(&api, &caller, &headers).await?,
        false => request.begin(&api, &caller).await?,
    };
    let ticket = match begun {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let call = admin_call(&caller, &headers);
    let render = |results: &Vec<_>| render_results(results);
    respond(ticket, render, |idempotency| {
        let reason = requested.reason;
        api.app.cancel_runs(&call, runs, reason, idempotency)
    })
    .await
}

fn render_results(results: &[BulkCancelResult]) -> ApiResponse {
    let results: Vec<Value> = results.iter().map(render_result).collect();
    ApiResponse::ok(json!({"results": results}))
}

fn render_result(result: &BulkCancelResult) -> Value {
    let id = &result.run;
    let (code, message) = match &result.result {
        // The run had ended before, but not by a cancellation.
        Ok(status @ (RunStatus::Completed | RunStatus::Failed)) => {
            let message = format!("The run is {} already.", status.as_str());
            ("run_terminal", message)
        }
        Ok(status) => return json!({"runId": id, "ok": true, "status": status.as_str()}),
        Err(error) => {
            let problem = Problem::from(error.clone());
            let code = match problem.code() {
                "run_forbidden" => "forbidden",
                code => code,
            };
            (code, problem.message().to_owned())
        }
    };
    json!({
        "runId": id,
        "ok": false,
        // The published schemas disagree on the name, so both are sent.
        "error": {"code": code, "error": code, "message": message},
    })
}
