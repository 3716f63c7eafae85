//! `POST /v1/runs/{runId}:fork`.

use crate::api::SharedState;
use crate::body::{present, present_object};
use crate::caller::{Caller, RunsCreate};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_access::Scope;
use tandem_app::{ForkRun, ForkedRun};
use tandem_record::{ForkMode, Object, RunId, RunOptions, Seq};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ForkRun)]
pub(crate) struct ForkRunRequest {
    /// `replay` uses the recorded results, `branch` executes again.
    #[serde(default)]
    mode: Option<String>,
    /// Events below this sequence are kept. Required for a branch; 0 for a replay when left out.
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    from_seq: Option<Value>,
    /// Options that override those of the source; for branches only.
    #[serde(default, deserialize_with = "present_object")]
    run_options_overlay: Option<Overlay>,
}

#[derive(Deserialize, ToSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RunOptionsOverlay)]
pub(crate) struct Overlay {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    configurable: Option<Object>,
    #[serde(default, deserialize_with = "present")]
    tags: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object)]
    metadata: Option<Object>,
}

#[utoipa::path(
    post, path = "/v1/runs/{runId}:fork", tag = "runs", operation_id = "forkRun",
    params(("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = ForkRunRequest,
    responses((status = 201, description = "The fork exists", body = Value))
)]
pub(super) async fn fork(
    State(api): State<SharedState>,
    caller: Caller<RunsCreate>,
    Extension(trace): Extension<Trace>,
    PathParams(run): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    caller.require_scope(Scope::RunsRead)?;
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: ForkRunRequest = request.json()?;
    let requested = requested.into_use_case(RunId::from(run), &trace)?;
    respond(ticket, render_forked, |idempotency| {
        api.app.fork_run(&caller, requested, idempotency)
    })
    .await
}

fn render_forked(forked: &ForkedRun) -> ApiResponse {
    let run = &forked.run;
    ApiResponse::created(json!({
        "runId": run,
        "sourceRunId": forked.source,
        "fromSeq": forked.from_seq,
        "mode": forked.mode.as_str(),
        "status": "pending",
        "eventsUrl": format!("/v1/runs/{run}/events"),
    }))
}

impl ForkRunRequest {
    /// A fork with its source's options.
    pub(crate) fn without_overlay(mode: &str, from_seq: Value) -> Self {
        Self {
            mode: Some(mode.to_owned()),
            from_seq: Some(from_seq),
            run_options_overlay: None,
        }
    }

    pub(crate) fn into_use_case(self, source: RunId, trace: &Trace) -> Result<ForkRun, Problem> {
        let mode = match self.mode.as_deref() {
            Some("replay") => ForkMode::Replay,
            Some("branch") => ForkMode::Branch,
            _ => {
                return Err(Problem::invalid(
                    "/mode",
                    "must be \"replay\" or \"branch\"",
                ));
            }
        };
        let from_seq = match &self.from_seq {
            None | Some(Value::Null) => None,
            Some(value) => Some(parse_seq(value).ok_or_else(|| {
                Problem::invalid("/fromSeq", "must be a whole number of at least 0")
            })?),
        };
        let overlay = self.run_options_overlay.unwrap_or_default();
        Ok(ForkRun {
            source,
            mode,
            from_seq: from_seq.map(Seq),
            overlay: RunOptions {
                configurable: overlay.configurable,
                tags: overlay.tags,
                metadata: overlay.metadata,
            },
            trace: Some(trace.for_run()),
        })
    }
}

/// A number too large to represent is beyond the end of every log.
fn parse_seq(value: &Value) -> Option<u64> {
    let beyond = |n: &f64| *n >= u64::MAX as f64;
    let beyond = || value.as_f64().filter(beyond).map(|_| u64::MAX);
    value.as_u64().or_else(beyond)
}
