//! `POST /v1/runs:bulk-cancel`. Each run is cancelled by its own commit. Cancelling twice is
//! harmless, so the response may be stored after the mutation.

use crate::api::{ApiState, SharedState};
use crate::body::present;
use crate::caller::{Caller, RunsCancel};
use crate::detached_request::run_to_completion;
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tandem_access::Identity;
use tandem_record::{Command, Reply, RunId, RunStatus};
use utoipa::ToSchema;

const MAX_RUNS: usize = 100;
const MAX_ID_CHARS: usize = 128;
const MAX_REASON_CHARS: usize = 512;

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
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: BulkCancelRequest = request.json()?;
    check(&requested)?;
    let mut results = Vec::with_capacity(requested.run_ids.len());
    for id in &requested.run_ids {
        let outcome = cancel_one(&api, &caller, id, requested.reason.clone()).await?;
        results.push(match outcome {
            Ok(status) => json!({"runId": id, "ok": true, "status": status.as_str()}),
            Err((code, message)) => json!({
                "runId": id,
                "ok": false,
                // The published schemas disagree on the name, so both are sent.
                "error": {"code": code, "error": code, "message": message},
            }),
        });
    }
    ticket
        .complete(&api, ApiResponse::ok(json!({"results": results})))
        .await
}

fn check(requested: &BulkCancelRequest) -> Result<(), Problem> {
    if requested.run_ids.is_empty() || requested.run_ids.len() > MAX_RUNS {
        return Err(Problem::too_many_run_ids(MAX_RUNS));
    }
    let misfit = requested
        .run_ids
        .iter()
        .position(|id| id.is_empty() || id.chars().count() > MAX_ID_CHARS);
    if let Some(index) = misfit {
        let path = format!("/runIds/{index}");
        return Err(Problem::invalid(&path, "must have 1 to 128 characters"));
    }
    let reason = requested.reason.as_deref().unwrap_or_default();
    if reason.chars().count() > MAX_REASON_CHARS {
        return Err(Problem::invalid(
            "/reason",
            "must have at most 512 characters",
        ));
    }
    Ok(())
}

/// The outer error is a fault of the host and ends the whole request; the inner one is about this
/// run only.
async fn cancel_one(
    api: &ApiState,
    caller: &Identity,
    id: &str,
    reason: Option<String>,
) -> Result<Result<RunStatus, (&'static str, String)>, Problem> {
    let run = RunId::new(id);
    let code_and_message = |problem: Problem| (problem.code(), problem.message().to_owned());
    match api.load_run(caller, &run).await {
        Ok(_) => {}
        Err(problem) if problem.is_server_error() => return Err(problem),
        Err(problem) if problem.code() == "run_forbidden" => {
            return Ok(Err(("forbidden", problem.message().to_owned())));
        }
        Err(problem) => return Ok(Err(code_and_message(problem))),
    }
    let command = Command::Cancel {
        reason,
        by: Some(caller.principal.clone()),
        by_parent: None,
    };
    let (runtime, partition) = (api.runtime_of(caller), caller.partition());
    let outcome =
        run_to_completion(async move { runtime.submit(&partition, &run, command, None).await })
            .await;
    Ok(match outcome {
        Ok(Reply::Cancel {
            status: status @ (RunStatus::Completed | RunStatus::Failed),
            ..
        }) => Err((
            "run_terminal",
            format!("The run is {} already.", status.as_str()),
        )),
        Ok(Reply::Cancel { status, .. }) => Ok(status),
        Ok(reply) => unreachable!("unexpected reply to a cancel: {reply:?}"),
        Err(error) => {
            let problem = Problem::from(error);
            if problem.is_server_error() {
                return Err(problem);
            }
            Err(code_and_message(problem))
        }
    })
}
