//! Seams for tests, present only when the operator opened them: the clock, named crashes, and the
//! spans of a run.

use super::debug_bundle::collect;
use crate::api::Shared;
use crate::caller::{Caller, RunsRead, Test};
use crate::mutation::Mutation;
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::RunId;
use tandem_runtime::CrashPoints;
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

const SETTLED_WITHIN: Duration = Duration::from_secs(10);
/// A century; further ahead, times no longer print.
const MAX_ADVANCE_SECONDS: f64 = 100.0 * 366.0 * 86_400.0;

/// Exactly one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Move {
    #[serde(default)]
    advance_seconds: Option<f64>,
    /// RFC 3339, not before now.
    #[serde(default)]
    set: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Crash {
    point: String,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/test/clock", tag = "test", operation_id = "moveClock",
    request_body = Move,
    responses((status = 200, description = "The time now, and whether all that was due is done", body = Value))
)]
pub(super) async fn move_clock(
    State(doors): State<Shared>,
    _caller: Caller<Test>,
    request: Mutation,
) -> Result<Json<Value>, Problem> {
    let asked: Move = request.json()?;
    let ms = match (asked.advance_seconds, asked.set) {
        (Some(seconds), None) => ahead_ms(seconds)?,
        (None, Some(text)) => {
            let instant = text.parse::<jiff::Timestamp>();
            let instant =
                instant.map_err(|_| Problem::invalid("/set", "must be an RFC 3339 time"))?;
            let ms = instant.as_millisecond() - doors.now().0;
            if ms < 0 {
                return Err(Problem::invalid(
                    "/set",
                    "lies before now; the clock never goes back",
                ));
            }
            ms
        }
        _ => return Err(Problem::invalid("", "needs either advanceSeconds or set")),
    };
    doors.runtime.advance_clock(ms).await?;
    let settled = doors.runtime.settled(SETTLED_WITHIN).await?;
    Ok(Json(
        json!({"now": rfc3339(doors.now()), "settled": settled}),
    ))
}

#[expect(clippy::cast_possible_truncation, reason = "bounded right before")]
fn ahead_ms(seconds: f64) -> Result<i64, Problem> {
    if (0.0..=MAX_ADVANCE_SECONDS).contains(&seconds) {
        Ok((seconds * 1000.0).round() as i64)
    } else {
        let message = "must be a number of at least 0, and at most a century";
        Err(Problem::invalid("/advanceSeconds", message))
    }
}

#[utoipa::path(
    post, path = "/v1/host/tandem/test/crash", tag = "test", operation_id = "armCrash",
    request_body = Crash,
    responses((status = 200, description = "The process dies when it reaches the point", body = Value))
)]
pub(super) async fn arm_crash(
    State(doors): State<Shared>,
    _caller: Caller<Test>,
    request: Mutation,
) -> Result<Json<Value>, Problem> {
    let Crash { point } = request.json()?;
    let points = doors.runtime.crash_points();
    if !points.arm(&point) {
        let message = format!("must be one of {}", CrashPoints::ALL.join(", "));
        return Err(Problem::invalid("/point", message));
    }
    points.reach("now");
    Ok(Json(json!({"armed": point})))
}

#[utoipa::path(
    get, path = "/v1/host/sample/test/otel/spans", tag = "test", operation_id = "readSpans",
    params(("runId" = String, Query)),
    responses((status = 200, description = "The spans of a run", body = Value))
)]
pub(super) async fn read_spans(
    State(doors): State<Shared>,
    caller: Caller<RunsRead>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let run = params.get("runId").map(RunId::new);
    let run = run.ok_or_else(|| Problem::invalid("runId", "is needed"))?;
    let mut bundle = collect(&doors, &caller, &run, None).await?;
    Ok(Json(json!({"spans": bundle["spans"].take()})))
}
