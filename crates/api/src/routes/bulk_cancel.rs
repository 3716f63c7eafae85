//! `POST /v1/runs:bulk-cancel`. Each run is cancelled by its own commit. Cancelling twice is
//! harmless, so the whole answer may be kept after the deed.

use crate::api::{Doors, Shared};
use crate::body::present;
use crate::caller::{Caller, RunsCancel};
use crate::mutation::{Begun, Mutation};
use crate::problem::Problem;
use crate::said::Said;
use crate::to_the_end::to_the_end;
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
pub(super) struct Asked {
    run_ids: Vec<String>,
    #[serde(default, deserialize_with = "present")]
    reason: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/runs:bulk-cancel", tag = "runs", operation_id = "bulkCancelRuns",
    request_body = Asked,
    responses((status = 200, description = "One result per id, in the order asked", body = Value))
)]
pub(super) async fn bulk_cancel(
    State(doors): State<Shared>,
    caller: Caller<RunsCancel>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let asked: Asked = request.json()?;
    check(&asked)?;
    let mut results = Vec::with_capacity(asked.run_ids.len());
    for id in &asked.run_ids {
        let outcome = cancel_one(&doors, &caller, id, asked.reason.clone()).await?;
        results.push(match outcome {
            Ok(status) => json!({"runId": id, "ok": true, "status": status.as_str()}),
            Err((code, message)) => json!({
                "runId": id,
                "ok": false,
                // The published shapes disagree on the name; both are read.
                "error": {"code": code, "error": code, "message": message},
            }),
        });
    }
    ticket
        .done(&doors, Said::ok(json!({"results": results})))
        .await
}

fn check(asked: &Asked) -> Result<(), Problem> {
    if asked.run_ids.is_empty() || asked.run_ids.len() > MAX_RUNS {
        return Err(Problem::too_many_run_ids(MAX_RUNS));
    }
    let misfit = asked
        .run_ids
        .iter()
        .position(|id| id.is_empty() || id.chars().count() > MAX_ID_CHARS);
    if let Some(index) = misfit {
        let path = format!("/runIds/{index}");
        return Err(Problem::invalid(&path, "must have 1 to 128 characters"));
    }
    let reason = asked.reason.as_deref().unwrap_or_default();
    if reason.chars().count() > MAX_REASON_CHARS {
        return Err(Problem::invalid(
            "/reason",
            "must have at most 512 characters",
        ));
    }
    Ok(())
}

/// The outer result is trouble of the host and ends the whole request; the inner one is about this
/// run alone.
async fn cancel_one(
    doors: &Doors,
    caller: &Identity,
    id: &str,
    reason: Option<String>,
) -> Result<Result<RunStatus, (&'static str, String)>, Problem> {
    let run = RunId::new(id);
    let told = |problem: Problem| (problem.code(), problem.message().to_owned());
    match doors.visible(caller, &run).await {
        Ok(_) => {}
        Err(problem) if problem.is_of_the_host() => return Err(problem),
        Err(problem) if problem.code() == "run_forbidden" => {
            return Ok(Err(("forbidden", problem.message().to_owned())));
        }
        Err(problem) => return Ok(Err(told(problem))),
    }
    let command = Command::Cancel {
        reason,
        by: Some(caller.principal.clone()),
        by_parent: None,
    };
    let (runtime, partition) = (doors.runtime_of(caller), caller.partition());
    let outcome =
        to_the_end(async move { runtime.submit(&partition, &run, command, None).await }).await;
    Ok(match outcome {
        Ok(Reply::Cancel {
            status: status @ (RunStatus::Completed | RunStatus::Failed),
            ..
        }) => Err((
            "run_terminal",
            format!("The run is {} already.", status.as_str()),
        )),
        Ok(Reply::Cancel { status, .. }) => Ok(status),
        Ok(reply) => unreachable!("a cancel is answered as one, not with {reply:?}"),
        Err(error) => {
            let problem = Problem::from(error);
            if problem.is_of_the_host() {
                return Err(problem);
            }
            Err(told(problem))
        }
    })
}
