//! Live takeover: taking a conversation over, writing to its user, handing it back.

use super::admin_request::{AdminRequest, no_body};
use crate::api::SharedState;
use crate::caller::{Caller, ConversationsTakeover, OfConversations};
use crate::mutation::Mutation;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tandem_app::conversation::{TakeoverMessage, TakeoverMessageStatus, TakeoverResult};
use tandem_record::SessionId;
use utoipa::ToSchema;

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/takeover", tag = "conversations",
    operation_id = "takeOverSession", params(("sessionId" = String, Path)),
    responses(
        (status = 200, description = "The caller speaks with the user, and the agent is silent", body = Value),
        (status = 409, description = "`takeover_active`: somebody else does", body = Value)
    )
)]
pub(super) async fn start(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ConversationsTakeover>>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let session = SessionId::from(session);
    admin
        .answer(no_body, shown_takeover, async |call, (), idempotency| {
            api.app.take_over(&call, session, idempotency).await
        })
        .await
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = TakeoverMessage)]
pub(super) struct MessageRequest {
    /// The caller's own id. The same id again sends nothing.
    message_id: String,
    text: String,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/takeover/messages", tag = "conversations",
    operation_id = "writeToUser", params(("sessionId" = String, Path)),
    request_body = MessageRequest,
    responses(
        (status = 200, description = "The text is on its way to the user, or was before", body = Value),
        (status = 409, description = "`takeover_not_active`: the agent speaks", body = Value)
    )
)]
pub(super) async fn write(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ConversationsTakeover>>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let session = SessionId::from(session);
    let read = |request: &Mutation| {
        let sent: MessageRequest = request.json()?;
        Ok(TakeoverMessage {
            message_id: sent.message_id,
            text: sent.text,
        })
    };
    let render = |status: &TakeoverMessageStatus| {
        let status = match status {
            TakeoverMessageStatus::Accepted => "accepted",
            TakeoverMessageStatus::Duplicate => "duplicate",
        };
        ApiResponse::ok(json!({ "status": status }))
    };
    admin
        .answer(read, render, async |call, message, idempotency| {
            api.app
                .send_takeover_message(&call, session, message, idempotency)
                .await
        })
        .await
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Handback)]
pub(super) struct HandbackRequest {
    /// For the agent and the flow. It is not sent to the user.
    #[serde(default)]
    note: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/handback", tag = "conversations",
    operation_id = "handBackSession", params(("sessionId" = String, Path)),
    request_body = HandbackRequest,
    responses(
        (status = 200, description = "The agent speaks again", body = Value),
        (status = 409, description = "`takeover_not_active`, or `agent_unavailable`: nobody would answer", body = Value)
    )
)]
pub(super) async fn end(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<ConversationsTakeover>>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let session = SessionId::from(session);
    let read = |request: &Mutation| {
        let sent: HandbackRequest = request.optional_json()?;
        Ok(sent.note)
    };
    admin
        .answer(read, shown_takeover, async |call, note, idempotency| {
            api.app.hand_back(&call, session, note, idempotency).await
        })
        .await
}

fn shown_takeover(taken: &TakeoverResult) -> ApiResponse {
    ApiResponse::ok(json!({"escalationId": taken.escalation, "mode": taken.mode}))
}
