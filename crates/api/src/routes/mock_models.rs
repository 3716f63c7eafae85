//! Test route that programs the answers of the conformance suite's mock model. Present only when
//! the operator enabled the test seams, like the model itself.

use crate::api::SharedState;
use crate::body::ObjectOnly;
use crate::caller::{Caller, Test};
use crate::mutation::Mutation;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_app::MockEntry;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ProgramMockModel)]
pub(super) struct MockProgramRequest {
    /// Applies to nodes with this id, in every conformance workflow.
    node_id: String,
    /// The answers, one per call.
    #[schema(value_type = Vec<Object>)]
    program: Vec<ObjectOnly<MockEntry>>,
}

#[utoipa::path(
    post, path = "/v1/host/sample/test/mock-ai/program", tag = "test",
    operation_id = "programMockModel", request_body = MockProgramRequest,
    responses((status = 200, description = "The program replaces an earlier one", body = Value))
)]
pub(super) async fn program(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    request: Mutation,
) -> Result<Json<Value>, Problem> {
    let MockProgramRequest { node_id, program } = request.json()?;
    let program: Vec<MockEntry> = program.into_iter().map(|ObjectOnly(entry)| entry).collect();
    let entries = program.len();
    api.app
        .program_mock_model(&caller, &node_id, program)
        .await?;
    Ok(Json(json!({"nodeId": node_id, "entries": entries})))
}
