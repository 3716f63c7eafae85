//! Decision receipts: signed proof of who decided what, which can be verified without this host.

use crate::api::SharedState;
use crate::caller::{Caller, RunsRead};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::Value;
use tandem_record::InterruptId;

#[utoipa::path(
    get, path = "/v1/host/tandem/receipts/{interruptId}", tag = "interrupts",
    operation_id = "readReceipt", params(("interruptId" = String, Path)),
    description = "What was shown, who decided, as what, when and how, signed with the audit key. \
                   The same every time; 404 until the question is decided.",
    responses((status = 200, description = "The receipt", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(id): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    let id = InterruptId::from(id);
    Ok(Json(api.app.read_receipt(&caller, &id).await?))
}
