//! What operators inspect of a session.

use crate::api::SharedState;
use crate::caller::{AuditRead, Caller, OfConversations, RunsRead};
use crate::paging::{cursor, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tandem_app::conversation::{InspectionCursor, MAX_INSPECTED};
use tandem_record::SessionId;
use tandem_wire::conversation as wire;

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/messages", tag = "conversations",
    operation_id = "readMessages",
    params(("sessionId" = String, Path), ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "What was said, in order", body = Value))
)]
pub(super) async fn messages(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(session): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let (from, limit) = page(&params)?;
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let found = api
        .app
        .read_session_messages(&caller, &session, from, limit)
        .await?;
    let shown = found.items.iter();
    let shown: Vec<Value> = shown.map(wire::message).collect();
    Ok(listed("messages", shown, found.next))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/kv", tag = "conversations",
    operation_id = "readSessionKeys", params(("sessionId" = String, Path)),
    responses((status = 200, description = "All keys of the session, reserved ones included", body = Value))
)]
pub(super) async fn keys(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(session): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let keys = api.app.read_session_keys(&caller, &session).await?;
    Ok(Json(json!(keys)))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/outbox", tag = "conversations",
    operation_id = "readSessionOutbox",
    params(("sessionId" = String, Path), ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Texts on their way, and delivered ones", body = Value))
)]
pub(super) async fn outbox(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(session): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let (from, limit) = page(&params)?;
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let found = api
        .app
        .read_session_outbox(&caller, &session, from, limit)
        .await?;
    let shown = found.items.iter();
    let shown: Vec<Value> = shown
        .map(|intent| wire::outbox_entry(&session, intent))
        .collect();
    Ok(listed("outbox", shown, found.next))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/journal", tag = "conversations",
    operation_id = "readSessionJournal",
    params(("sessionId" = String, Path), ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "The journals of the session's flow runs", body = Value))
)]
pub(super) async fn journal(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(session): PathParams<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let (from, limit) = page(&params)?;
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let found = api
        .app
        .read_session_journal(&caller, &session, from, limit)
        .await?;
    let shown = found.items.iter();
    let shown: Vec<Value> = shown
        .map(|entry| wire::journal_record(&entry.run, &entry.record))
        .collect();
    Ok(listed("records", shown, found.next))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/rebuild", tag = "conversations",
    operation_id = "compareSession", params(("sessionId" = String, Path)),
    description = "Replays the log of the session from its first event and compares what follows from it \
                   with what is stored: the state that commands start from, and the rows of the session, \
                   its escalations and its open questions. Changes nothing.",
    responses((status = 200, description = "Events replayed, and what differs", body = Value))
)]
pub(super) async fn compare(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<AuditRead>>,
    PathParams(session): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let session = SessionId::from(session);
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let compared = api.app.compare_session(&caller, &session).await?;
    let differences = compared.differences.iter();
    let differences: Vec<Value> = differences
        .map(|found| json!({"projection": found.projection, "id": found.id}))
        .collect();
    Ok(Json(json!({
        "sessionId": session,
        "events": compared.head.0 + 1,
        "matches": differences.is_empty(),
        "differences": differences,
    })))
}

/// Where the page starts, and how much is on it.
pub(super) fn page(params: &Params) -> Result<(InspectionCursor, usize), Problem> {
    params.only(&["limit", "cursor"])?;
    let limit = params.number("limit", 1..=MAX_INSPECTED as u64)?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let from = match params.get("cursor") {
        None => InspectionCursor::default(),
        Some(text) => {
            let text = parse_cursor(text)?;
            InspectionCursor::parse(&text).ok_or_else(unknown_cursor)?
        }
    };
    Ok((from, limit.unwrap_or(MAX_INSPECTED)))
}

fn listed(noun: &str, items: Vec<Value>, next: Option<InspectionCursor>) -> Json<Value> {
    let mut body = json!({ noun: items });
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(&next.to_text()));
    }
    Json(body)
}
