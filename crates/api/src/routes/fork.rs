//! `POST /v1/runs/{runId}:fork`.

use super::mock_provider;
use crate::api::SharedState;
use crate::body::{present, present_object};
use crate::caller::{Caller, RunsCreate};
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::trace::Trace;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use tandem_access::{Identity, Scope};
use tandem_record::{ForkMode, Object, RunId, RunOptions, Seq};
use tandem_runtime::ForkRequest;
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
    if !caller.scopes.contains(Scope::RunsRead) {
        return Err(Problem::scope_missing(Scope::RunsRead));
    }
    let ticket = match request.begin(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let requested: ForkRunRequest = request.json()?;
    let mut requested = requested.into_request(&caller, &trace)?;
    let configurable = requested.overlay.configurable.as_mut();
    mock_provider::admit(&api.runtime, &caller, configurable)?;
    // A run past retention is still found here, to return its own error.
    let source = api.load_run_or_expired(&caller, &RunId::from(run)).await?;
    ticket.fork(&api, &caller, source, requested).await
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

    pub(crate) fn into_request(
        self,
        caller: &Identity,
        trace: &Trace,
    ) -> Result<ForkRequest, Problem> {
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
        let from_seq = match (&self.from_seq, mode) {
            (None | Some(Value::Null), ForkMode::Replay) => 0,
            (None | Some(Value::Null), ForkMode::Branch) => {
                return Err(Problem::invalid("/fromSeq", "is needed for a branch"));
            }
            (Some(value), _) => parse_seq(value).ok_or_else(|| {
                Problem::invalid("/fromSeq", "must be a whole number of at least 0")
            })?,
        };
        let overlay = self.run_options_overlay.unwrap_or_default();
        let empty =
            overlay.configurable.is_none() && overlay.tags.is_none() && overlay.metadata.is_none();
        if mode == ForkMode::Replay && !empty {
            return Err(Problem::invalid(
                "/runOptionsOverlay",
                "belongs to a branch; a replay runs with its source's options",
            ));
        }
        Ok(ForkRequest {
            mode,
            from_seq: Seq(from_seq),
            overlay: RunOptions {
                configurable: overlay.configurable,
                tags: overlay.tags,
                metadata: overlay.metadata,
            },
            trace: Some(trace.for_run()),
            conformance_role: caller.permits_conformance(),
        })
    }
}

/// A number too large to represent is beyond the end of every log.
fn parse_seq(value: &Value) -> Option<u64> {
    let beyond = |n: &f64| *n >= u64::MAX as f64;
    let beyond = || value.as_f64().filter(beyond).map(|_| u64::MAX);
    value.as_u64().or_else(beyond)
}
