//! Resolving an interrupt of a run, by its node.

use crate::api::SharedState;
use crate::caller::{ApprovalsRespond, Caller};
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::resolve_interrupt::{SubmittedAnswer, decide};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use tandem_record::{NodeId, Principal, RunId};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Answer {
    /// The decision, answers or event; its shape depends on what is asked.
    pub(crate) resume_value: Value,
    /// What was shown when the decision was made; a mismatch is refused.
    #[serde(default)]
    pub(crate) digest: Option<String>,
    /// In whose place you decide, if they delegated that to you.
    #[serde(default)]
    pub(crate) acting_for: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}/interrupts/{nodeId}", tag = "interrupts",
    operation_id = "resolveInterrupt",
    params(("runId" = String, Path), ("nodeId" = String, Path)), request_body = Answer,
    responses((status = 200, description = "Decided, or a vote counted", body = Value))
)]
pub(super) async fn resolve_at_node(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams((run, node)): PathParams<(String, String)>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let answer: Answer = request.json()?;
    let run = RunId::from(run);
    api.load_run(&caller, &run).await?;
    let submitted = SubmittedAnswer {
        node: NodeId::from(node),
        interrupt: None,
        value: answer.resume_value,
        digest: answer.digest,
        acting_for: answer.acting_for.map(Principal::from),
    };
    decide(&api, ticket, &caller, run, submitted).await
}
