//! Cancelling, pausing and resuming one run.

use crate::api::Shared;
use crate::at::At;
use crate::body::{present, present_word};
use crate::caller::{Caller, RunsCancel};
use crate::mutation::{Begun, Mutation};
use crate::problem::Problem;
use crate::said::Said;
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
pub(super) struct Reasoned {
    #[serde(default, deserialize_with = "present")]
    reason: Option<String>,
}

#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = PauseRun)]
pub(super) struct Pausing {
    #[serde(default, deserialize_with = "present")]
    reason: Option<String>,
    /// `drain-current-node` (the default) or `immediate`.
    #[serde(default, deserialize_with = "present_word")]
    #[schema(value_type = Option<String>)]
    drain_policy: Option<DrainPolicy>,
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}/cancel", tag = "runs", operation_id = "cancelRun",
    params(("runId" = String, Path)), request_body = Option<Reasoned>,
    responses((status = 200, description = "Cancelled, or on its way", body = Value))
)]
pub(super) async fn cancel(
    State(doors): State<Shared>,
    caller: Caller<RunsCancel>,
    At(run): At<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let Reasoned { reason } = request.optional_json()?;
    let run = RunId::from(run);
    let command = Command::Cancel {
        reason,
        by: Some(caller.principal.clone()),
        by_parent: None,
    };
    ticket
        .submit(&doors, &caller, run, command, say_cancelled)
        .await
}

fn say_cancelled(run: &RunId, reply: &Reply) -> Said {
    let Reply::Cancel {
        status,
        already_terminal,
    } = reply
    else {
        unreachable!("a cancel is answered as one, not with {reply:?}");
    };
    let mut body = json!({"runId": run, "status": status.as_str()});
    if *already_terminal {
        body["alreadyTerminal"] = json!(true);
    }
    Said::ok(body)
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}:pause", tag = "runs", operation_id = "pauseRun",
    params(("runId" = String, Path)), request_body = Option<Pausing>,
    responses((status = 202, description = "Paused, or pausing after the current node", body = Value))
)]
pub(super) async fn pause(
    State(doors): State<Shared>,
    caller: Caller<RunsCancel>,
    At(run): At<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let asked: Pausing = request.optional_json()?;
    let run = RunId::from(run);
    let command = Command::Pause {
        reason: asked.reason,
        policy: asked.drain_policy.unwrap_or(DrainPolicy::DrainCurrentNode),
    };
    ticket
        .submit(&doors, &caller, run, command, say_paused)
        .await
}

fn say_paused(run: &RunId, reply: &Reply) -> Said {
    let Reply::Paused { at } = reply else {
        unreachable!("a pause is answered as one, not with {reply:?}");
    };
    Said::accepted(json!({"runId": run, "status": "paused", "pausedAt": rfc3339(*at)}))
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}:resume", tag = "runs", operation_id = "resumeRun",
    params(("runId" = String, Path)), request_body = Option<Reasoned>,
    responses((status = 202, description = "Running again", body = Value))
)]
pub(super) async fn resume(
    State(doors): State<Shared>,
    caller: Caller<RunsCancel>,
    At(run): At<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let Reasoned { reason } = request.optional_json()?;
    let run = RunId::from(run);
    ticket
        .submit(
            &doors,
            &caller,
            run,
            Command::Resume { reason },
            say_resumed,
        )
        .await
}

fn say_resumed(run: &RunId, reply: &Reply) -> Said {
    let Reply::Resumed { at } = reply else {
        unreachable!("a resume is answered as one, not with {reply:?}");
    };
    Said::accepted(json!({"runId": run, "status": "running", "resumedAt": rfc3339(*at)}))
}
