//! `GET /audit`: decisions about the rights of admins.

use super::admin_call;
use crate::api::SharedState;
use crate::caller::{AuditRead, Caller, OfConversations};
use crate::paging::{cursor, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use tandem_app::conversation::{AuditCursor, AuditQuery, MAX_ENTRIES};
use tandem_record::{AgentId, SessionId};
use tandem_wire::conversation as wire;

#[utoipa::path(
    get, path = "/v1/host/tandem/audit", tag = "conversations", operation_id = "listAuthorizations",
    params(("sessionId" = Option<String>, Query), ("agentId" = Option<String>, Query),
           ("actorId" = Option<String>, Query), ("action" = Option<String>, Query),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Who was allowed or refused what, oldest first: of a session, of an agent, or of all agents one after the other", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<AuditRead>>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&[
        "sessionId",
        "agentId",
        "actorId",
        "action",
        "limit",
        "cursor",
    ])?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let after = after.map(|text| AuditCursor::parse(&text).ok_or_else(unknown_cursor));
    let limit = params.number("limit", 1..=MAX_ENTRIES as u64)?;
    let query = AuditQuery {
        session: params.get("sessionId").map(SessionId::from),
        agent: params.get("agentId").map(AgentId::from),
        actor: params.get("actorId").map(str::to_owned),
        action: params.get("action").map(str::to_owned),
        after: after.transpose()?,
        limit: limit.map_or(MAX_ENTRIES, |limit| limit as usize),
    };
    let call = admin_call(&caller, &headers);
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let found = api.app.read_authorizations(&call, query).await?;
    let entries = found.entries.iter();
    let entries: Vec<Value> = entries
        .map(|entry| wire::audit_entry(&entry.decision, entry.session.as_ref(), entry.at))
        .collect();
    let mut body = json!({"entries": entries});
    if let Some(next) = &found.next {
        body["nextCursor"] = json!(cursor(&next.to_text()));
    }
    Ok(Json(body))
}
