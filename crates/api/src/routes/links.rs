//! Signed links: the token is the credential. Reading never decides; deciding works once.
//!
//! Order of checks, so that a stranger learns nothing: signature, question known, decided or dead,
//! expired, the keys of whom the link was issued to, intent, then whatever the engine has against the answer.

use super::interrupts::Answer;
use crate::api::{ApiState, SharedState};
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::resolve_interrupt::{SubmittedAnswer, decide_by_link};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tandem_access::{Identity, LinkClaims, LinkIntent, Scope};
use tandem_record::{InterruptView, Partition, RunId, Timestamp};
use tandem_runtime::InterruptRow;
use tandem_wire::v1::interrupt::public_data;
use tandem_wire::v1::project::SignedLink;
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
    let (claims, row) = find_linked_interrupt(&api, &token).await?;
    check_open(&api, &claims, &row)?;
    check_holder(&api, &claims, &row, LinkIntent::Inspect).await?;
    let shown: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let mut body = json!({
        "interruptId": row.interrupt,
        "kind": row.kind,
        "key": shown["key"],
        "data": public_data(&row.kind, &shown["data"]),
        "digest": shown["digest"],
        "requestedAt": rfc3339(row.created_at),
        "expiresAt": rfc3339(claims.expires_at),
        "resolved": false,
    });
    if !shown["resumeSchema"].is_null() {
        body["resumeSchema"] = shown["resumeSchema"].clone();
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
    let (claims, row) = find_linked_interrupt(&api, &token).await?;
    // Idempotency keys are scoped to the workspace of the interrupt. An earlier response is
    // returned first, because the interrupt is resolved by then.
    let of = Partition {
        tenant: row.tenant.clone(),
        workspace: row.workspace.clone(),
    };
    let ticket = match request.begin_for(&api, &of).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    check_open(&api, &claims, &row)?;
    if claims.intent != LinkIntent::Resolve {
        return Err(Problem::forbidden("This link may look, but not decide."));
    }
    check_holder(&api, &claims, &row, LinkIntent::Resolve).await?;
    let answer: Answer = request.json()?;
    if answer.acting_for.is_some() {
        return Err(Problem::invalid("/actingFor", "a link acts for nobody"));
    }
    let submitted = SubmittedAnswer {
        node: row.node,
        interrupt: Some(row.interrupt),
        value: answer.resume_value,
        digest: answer.digest,
        acting_for: None,
    };
    decide_by_link(&api, ticket, of, row.run_id, submitted).await
}

/// The claims of a token and its interrupt.
async fn find_linked_interrupt(
    api: &ApiState,
    token: &str,
) -> Result<(LinkClaims, InterruptRow), Problem> {
    let claims = api
        .links
        .verify(token)
        .ok_or_else(Problem::interrupt_not_found)?;
    let run = api.runtime.find_any_run(&claims.run_id).await?;
    let run = run.ok_or_else(Problem::interrupt_not_found)?;
    let found = api
        .runtime
        .question(&run.row.tenant, &claims.interrupt_id)
        .await?;
    let row = found.ok_or_else(Problem::interrupt_not_found)?;
    Ok((claims, row))
}

/// A link is invalid once its interrupt is closed, for whatever reason.
fn check_open(api: &ApiState, claims: &LinkClaims, row: &InterruptRow) -> Result<(), Problem> {
    if let Some(outcome) = &row.closed {
        let shown: Value = serde_json::from_str(&row.body).unwrap_or_default();
        let by = shown["decidedBy"].as_str();
        let at = Timestamp(shown["decidedAt"].as_i64().unwrap_or_default());
        return Err(Problem::already_resolved(outcome, by, at));
    }
    if api.now() >= claims.expires_at {
        return Err(Problem::link_expired());
    }
    Ok(())
}

/// A link does no more than whom it was issued to may still do.
async fn check_holder(
    api: &ApiState,
    claims: &LinkClaims,
    row: &InterruptRow,
    intent: LinkIntent,
) -> Result<(), Problem> {
    // Links of earlier releases name nobody; they end within half an hour.
    let Some(principal) = &claims.issued_to else {
        return Ok(());
    };
    let of = Partition {
        tenant: row.tenant.clone(),
        workspace: row.workspace.clone(),
    };
    let holds = api
        .keyring
        .holds_scope(principal, intent.required_scope(), &of, api.now());
    match holds.await? {
        true => Ok(()),
        false => Err(Problem::link_revoked()),
    }
}

/// A link to the question a run waits for. A reader who may not answer gets one that only shows.
pub(crate) fn link(
    api: &ApiState,
    caller: &Identity,
    run: &RunId,
    open: &InterruptView,
) -> SignedLink {
    let intent = LinkIntent::of(caller.require_scope(Scope::ApprovalsRespond).is_ok());
    let claims = LinkClaims::for_interrupt(run, open, intent, Some(&caller.principal), api.now());
    SignedLink {
        token: api.links.sign(&claims),
        expires_at: claims.expires_at,
    }
}
