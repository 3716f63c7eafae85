//! Liveness, readiness and metrics. They need no credentials: probes have none, and nothing here is
//! user data. Expose `/metrics` only where the operator's monitoring can reach it.

use crate::api::SharedState;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

#[utoipa::path(
    get, path = "/healthz", tag = "operations", operation_id = "alive",
    responses((status = 200, description = "The process answers", body = Value))
)]
pub(super) async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

#[utoipa::path(
    get, path = "/readyz", tag = "operations", operation_id = "ready",
    responses((status = 200, description = "The store takes writes and timers fire in time", body = Value),
              (status = 503, description = "It is not ready; the message gives the reason", body = Value))
)]
pub(super) async fn ready(State(api): State<SharedState>) -> Result<Json<Value>, Problem> {
    if *api.stopping.borrow() {
        return Err(Problem::busy());
    }
    if let Err(reason) = api.app.readiness().await {
        return Err(Problem::not_ready(&reason));
    }
    Ok(Json(json!({"status": "ready"})))
}

#[utoipa::path(
    get, path = "/metrics", tag = "operations", operation_id = "metrics",
    responses((status = 200, description = "Metrics as Prometheus text", body = String,
               content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(api): State<SharedState>) -> Result<Response, Problem> {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let headers = [(header::CONTENT_TYPE, content_type)];
    let text = api.metrics.text(&api.app.waiting_work().await?);
    Ok((headers, text).into_response())
}
