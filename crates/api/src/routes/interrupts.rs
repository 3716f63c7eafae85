//! Resolving an interrupt of a run, by its node.

use super::conversation::admin_call;
use crate::api::SharedState;
use crate::caller::{ApprovalsRespond, Caller};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::{AcceptedAnswer, AnswerTarget, AskedBy, SubmittedAnswer};
use tandem_record::{NodeId, Principal, RunId, Vote};
use tandem_wire::v1::time::rfc3339;
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
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let begun = request.begin_for_admin(&api, &caller, &headers).await?;
    let ticket = match begun {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let answer: Answer = request.json()?;
    let target = AnswerTarget::Node {
        run: RunId::from(run),
        node: NodeId::from(node),
    };
    let call = admin_call(&caller, &headers);
    if let Some(question) = api.app.conversation_question(&call, &target).await? {
        return respond(ticket, render_accepted, |idempotency| {
            let app = &api.app;
            app.answer_conversation(&call, question, answer.into(), idempotency)
        })
        .await;
    }
    respond(ticket, render_accepted, |idempotency| {
        api.app.decide(&caller, target, answer.into(), idempotency)
    })
    .await
}

impl From<Answer> for SubmittedAnswer {
    fn from(answer: Answer) -> Self {
        Self {
            value: answer.resume_value,
            digest: answer.digest,
            acting_for: answer.acting_for.map(Principal::from),
        }
    }
}

/// The response to an accepted answer.
pub(super) fn render_accepted(accepted: &AcceptedAnswer) -> ApiResponse {
    let AcceptedAnswer {
        asked_by,
        interrupt,
        kind,
        outcome,
        votes,
    } = accepted;
    let mut summary = json!({"interruptId": interrupt, "kind": kind});
    let mut body = match asked_by {
        AskedBy::Run { run, node, status } => {
            summary["nodeId"] = json!(node);
            json!({"runId": run, "nodeId": node, "status": status.as_str()})
        }
        AskedBy::Session(session) => json!({"sessionId": session}),
    };
    if let Some(outcome) = outcome {
        summary["outcome"] = json!(outcome);
    }
    if !votes.is_empty() {
        summary["votes"] = votes.iter().map(render_vote).collect();
    }
    body["interrupt"] = summary;
    ApiResponse::ok(body)
}

fn render_vote(vote: &Vote) -> Value {
    let at = rfc3339(vote.at);
    let mut shown = json!({"voter": vote.voter, "action": vote.action, "at": at});
    if let Some(claimed_by) = &vote.claimed_by {
        shown["claimedBy"] = json!(claimed_by);
    }
    if vote.via_link {
        shown["viaLink"] = json!(true);
    }
    if let Some(delegate) = &vote.delegate {
        shown["delegate"] = json!(delegate);
    }
    shown
}
