//! Cancelling, pausing and resuming one run.

use crate::api::SharedState;
use crate::body::{present, present_enum};
use crate::caller::{Caller, RunsCancel};
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tandem_record::{Command, DrainPolicy, Reply, RunId};
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
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let ReasonRequest { reason } = request.optional_json()?;
    let run = RunId::from(run);
    let command = Command::Cancel {
        reason,
        by: Some(caller.principal.clone()),
        by_parent: None,
    };
    ticket
        .submit(&api, &caller, run, command, render_cancelled)
        .await
}

fn render_cancelled(run: &RunId, reply: &Reply) -> ApiResponse {
    let Reply::Cancel {
        status,
        already_terminal,
    } = reply
    else {
        unreachable!("unexpected reply to a cancel: {reply:?}");
    };
    let mut body = json!({"runId": run, "status": status.as_str()});
    if *already_terminal {
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
    let command = Command::Pause {
        reason: requested.reason,
        policy: requested
            .drain_policy
            .unwrap_or(DrainPolicy::DrainCurrentNode),
    };
    ticket
        .submit(&api, &caller, run, command, render_paused)
        .await
}

fn render_paused(run: &RunId, reply: &Reply) -> ApiResponse {
    let Reply::Paused { at } = reply else {
        unreachable!("unexpected reply to a pause: {reply:?}");
    };
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
    ticket
        .submit(
            &api,
            &caller,
            run,
            Command::Resume { reason },
            render_resumed,
        )
        .await
}

fn render_resumed(run: &RunId, reply: &Reply) -> ApiResponse {
    let Reply::Resumed { at } = reply else {
        unreachable!("unexpected reply to a resume: {reply:?}");
    };
    ApiResponse::accepted(json!({"runId": run, "status": "running", "resumedAt": rfc3339(*at)}))
}
