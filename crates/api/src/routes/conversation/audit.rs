//! `GET /audit`: decisions about the rights of admins.

use super::admin_call;
use crate::api::SharedState;
use crate::caller::{AuditRead, Caller};
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use tandem_app::conversation::AuditQuery;
use tandem_record::{AgentId, SessionId};
use tandem_wire::conversation as wire;

#[utoipa::path(
    get, path = "/v1/host/tandem/audit", tag = "conversations", operation_id = "listAuthorizations",
    params(("sessionId" = Option<String>, Query), ("agentId" = Option<String>, Query),
           ("actorId" = Option<String>, Query), ("action" = Option<String>, Query)),
    responses((status = 200, description = "Who was allowed or refused what, oldest first", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<AuditRead>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&["sessionId", "agentId", "actorId", "action"])?;
    let query = AuditQuery {
        session: params.get("sessionId").map(SessionId::from),
        agent: params.get("agentId").map(AgentId::from),
        actor: params.get("actorId").map(str::to_owned),
        action: params.get("action").map(str::to_owned),
    };
    let call = admin_call(&caller, &headers);
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let found = api.app.read_authorizations(&call, query).await?;
    let entries: Vec<Value> = found
        .iter()
        .map(|entry| wire::audit_entry(&entry.decision, Some(&entry.session), entry.at))
        .collect();
    Ok(Json(json!({"entries": entries})))
}
