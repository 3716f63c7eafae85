//! The inbox: every open question of the tenant's runs, and deciding one by its id.

use crate::api::{ApiState, SharedState};
use crate::caller::{ApprovalsRespond, Caller, RunsRead};
use crate::mutation::{IdempotencyCheck, Mutation};
use crate::paging::{cursor, limit, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::resolve_interrupt::{SubmittedAnswer, decide};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_access::Identity;
use tandem_record::{InterruptId, Principal, RunId, Timestamp};
use tandem_runtime::{InterruptFilter, InterruptRow, Page, RunPosition};
use tandem_wire::v1::time::rfc3339;
use utoipa::ToSchema;

const PARAMETERS: [&str; 6] = ["status", "kind", "runId", "sessionId", "limit", "cursor"];

#[utoipa::path(
    get, path = "/v1/host/tandem/interrupts", tag = "interrupts", operation_id = "listInterrupts",
    params(("status" = Option<String>, Query), ("kind" = Option<String>, Query),
           ("runId" = Option<String>, Query), ("limit" = Option<u64>, Query),
           ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Questions, newest first", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    params.only(&PARAMETERS)?;
    let open = match params.get("status") {
        None | Some("open") => Some(true),
        Some("closed") => Some(false),
        Some("any") => None,
        Some(_) => return Err(Problem::invalid("status", "must be open, closed or any")),
    };
    let page = Page {
        before: interrupt_cursor(&api, &caller, &params).await?,
        limit: limit(&params)?,
    };
    // Conversations are not served yet, so a session has no questions.
    if params.get("sessionId").is_some() {
        return Ok(Json(json!({"interrupts": []})));
    }
    let filter = InterruptFilter {
        open,
        kind: params.get("kind").map(str::to_owned),
        run: params.get("runId").map(RunId::new),
        workspace: caller.workspace.clone(),
    };
    let listing = api
        .runtime
        .questions(&caller.tenant, &filter, &page)
        .await?;
    let items: Vec<Value> = listing.rows.iter().map(|(_, row)| item(row)).collect();
    let mut body = json!({"interrupts": items});
    if let Some((_, last)) = listing.rows.last().filter(|_| listing.more) {
        body["nextCursor"] = json!(cursor(last.interrupt.as_str()));
    }
    Ok(Json(body))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/interrupts/{interruptId}", tag = "interrupts",
    operation_id = "readInterrupt", params(("interruptId" = String, Path)),
    responses((status = 200, description = "One question, open or closed", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(id): PathParams<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(item(&find_interrupt(&api, &caller, id).await?)))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Decision {
    resume_value: Value,
    /// What was shown when the decision was made; a mismatch is refused.
    #[serde(default)]
    digest: Option<String>,
    /// In whose place you decide, if they delegated that to you.
    #[serde(default)]
    acting_for: Option<String>,
}

#[utoipa::path(
    post, path = "/v1/host/tandem/interrupts/{interruptId}:resolve", tag = "interrupts",
    operation_id = "resolveInterruptById",
    params(("interruptId" = String, Path)), request_body = Decision,
    responses((status = 200, description = "Decided, or a vote counted", body = Value))
)]
pub(super) async fn resolve(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams(id): PathParams<String>,
    request: Mutation,
) -> Result<Response, Problem> {
    let ticket = match request.begin_for_principal(&api, &caller).await? {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let decision: Decision = request.json()?;
    let row = find_interrupt(&api, &caller, id).await?;
    let digest = decision.digest.as_deref();
    let (run, submitted) = prepare_answer(row, digest, decision.resume_value, decision.acting_for)?;
    decide(&api, ticket, &caller, run, submitted).await
}

/// Where the last page of a caller's questions ended.
async fn interrupt_cursor(
    api: &ApiState,
    caller: &Identity,
    params: &Params,
) -> Result<Option<RunPosition>, Problem> {
    let Some(cursor) = params.get("cursor") else {
        return Ok(None);
    };
    let last = InterruptId::from(parse_cursor(cursor)?);
    question_position(api, caller, &last).await.map(Some)
}

/// The place of the question a page ended with.
pub(crate) async fn question_position(
    api: &ApiState,
    caller: &Identity,
    last: &InterruptId,
) -> Result<RunPosition, Problem> {
    let of = caller.partition();
    let found = api.runtime.question_position(&of, last).await?;
    found.ok_or_else(unknown_cursor)
}

/// An answer to a question, if it still is what its decider saw.
pub(crate) fn prepare_answer(
    row: InterruptRow,
    digest: Option<&str>,
    value: Value,
    acting_for: Option<String>,
) -> Result<(RunId, SubmittedAnswer), Problem> {
    if row.closed.is_none() && digest.is_some() {
        let shown = question_body(&row);
        let asked = shown["digest"].as_str().unwrap_or_default();
        if digest != Some(asked) {
            return Err(Problem::artifact_changed(asked));
        }
    }
    let submitted = SubmittedAnswer {
        node: row.node,
        interrupt: Some(row.interrupt),
        value,
        acting_for: acting_for.map(Principal::from),
    };
    Ok((row.run_id, submitted))
}

/// A question of a run this caller may see.
pub(crate) async fn find_interrupt(
    api: &ApiState,
    caller: &Identity,
    id: String,
) -> Result<InterruptRow, Problem> {
    api.load_interrupt(caller, &InterruptId::from(id)).await
}

/// What the row keeps of what was shown.
pub(crate) fn question_body(row: &InterruptRow) -> Value {
    serde_json::from_str(&row.body).unwrap_or_default()
}

fn item(row: &InterruptRow) -> Value {
    let shown = question_body(row);
    let data = &shown["data"];
    let mut item = json!({
        "interruptId": row.interrupt,
        "kind": row.kind,
        "runId": row.run_id,
        "nodeId": row.node,
        "status": if row.closed.is_some() { "closed" } else { "open" },
        "title": title(&row.kind, data),
        "key": shown["key"],
        "data": data,
        "digest": shown["digest"],
        "createdAt": rfc3339(row.created_at),
        "actions": actions(&row.kind, data),
    });
    if let Some(deadline) = row.deadline {
        item["deadline"] = json!(rfc3339(deadline));
    }
    if row.priority > 0 {
        item["priority"] = json!(row.priority);
    }
    if !row.groups.is_empty() {
        item["groups"] = json!(row.groups);
    }
    for key in [
        "workflowId",
        "resumeSchema",
        "proposed",
        "edited",
        "outcome",
        "decidedBy",
        "approvers",
        "approverGroups",
        "approverRoles",
        "level",
        "reminders",
    ] {
        if !is_blank(&shown[key]) {
            item[key] = shown[key].clone();
        }
    }
    if let Some(at) = shown["decidedAt"].as_i64() {
        item["decidedAt"] = json!(rfc3339(Timestamp(at)));
    }
    if shown["votes"]
        .as_array()
        .is_some_and(|votes| !votes.is_empty())
    {
        item["votes"] = shown["votes"].clone();
    }
    item
}

/// Nothing worth telling: absent, or an empty list.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

pub(crate) fn title(kind: &str, data: &Value) -> String {
    if kind == "low-confidence" {
        let agent = data["agentId"].as_str().unwrap_or("An agent");
        return format!("{agent} is not sure");
    }
    let text = match kind {
        "clarification" => &data["questions"][0]["question"],
        "external-event" => &data["eventType"],
        "custom" => &data["customKind"],
        "conversation.exchange" => &data["prompt"],
        _ => &data["title"],
    };
    text.as_str().unwrap_or(kind).to_owned()
}

pub(crate) fn actions(kind: &str, data: &Value) -> Value {
    // Approvals and held decisions say themselves what may be done.
    if data["actions"].is_array() {
        return data["actions"].clone();
    }
    match kind {
        "clarification" => json!(["answer"]),
        "external-event" => json!(["deliver"]),
        "conversation.exchange" => json!(["exchange", "close"]),
        "low-confidence" => json!(["ratify", "decide", "reject"]),
        _ => json!(["resolve"]),
    }
}
