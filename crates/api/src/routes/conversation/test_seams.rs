//! Test routes of conversations, present only when the operator enabled them: what agents sent and called, and
//! faults of the loopback transport.

use crate::api::SharedState;
use crate::caller::{Caller, Test};
use crate::mutation::Mutation;
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::conversation::TransportFaults;
use tandem_record::{AgentId, Timestamp};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = SetTransportFaults)]
pub(super) struct TransportFaultsRequest {
    /// The next texts that are refused.
    #[serde(default)]
    fail_next: Option<u32>,
    /// The next texts that are accepted and lost.
    #[serde(default)]
    drop_next: Option<u32>,
    #[serde(default)]
    paused: Option<bool>,
}

#[utoipa::path(
    get, path = "/v1/host/tandem/test/outbound", tag = "test", operation_id = "readOutbound",
    params(("to" = Option<String>, Query)),
    responses((status = 200, description = "Texts the loopback transport took", body = Value))
)]
pub(super) async fn outbound(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    params.only(&["to"])?;
    let messages = api.app.test_outbound(&caller, params.get("to")).await?;
    Ok(Json(json!({"messages": with_times(messages)})))
}

#[utoipa::path(
    post, path = "/v1/host/tandem/test/transport", tag = "test", operation_id = "setTransportFaults",
    request_body = TransportFaultsRequest,
    responses((status = 200, description = "The faults that are set now", body = Value))
)]
pub(super) async fn set_faults(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    request: Mutation,
) -> Result<Json<Value>, Problem> {
    let requested: TransportFaultsRequest = request.json()?;
    let faults = TransportFaults {
        fail_next: requested.fail_next,
        drop_next: requested.drop_next,
        paused: requested.paused,
    };
    Ok(Json(api.app.set_transport_faults(&caller, faults).await?))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/test/model/{agentId}", tag = "test", operation_id = "readModelCalls",
    params(("agentId" = String, Path)),
    responses((status = 200, description = "Calls of the agent's scripted model", body = Value))
)]
pub(super) async fn model_calls(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    PathParams(agent): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let agent = AgentId::from(agent);
    let calls = api.app.test_model_calls(&caller, &agent).await?;
    Ok(Json(json!({"calls": with_times(calls)})))
}

#[utoipa::path(
    put, path = "/v1/host/tandem/test/model/{agentId}", tag = "test", operation_id = "replaceScript",
    params(("agentId" = String, Path)), request_body = Value,
    responses((status = 200, description = "The script replaces that of the agent", body = Value))
)]
pub(super) async fn replace_script(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    PathParams(agent): PathParams<String>,
    request: Mutation,
) -> Result<Json<Value>, Problem> {
    let script: Value = request.json()?;
    let agent = AgentId::from(agent);
    api.app
        .replace_test_script(&caller, &agent, &script)
        .await?;
    Ok(Json(json!({"agentId": agent})))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/test/tools/{agentId}", tag = "test", operation_id = "readToolCalls",
    params(("agentId" = String, Path)),
    responses((status = 200, description = "Calls of recording tools", body = Value))
)]
pub(super) async fn tool_calls(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    PathParams(agent): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let agent = AgentId::from(agent);
    let calls = api.app.test_tool_calls(&caller, &agent).await?;
    let mut calls = with_times(calls);
    for call in &mut calls {
        if let Value::Object(fields) = call {
            fields.remove("failed");
        }
    }
    Ok(Json(json!({"calls": calls})))
}

/// Times as readers expect them.
fn with_times(mut records: Vec<Value>) -> Vec<Value> {
    for record in &mut records {
        if let Some(at) = record["at"].as_i64() {
            record["at"] = json!(rfc3339(Timestamp(at)));
        }
    }
    records
}
