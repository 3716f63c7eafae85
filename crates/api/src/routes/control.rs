//! Cancelling, pausing and resuming one run.

use super::conversation::admin_call;
use crate::api::SharedState;
use crate::body::{present, present_enum};
use crate::caller::{Caller, RunsCancel};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tandem_app::{CancelledRun, PausedRun, ResumedRun};
use tandem_record::{DrainPolicy, RunId};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields)]
#[schema(as = Reason)]
pub(super) struct ReasonRequest {
    #[serde(default, deserialize_with = "present")]
    reason: Option<String>,
}

#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = PauseRun)]
pub(super) struct PauseRequest {
    #[serde(default, deserialize_with = "present")]
    reason: Option<String>,
    /// `drain-current-node` (the default) or `immediate`.
    #[serde(default, deserialize_with = "present_enum")]
    #[schema(value_type = Option<String>)]
    drain_policy: Option<DrainPolicy>,
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}/cancel", tag = "runs", operation_id = "cancelRun",
    params(("runId" = String, Path)), request_body = Option<ReasonRequest>,
    responses((status = 200, description = "Cancelled, or on its way", body = Value))
)]
pub(super) async fn cancel(
    State(api): State<SharedState>,
    caller: Caller<RunsCancel>,
    PathParams(run): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let run = RunId::from(run);
    // Whether a flow may be cancelled depends on the admin who asks.
    let begun = match run.is_flow_run() {
        true => request.begin_for_admin(&api, &caller, &headers).await?,
        false => request.begin(&api, &caller).await?,
    };
    let ticket = match begun {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let ReasonRequest { reason } = request.optional_json()?;
    if run.is_flow_run() {
        let call = admin_call(&caller, &headers);
        return respond(ticket, render_cancelled, |idempotency| {
            api.app.cancel_flow_run(&call, run, idempotency)
        })
        .await;
    }
    respond(ticket, render_cancelled, |idempotency| {
        api.app.cancel_run(&caller, run, reason, idempotency)
    })
    .await
}

fn render_cancelled(cancelled: &CancelledRun) -> ApiResponse {
    let mut body = json!({"runId": cancelled.run, "status": cancelled.status.as_str()});
    if cancelled.already_terminal {
        body["alreadyTerminal"] = json!(true);
    }
    ApiResponse::ok(body)
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}:pause", tag = "runs", operation_id = "pauseRun",
    params(("runId" = String, Path)), request_body = Option<PauseRequest>,
    responses((status = 202, description = "Paused, or pausing after the current node", body = Value))
)]
pub(super) async fn pause(
    State(api): State<SharedState>,
    caller: Caller<RunsCancel>,
    PathParams(run): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: PauseRequest = request.optional_json()?;
    let run = RunId::from(run);
    let policy = requested.drain_policy;
    let policy = policy.unwrap_or(DrainPolicy::DrainCurrentNode);
    respond(ticket, render_paused, |idempotency| {
        let reason = requested.reason;
        api.app.pause_run(&caller, run, reason, policy, idempotency)
    })
    .await
}

fn render_paused(PausedRun { run, at }: &PausedRun) -> ApiResponse {
    ApiResponse::accepted(json!({"runId": run, "status": "paused", "pausedAt": rfc3339(*at)}))
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}:resume", tag = "runs", operation_id = "resumeRun",
    params(("runId" = String, Path)), request_body = Option<ReasonRequest>,
    responses((status = 202, description = "Running again", body = Value))
)]
pub(super) async fn resume(
    State(api): State<SharedState>,
    caller: Caller<RunsCancel>,
    PathParams(run): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let ReasonRequest { reason } = request.optional_json()?;
    let run = RunId::from(run);
    respond(ticket, render_resumed, |idempotency| {
        api.app.resume_run(&caller, run, reason, idempotency)
    })
    .await
}

fn render_resumed(ResumedRun { run, at }: &ResumedRun) -> ApiResponse {
    ApiResponse::accepted(json!({"runId": run, "status": "running", "resumedAt": rfc3339(*at)}))
}
