//! `POST /v1/runs`.

use crate::api::SharedState;
use crate::body::present;
use crate::caller::{Caller, RunsCreate};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::problem::Problem;
use crate::response::ApiResponse;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tandem_app::{CreateRun, InvalidField};
use tandem_record::{Object, RunId, RunOptions, Transport, WorkflowId};
use utoipa::ToSchema;

const ENGINE_VERSION_HEADER: &str = "X-Force-Engine-Version";

/// The body, closed: members of the run and of its options at one level.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = CreateRun)]
pub(super) struct CreateRunRequest {
    #[serde(default, deserialize_with = "present")]
    workflow_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    inputs: Option<Object>,
    #[serde(default, deserialize_with = "present")]
    tenant_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    scope_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    /// Receives every interrupt of the run and of its descendants, with a signed link to answer it.
    /// Must be public and `https`, like the target of a webhook.
    callback_url: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    configurable: Option<Object>,
    #[serde(default, deserialize_with = "present")]
    tags: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    metadata: Option<Object>,
    #[serde(default, deserialize_with = "present")]
    mode: Option<String>,
    #[serde(default, deserialize_with = "present")]
    eval_suite_ref: Option<String>,
    #[serde(default, deserialize_with = "present")]
    agent_id: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/runs", tag = "runs", operation_id = "createRun", request_body = CreateRunRequest,
    params(("Idempotency-Key" = Option<String>, Header),
           ("X-Dedup" = Option<String>, Header, description = "`enforce`: one live run per scopeId")),
    responses((status = 201, description = "The run exists", body = Value))
)]
pub(super) async fn create_run(
    State(api): State<SharedState>,
    caller: Caller<RunsCreate>,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: CreateRunRequest = request.json()?;
    let forced = headers.get(ENGINE_VERSION_HEADER);
    let forced = forced.map(|value| value.to_str().unwrap_or_default());
    api.app
        .check_engine_version(&caller, forced, ENGINE_VERSION_HEADER)?;
    let exclusive = headers
        .get("x-dedup")
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"enforce"));
    let requested = requested.into_use_case(&trace, exclusive)?;
    respond(ticket, render_created, |idempotency| {
        api.app.create_run(&caller, requested, idempotency)
    })
    .await
}

/// The response to a created run.
fn render_created(run: &RunId) -> ApiResponse {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Created<'a> {
        run_id: &'a RunId,
        status: &'static str,
        events_url: &'a str,
        status_url: &'a str,
    }
    let events_url = format!("/v1/runs/{run}/events");
    let status_url = &events_url[..events_url.len() - "/events".len()];
    ApiResponse::created(Created {
        run_id: run,
        status: "pending",
        events_url: &events_url,
        status_url,
    })
    .with_location(status_url)
}

impl CreateRunRequest {
    /// What is asked for, after the checks of members that only this protocol version has.
    fn into_use_case(self, trace: &Trace, exclusive_scope: bool) -> Result<CreateRun, Problem> {
        match self.mode.as_deref() {
            Some("eval") => return Err(Problem::capability_not_provided("agents.evalSuite")),
            Some(_) => return Err(Problem::invalid("/mode", "can only be \"eval\"")),
            None => {}
        }
        let of_eval = [
            ("/evalSuiteRef", &self.eval_suite_ref),
            ("/agentId", &self.agent_id),
        ];
        let of_eval = of_eval.into_iter().filter(|(_, member)| member.is_some());
        let invalid = of_eval.map(|(path, _)| InvalidField::new(path, "belongs to mode \"eval\""));
        Ok(CreateRun {
            workflow_id: WorkflowId::from(self.workflow_id.unwrap_or_default()),
            inputs: self.inputs.unwrap_or_default(),
            options: RunOptions {
                configurable: self.configurable,
                tags: self.tags,
                metadata: self.metadata,
            },
            tenant: self.tenant_id,
            scope_id: self.scope_id,
            exclusive_scope,
            callback_url: self.callback_url,
            transport: Transport::Rest,
            trace: Some(trace.for_run()),
            invalid_fields: invalid.collect(),
        })
    }
}
