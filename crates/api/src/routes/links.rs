//! Signed links: the token is the credential. Reading never decides; deciding works once.

use super::interrupts::{Answer, render_accepted};
use crate::api::SharedState;
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tandem_app::LinkedInterrupt;
use tandem_wire::v1::interrupt::public_data;
use tandem_wire::v1::time::rfc3339;

#[utoipa::path(
    get, path = "/v1/interrupts/{token}", tag = "interrupts", operation_id = "inspectInterrupt",
    params(("token" = String, Path)), security(()),
    responses((status = 200, description = "The open question", body = Value))
)]
pub(super) async fn inspect(
    State(api): State<SharedState>,
    PathParams(token): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let LinkedInterrupt { claims, row } = api.app.inspect_link(&token).await?;
    let question = row.question()?;
    let mut body = json!({
        "interruptId": row.interrupt,
        "kind": row.kind,
        "key": question.key,
        "data": public_data(&row.kind, &question.data),
        "digest": question.digest,
        "requestedAt": rfc3339(row.created_at),
        "expiresAt": rfc3339(claims.expires_at),
        "resolved": false,
    });
    if let Some(schema) = question.resume_schema.filter(|schema| !schema.is_null()) {
        body["resumeSchema"] = schema.into_owned();
    }
    if let Some(deadline) = row.deadline {
        body["deadline"] = json!(rfc3339(deadline));
    }
    Ok(Json(body))
}

#[utoipa::path(
    post, path = "/v1/interrupts/{token}", tag = "interrupts", operation_id = "answerInterrupt",
    params(("token" = String, Path), ("Idempotency-Key" = Option<String>, Header)), security(()),
    request_body = Answer,
    responses((status = 200, description = "Decided, or a vote counted", body = Value))
)]
pub(super) async fn answer(
    State(api): State<SharedState>,
    PathParams(token): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let linked = api.app.find_linked_interrupt(&token).await?;
    // Idempotency keys are scoped to the workspace of the interrupt. An earlier response is
    // returned first, because the interrupt is resolved by then.
    let ticket = match request.begin_for(&api, &linked.partition()).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let link = api.app.admit_link_decision(linked).await?;
    let answer: Answer = request.json()?;
    respond(ticket, render_accepted, |idempotency| {
        api.app.decide_by_link(link, answer.into(), idempotency)
    })
    .await
}
