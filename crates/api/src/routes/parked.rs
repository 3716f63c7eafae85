//! Timers and effects that kept failing: shown, and tried again when somebody asks for it.

use crate::api::Shared;
use crate::at::At;
use crate::caller::{Caller, RunsCancel, RunsRead};
use crate::mutation::{Begun, Mutation};
use crate::problem::Problem;
use crate::said::Said;
use crate::to_the_end::to_the_end;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tandem_access::Identity;
use tandem_record::StreamId;
use tandem_runtime::ParkedWork;
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/host/tandem/parked", tag = "operations", operation_id = "listParkedWork",
    description = "Timers and effects of the caller's tenant that failed so often that they are tried no \
                   more until somebody asks for it.",
    responses((status = 200, description = "Parked work, at most 500", body = Value))
)]
pub(super) async fn list(
    State(doors): State<Shared>,
    caller: Caller<RunsRead>,
) -> Result<Json<Value>, Problem> {
    whole_tenant(&caller)?;
    let parked = doors.runtime.parked_work(&caller.tenant).await?;
    let parked: Vec<Value> = parked.iter().map(shown).collect();
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
    State(doors): State<Shared>,
    caller: Caller<RunsCancel>,
    At(subject): At<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    whole_tenant(&caller)?;
    let (runtime, tenant) = (doors.runtime_of(&caller), caller.tenant.clone());
    let stream = StreamId::new(&subject);
    let retried = to_the_end(async move { runtime.retry_parked(&tenant, &stream).await }).await?;
    let retried = retried.ok_or_else(|| Problem::not_found("run or webhook"))?;
    let said = Said::accepted(json!({"subject": subject, "retried": retried}));
    ticket.done(&doors, said).await
}

/// Parked work may belong to any workspace.
fn whole_tenant(caller: &Identity) -> Result<(), Problem> {
    if caller.workspace.is_some() {
        let message = "Parked work is shown to keys that are bound to no workspace.";
        return Err(Problem::forbidden(message));
    }
    Ok(())
}

fn shown(work: &ParkedWork) -> Value {
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
