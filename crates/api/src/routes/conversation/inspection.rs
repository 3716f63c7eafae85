//! What operators inspect of a session.

use crate::api::SharedState;
use crate::caller::{Caller, RunsRead};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tandem_record::SessionId;
use tandem_wire::conversation as wire;

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/messages", tag = "conversations",
    operation_id = "readMessages", params(("sessionId" = String, Path)),
    responses((status = 200, description = "What was said, in order", body = Value))
)]
pub(super) async fn messages(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(session): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let log = api.app.read_session_log(&caller, &session).await?;
    let messages: Vec<Value> = log.messages.iter().map(wire::message).collect();
    Ok(Json(json!({"messages": messages})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/kv", tag = "conversations",
    operation_id = "readSessionKeys", params(("sessionId" = String, Path)),
    responses((status = 200, description = "All keys of the session, reserved ones included", body = Value))
)]
pub(super) async fn keys(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(session): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let keys = api.app.read_session_keys(&caller, &session).await?;
    Ok(Json(json!(keys)))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/outbox", tag = "conversations",
    operation_id = "readSessionOutbox", params(("sessionId" = String, Path)),
    responses((status = 200, description = "Texts on their way, and delivered ones", body = Value))
)]
pub(super) async fn outbox(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(session): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let log = api.app.read_session_log(&caller, &session).await?;
    let intents = log.outbox.iter();
    let intents: Vec<Value> = intents
        .map(|intent| wire::outbox_entry(&session, intent))
        .collect();
    Ok(Json(json!({"outbox": intents})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/journal", tag = "conversations",
    operation_id = "readSessionJournal", params(("sessionId" = String, Path)),
    responses((status = 200, description = "The journals of the session's flow runs", body = Value))
)]
pub(super) async fn journal(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(session): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let entries = api.app.read_session_journal(&caller, &session).await?;
    let records = entries.iter();
    let records: Vec<Value> = records
        .map(|entry| wire::journal_record(&entry.run, &entry.record))
        .collect();
    Ok(Json(json!({"records": records})))
}
