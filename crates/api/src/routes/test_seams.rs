//! Test routes, present only when the operator enabled them: the clock, named crash points, and the
//! spans of a run.

use super::debug_bundle::collect;
use crate::api::SharedState;
use crate::caller::{Caller, RunsRead, Test};
use crate::mutation::Mutation;
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_record::RunId;
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

/// A century; later times cannot be formatted.
const MAX_ADVANCE_SECONDS: f64 = 100.0 * 366.0 * 86_400.0;

/// Exactly one member must be present.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = MoveClock)]
pub(super) struct MoveClockRequest {
    #[serde(default)]
    advance_seconds: Option<f64>,
    /// RFC 3339. An instant that has passed moves nothing.
    #[serde(default)]
    set: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArmCrash)]
pub(super) struct ArmCrashRequest {
    point: String,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/test/clock", tag = "test", operation_id = "moveClock",
    request_body = MoveClockRequest,
    responses((status = 200, description = "The time now, and whether all that was due is done", body = Value))
)]
pub(super) async fn move_clock(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    request: Mutation,
) -> Result<Json<Value>, Problem> {
    let requested: MoveClockRequest = request.json()?;
    let ms = match (requested.advance_seconds, requested.set) {
        (Some(seconds), None) => advance_ms(seconds)?,
        (None, Some(text)) => {
            let instant = text.parse::<jiff::Timestamp>();
            let instant =
                instant.map_err(|_| Problem::invalid("/set", "must be an RFC 3339 time"))?;
            // The clock never goes back: an instant that has passed moves nothing.
            (instant.as_millisecond() - api.now().0).max(0)
        }
        _ => return Err(Problem::invalid("", "needs either advanceSeconds or set")),
    };
    let settled = api.app.advance_clock(&caller, ms).await?;
    Ok(Json(json!({"now": rfc3339(api.now()), "settled": settled})))
}

#[expect(clippy::cast_possible_truncation, reason = "bounded right before")]
fn advance_ms(seconds: f64) -> Result<i64, Problem> {
    if (0.0..=MAX_ADVANCE_SECONDS).contains(&seconds) {
        Ok((seconds * 1000.0).round() as i64)
    } else {
        let message = "must be a number of at least 0, and at most a century";
        Err(Problem::invalid("/advanceSeconds", message))
    }
}

#[utoipa::path(
    post, path = "/v1/host/tandem/test/crash", tag = "test", operation_id = "armCrash",
    request_body = ArmCrashRequest,
    responses((status = 200, description = "The process dies when it reaches the point", body = Value))
)]
pub(super) async fn arm_crash(
    State(api): State<SharedState>,
    caller: Caller<Test>,
    request: Mutation,
) -> Result<Json<Value>, Problem> {
    let ArmCrashRequest { point } = request.json()?;
    api.app.arm_crash(&caller, &point)?;
    Ok(Json(json!({"armed": point})))
}

#[utoipa::path(
    get, path = "/v1/host/sample/test/otel/spans", tag = "test", operation_id = "readSpans",
    params(("runId" = String, Query)),
    responses((status = 200, description = "The spans of a run", body = Value))
)]
pub(super) async fn read_spans(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let run = params.get("runId").map(RunId::new);
    let run = run.ok_or_else(|| Problem::invalid("runId", "is needed"))?;
    let mut bundle = collect(&api, &caller, &run, None).await?;
    Ok(Json(json!({"spans": bundle["spans"].take()})))
}
