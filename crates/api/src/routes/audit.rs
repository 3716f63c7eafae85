//! The audit log: verification and export.

use crate::api::SharedState;
use crate::caller::{AuditRead, Caller};
use crate::params::Params;
use crate::problem::Problem;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

/// The largest sequence a JSON client can represent exactly.
const MAX_SEQ: u64 = (1 << 53) - 1;

#[utoipa::path(
    get, path = "/v1/audit/verify", tag = "audit", operation_id = "verifyAudit",
    params(("fromSeq" = u64, Query), ("toSeq" = u64, Query)),
    responses((status = 200, description = "Whether the chain and its checkpoints hold", body = Value))
)]
pub(super) async fn verify(
    State(api): State<SharedState>,
    caller: Caller<AuditRead>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    params.only(&["fromSeq", "toSeq"])?;
    let needed = |name: &str| {
        let number = params.number(name, 0..=MAX_SEQ)?;
        number.ok_or_else(|| Problem::invalid(name, "is needed"))
    };
    let (from, to) = (needed("fromSeq")?, needed("toSeq")?);
    if to < from {
        return Err(Problem::invalid("toSeq", "must not be less than fromSeq"));
    }
    let verdict = api.app.verify_audit(&caller, from, to).await?;
    let anomalies: Vec<Value> = verdict
        .breaks
        .iter()
        .map(|b| {
            json!({"atSeq": b.at_seq, "expectedPrevHash": b.expected, "actualPrevHash": b.actual})
        })
        .collect();
    Ok(Json(json!({
        "fromSeq": from,
        "toSeq": to,
        "chainValid": verdict.is_valid(),
        "checkpointsValid": verdict.checkpoints_valid,
        "checkpoints": verdict.checkpoints,
        "anomalies": anomalies,
    })))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/audit/export", tag = "audit", operation_id = "exportAudit",
    description = "The whole log as lines of JSON, sealed up to its end. Of entries of \
                   other tenants only the hash is exported. Not for keys bound to a workspace.",
    responses((status = 200, description = "Entries and checkpoints in order",
               content_type = "application/x-ndjson", body = String))
)]
pub(super) async fn export(
    State(api): State<SharedState>,
    caller: Caller<AuditRead>,
) -> Result<Response, Problem> {
    let export = api.app.export_audit(&caller).await?;
    // On a store fault the response breaks off; a reader detects that from the missing last line.
    let chunks = stream::try_unfold(export, async |mut export| {
        let chunk = export.chunk().await?;
        Ok::<_, tandem_app::Fault>(chunk.map(|chunk| (chunk, export)))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}
