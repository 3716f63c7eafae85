//! Answering a question of a run, by the node that asks.

use crate::api::Shared;
use crate::at::At;
use crate::caller::{ApprovalsRespond, Caller};
use crate::mutation::{Begun, Mutation};
use crate::problem::Problem;
use crate::said::Said;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_record::{Command, NodeId, Reply, RunId};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Answer {
    /// The decision, answers or event; its shape depends on what is asked.
    pub(super) resume_value: Value,
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}/interrupts/{nodeId}", tag = "interrupts",
    operation_id = "resolveInterrupt",
    params(("runId" = String, Path), ("nodeId" = String, Path)), request_body = Answer,
    responses((status = 200, description = "Decided, or a vote counted", body = Value))
)]
pub(super) async fn resolve_at_node(
    State(doors): State<Shared>,
    caller: Caller<ApprovalsRespond>,
    At((run, node)): At<(String, String)>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&doors, &caller).await? {
        Begun::Now(ticket) => ticket,
        Begun::Before(answer) => return Ok(answer),
    };
    let Answer { resume_value } = request.json()?;
    let run = RunId::from(run);
    doors.visible(&caller, &run).await?;
    let command = Command::ResolveInterrupt {
        node: NodeId::from(node),
        interrupt: None,
        value: resume_value,
        by: Some(caller.principal.clone()),
        by_link: false,
    };
    ticket
        .submit(&doors, &caller, run, command, say_resolved)
        .await
}

pub(crate) fn say_resolved(run: &RunId, reply: &Reply) -> Said {
    let Reply::Resolved {
        interrupt,
        node,
        kind,
        outcome,
        votes,
        status,
    } = reply
    else {
        unreachable!("an answer is answered as one, not with {reply:?}");
    };
    let mut summary = json!({"interruptId": interrupt, "kind": kind, "nodeId": node});
    if let Some(outcome) = outcome {
        summary["outcome"] = json!(outcome);
    }
    if !votes.is_empty() {
        let votes = votes
            .iter()
            .map(|v| json!({"voter": v.voter, "action": v.action, "at": rfc3339(v.at)}));
        summary["votes"] = votes.collect();
    }
    Said::ok(json!({
        "runId": run,
        "nodeId": node,
        "status": status.as_str(),
        "interrupt": summary,
    }))
}
