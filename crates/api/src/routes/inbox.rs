//! The inbox: every open interrupt of the tenant's runs, and resolving one by its id.

use super::conversation::admin_call;
use super::interrupts::{Answer, render_accepted};
use crate::api::{ApiState, SharedState};
use crate::caller::{ApprovalsRespond, Caller, RunsRead};
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::paging::{cursor, limit, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use tandem_access::Identity;
use tandem_app::{AnswerTarget, Fault, InterruptFilter, InterruptRow, Page, RunPosition};
use tandem_record::{InterruptId, QuestionBody, RunId, SessionId, StreamId, Timestamp};
use tandem_wire::v1::time::rfc3339;

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
    let session = params.get("sessionId").map(SessionId::from);
    let run = params.get("runId").map(RunId::from);
    let stream = match &session {
        None => run.as_ref().map(StreamId::of_run),
        // A session asks by its active flow, or by itself.
        Some(session) => {
            let flow = api.app.active_flow_run(&caller, session).await?;
            let by_flow = flow.as_ref().map(StreamId::of_run);
            Some(by_flow.unwrap_or_else(|| StreamId::of_session(session)))
        }
    };
    let filter = InterruptFilter {
        open,
        kind: params.get("kind").map(str::to_owned),
        stream,
        ..InterruptFilter::default()
    };
    // What is asked can be long, and the values and their text are copies of it.
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let listing = api.app.list_interrupts(&caller, filter, &page).await?;
    let rows = listing.rows.iter();
    let items: Result<Vec<Value>, Fault> = rows.map(|(_, row)| item(row, api.now())).collect();
    let items = items?;
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
    let id = InterruptId::from(id);
    let row = api.app.read_interrupt(&caller, &id).await?;
    Ok(Json(item(&row, api.now())?))
}

#[utoipa::path(
    post, path = "/v1/host/tandem/interrupts/{interruptId}:resolve", tag = "interrupts",
    operation_id = "resolveInterruptById",
    params(("interruptId" = String, Path)), request_body = Answer,
    responses((status = 200, description = "Decided, or a vote counted", body = Value))
)]
pub(super) async fn resolve(
    State(api): State<SharedState>,
    caller: Caller<ApprovalsRespond>,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let begun = request.begin_for_admin(&api, &caller, &headers).await?;
    let ticket = match begun {
        IdempotencyCheck::New(ticket) => ticket,
        IdempotencyCheck::Replay(response) => return Ok(response),
    };
    let answer: Answer = request.json()?;
    let target = AnswerTarget::Interrupt(InterruptId::from(id));
    let call = admin_call(&caller, &headers);
    if let Some(question) = api.app.conversation_question(&call, &target).await? {
        return respond(ticket, render_accepted, |idempotency| {
            let app = &api.app;
            app.answer_conversation(&call, question, answer.into(), idempotency)
        })
        .await;
    }
    respond(ticket, render_accepted, |idempotency| {
        api.app.decide(&caller, target, answer.into(), idempotency)
    })
    .await
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
    let found = api.app.interrupt_position(caller, last).await?;
    found.ok_or_else(unknown_cursor)
}

/// When a question's time ended although its run did not note it yet: nobody can answer it.
pub(crate) fn expired_at(
    row: &InterruptRow,
    question: &QuestionBody<'_>,
    now: Timestamp,
) -> Option<Timestamp> {
    let at = question.expires_at?;
    (row.closed.is_none() && now >= at).then_some(at)
}

fn item(row: &InterruptRow, now: Timestamp) -> Result<Value, Fault> {
    let question = row.question()?;
    let data = &*question.data;
    let expired_at = expired_at(row, &question, now);
    let status = match (&row.closed, expired_at) {
        (Some(_), _) => "closed",
        (None, Some(_)) => "expired",
        (None, None) => "open",
    };
    let mut item = json!({
        "interruptId": row.interrupt,
        "kind": row.kind,
        "runId": row.run().or(question.run_id.map(Cow::into_owned)),
        "nodeId": row.step,
        "status": status,
        "title": title(&row.kind, data),
        "key": question.key,
        "data": data,
        "digest": question.digest,
        "createdAt": rfc3339(row.created_at),
        "actions": match status {
            "open" => actions(&row.kind, data),
            _ => json!([]),
        },
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
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            item[name] = value;
        }
    };
    put("sessionId", question.session_id.map(|id| json!(id)));
    put("workflowId", question.workflow_id.map(|id| json!(id)));
    put("resumeSchema", unless_blank(question.resume_schema));
    put("proposed", unless_blank(question.proposed));
    put("edited", unless_blank(question.edited));
    put("outcome", question.outcome.map(|outcome| json!(outcome)));
    put("decidedBy", question.decided_by.map(|by| json!(by)));
    put("approvers", unless_empty(&question.approvers));
    put("approverGroups", unless_empty(&question.approver_groups));
    put("approverRoles", unless_empty(&question.approver_roles));
    put("level", question.level.map(|level| json!(level)));
    put("reminders", question.reminders.map(|count| json!(count)));
    let decided_at = question.decided_at.or(expired_at);
    put("decidedAt", decided_at.map(|at| json!(rfc3339(at))));
    put("votes", unless_empty(&question.votes));
    Ok(item)
}

/// A value other than `null` and the empty list.
fn unless_blank(value: Option<Cow<'_, Value>>) -> Option<Value> {
    let is_blank = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    value.map(Cow::into_owned).filter(|value| !is_blank(value))
}

fn unless_empty<T: Serialize>(list: &[T]) -> Option<Value> {
    (!list.is_empty()).then(|| json!(list))
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
    // Approvals and held decisions list their own actions.
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
