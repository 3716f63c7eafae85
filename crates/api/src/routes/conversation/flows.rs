//! Starting and aborting flows of a session.

use super::admin_request::{AdminRequest, no_body};
use crate::api::SharedState;
use crate::caller::{Caller, OfConversations, RunsCancel, RunsCreate};
use crate::mutation::Mutation;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::conversation::StartedFlow;
use tandem_record::conversation::{DivergenceAction, SessionView};
use tandem_record::{FlowId, RunId, SessionId};
use tandem_wire::conversation as wire;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = StartFlow)]
pub(super) struct StartFlowRequest {
    flow_id: String,
    /// Checked against the flow's schema, if it has one.
    #[serde(default)]
    input: Option<Value>,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/sessions/{sessionId}/flows", tag = "conversations",
    operation_id = "startFlow", params(("sessionId" = String, Path)),
    request_body = StartFlowRequest,
    responses((status = 201, description = "The flow was started", body = Value))
)]
pub(super) async fn start(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
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
    let render = |started: &StartedFlow| ApiResponse::created(json!({"flowRunId": started.run}));
    let session = SessionId::from(session);
    admin
        .answer(Mutation::json, render, async |call, sent, idempotency| {
            let StartFlowRequest { flow_id, input } = sent;
            let flow = FlowId::from(flow_id);
            api.app
                .start_session_flow(&call, session, flow, input, idempotency)
                .await
        })
        .await
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/sessions/{sessionId}/flows/active", tag = "conversations",
    operation_id = "abortFlow", params(("sessionId" = String, Path)),
    responses((status = 200, description = "The flow was ended", body = Value))
)]
pub(super) async fn abort(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCancel>>,
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
    let render = |(): &()| ApiResponse::ok(json!({"aborted": true}));
    let session = SessionId::from(session);
    admin
        .answer(no_body, render, async |call, (), idempotency| {
            api.app
                .abort_session_flow(&call, session, idempotency)
                .await
        })
        .await
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SettleDivergence)]
pub(super) struct DivergenceRequest {
    /// `abort`, `retry` (its code was restored) or `restart` (a new run with the same input).
    #[schema(value_type = String)]
    action: DivergenceAction,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/runs/{runId}/divergence", tag = "conversations",
    operation_id = "settleDivergence", params(("runId" = String, Path)),
    request_body = DivergenceRequest,
    responses((status = 200, description = "The session of the flow run", body = Value))
)]
pub(super) async fn settle_divergence(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCancel>>,
    PathParams(run): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let render = |view: &SessionView| ApiResponse::ok(wire::session(view));
    let run = RunId::from(run);
    admin
        .answer(Mutation::json, render, async |call, sent, idempotency| {
            let DivergenceRequest { action } = sent;
            api.app
                .settle_divergence(&call, run, action, idempotency)
                .await
        })
        .await
}
