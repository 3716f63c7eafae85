//! Schedules: what admins do to them, their occurrences, and the recipients of campaigns.

use super::admin_call;
use super::admin_request::{AdminRequest, no_body};
use crate::api::SharedState;
use crate::caller::{Caller, OfConversations, RunsCancel, RunsCreate, RunsRead};
use crate::mutation::Mutation;
use crate::paging::{cursor, limit, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde_json::{Value, json};
use tandem_app::ListingPage;
use tandem_app::conversation::{ScheduleChange, ScheduleQuery};
use tandem_record::conversation::{ScheduleRecord, ScheduleStatus};
use tandem_record::{AgentId, FlowId, Object, ScheduleId, ScheduleRunId, WorkflowId};
use tandem_wire::conversation as wire;

const PARAMETERS: [&str; 9] = [
    "agentId",
    "flowId",
    "workflowId",
    "status",
    "targetKind",
    "userExternalId",
    "campaignId",
    "limit",
    "cursor",
];
/// Field of a change that names the version the caller has seen.
const VERSION: &str = "version";

#[utoipa::path(
    get, path = "/v1/host/tandem/schedules", tag = "conversations",
    operation_id = "listSchedules",
    params(("agentId" = Option<String>, Query), ("flowId" = Option<String>, Query),
           ("workflowId" = Option<String>, Query),
           ("status" = Option<String>, Query), ("targetKind" = Option<String>, Query),
           ("userExternalId" = Option<String>, Query), ("campaignId" = Option<String>, Query),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Schedules, newest first", body = Value))
)]
pub(super) async fn list(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&PARAMETERS)?;
    let text = |name: &str| params.get(name).map(str::to_owned);
    let query = ScheduleQuery {
        agent: params.get("agentId").map(AgentId::from),
        flow: params.get("flowId").map(FlowId::from),
        workflow: params.get("workflowId").map(WorkflowId::from),
        status: schedule_status(&params)?,
        target_kind: target_kind(&params)?,
        user_external_id: text("userExternalId"),
        campaign: text("campaignId"),
    };
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let page = ListingPage {
        after: after.map(ScheduleId::from),
        limit: limit(&params)?,
    };
    let call = admin_call(&caller, &headers);
    let (records, next) = api.app.list_schedules_for(&call, query, &page).await?;
    let schedules: Vec<Value> = records.iter().map(wire::schedule).collect();
    let mut body = json!({ "schedules": schedules });
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(next.as_str()));
    }
    Ok(Json(body))
}

/// The value of the filter `status`.
pub(crate) fn schedule_status(params: &Params) -> Result<Option<ScheduleStatus>, Problem> {
    let Some(name) = params.get("status") else {
        return Ok(None);
    };
    let known = ScheduleStatus::ALL.map(ScheduleStatus::as_str).join(", ");
    let status = ScheduleStatus::parse(name);
    let unknown = || Problem::invalid("status", format!("must be one of {known}"));
    status.map(Some).ok_or_else(unknown)
}

fn target_kind(params: &Params) -> Result<Option<String>, Problem> {
    match params.get("targetKind") {
        None => Ok(None),
        Some(kind @ ("user" | "segment" | "workflow")) => Ok(Some(kind.to_owned())),
        Some(_) => {
            let message = "must be user, segment or workflow";
            Err(Problem::invalid("targetKind", message))
        }
    }
}

#[utoipa::path(
    post, path = "/v1/host/tandem/schedules", tag = "conversations",
    operation_id = "createSchedule", request_body = Value,
    responses((status = 201, description = "The schedule", body = Value))
)]
pub(super) async fn create(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        let mut written: Object = request.json()?;
        let agent = written.remove("agentId");
        let agent = agent.as_ref().and_then(Value::as_str).map(AgentId::from);
        let agent = agent.ok_or_else(|| Problem::invalid("/agentId", "is required"))?;
        Ok((agent, written))
    };
    let render = |record: &ScheduleRecord| ApiResponse::created(wire::schedule(record));
    admin
        .answer(read, render, async |call, (agent, written), idempotency| {
            api.app
                .create_schedule(&call, agent, written, idempotency)
                .await
        })
        .await
}

#[utoipa::path(
    get, path = "/v1/host/tandem/schedules/{scheduleId}", tag = "conversations",
    operation_id = "readSchedule", params(("scheduleId" = String, Path)),
    responses((status = 200, description = "One schedule, whatever its status", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(schedule): PathParams<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let schedule = ScheduleId::from(schedule);
    let call = admin_call(&caller, &headers);
    api.app.authorize_schedule_reader(&call, &schedule).await?;
    let record = api.app.read_schedule(&caller, &schedule).await?;
    Ok(Json(wire::schedule(&record)))
}

#[utoipa::path(
    patch, path = "/v1/host/tandem/schedules/{scheduleId}", tag = "conversations",
    operation_id = "updateSchedule", params(("scheduleId" = String, Path)),
    request_body = Value,
    responses((status = 200, description = "The changed schedule", body = Value))
)]
pub(super) async fn update(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    PathParams(schedule): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        let mut changes: Object = request.json()?;
        let version = changes.remove(VERSION);
        let expected = expected_version(&headers, version.as_ref())?;
        Ok((expected, ScheduleChange::Update(changes)))
    };
    change(admin, schedule, read).await
}

/// The version of the body or of `If-Match`.
fn expected_version(headers: &HeaderMap, body: Option<&Value>) -> Result<Option<u64>, Problem> {
    const MESSAGE: &str = "must be the version of the schedule, a number";
    if let Some(version) = body {
        let number = version.as_u64();
        let wrong = || Problem::invalid("/version", MESSAGE);
        return number.map(Some).ok_or_else(wrong);
    }
    let Some(tag) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = tag.to_str().unwrap_or_default().trim().trim_matches('"');
    let wrong = |_| Problem::invalid("If-Match", MESSAGE);
    text.parse().map(Some).map_err(wrong)
}

#[utoipa::path(
    delete, path = "/v1/host/tandem/schedules/{scheduleId}", tag = "conversations",
    operation_id = "cancelSchedule", params(("scheduleId" = String, Path)),
    responses((status = 200, description = "The cancelled schedule", body = Value))
)]
pub(super) async fn cancel(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCancel>>,
    PathParams(schedule): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        no_body(request)?;
        Ok((expected_version(&headers, None)?, ScheduleChange::Cancel))
    };
    change(admin, schedule, read).await
}

#[utoipa::path(
    post, path = "/v1/host/tandem/schedules/{scheduleId}/pause", tag = "conversations",
    operation_id = "pauseSchedule", params(("scheduleId" = String, Path)),
    responses((status = 200, description = "The paused schedule", body = Value))
)]
pub(super) async fn pause(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    PathParams(schedule): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        no_body(request)?;
        Ok((expected_version(&headers, None)?, ScheduleChange::Pause))
    };
    change(admin, schedule, read).await
}

#[utoipa::path(
    post, path = "/v1/host/tandem/schedules/{scheduleId}/resume", tag = "conversations",
    operation_id = "resumeSchedule", params(("scheduleId" = String, Path)),
    responses((status = 200, description = "The schedule, which goes on", body = Value))
)]
pub(super) async fn resume(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsCreate>>,
    PathParams(schedule): PathParams<String>,
    headers: HeaderMap,
    request: Mutation,
) -> Result<Response, Problem> {
    let admin = AdminRequest {
        api: &api,
        caller: &caller,
        headers: &headers,
        request: &request,
    };
    let read = |request: &Mutation| {
        no_body(request)?;
        Ok((expected_version(&headers, None)?, ScheduleChange::Resume))
    };
    change(admin, schedule, read).await
}

async fn change(
    admin: AdminRequest<'_>,
    schedule: String,
    read: impl FnOnce(&Mutation) -> Result<(Option<u64>, ScheduleChange), Problem>,
) -> Result<Response, Problem> {
    let schedule = ScheduleId::from(schedule);
    let render = |record: &ScheduleRecord| ApiResponse::ok(wire::schedule(record));
    let api = admin.api;
    admin
        .answer(
            read,
            render,
            async |call, (expected, change), idempotency| {
                api.app
                    .change_schedule(&call, &schedule, expected, change, idempotency)
                    .await
            },
        )
        .await
}

#[utoipa::path(
    get, path = "/v1/host/tandem/schedules/{scheduleId}/runs", tag = "conversations",
    operation_id = "listScheduleRuns", params(("scheduleId" = String, Path),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Its occurrences that were claimed, the latest first", body = Value))
)]
pub(super) async fn runs(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(schedule): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&["limit", "cursor"])?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let page = ListingPage {
        after: after.map(ScheduleRunId::from),
        limit: limit(&params)?,
    };
    let schedule = ScheduleId::from(schedule);
    let call = admin_call(&caller, &headers);
    api.app.authorize_schedule_reader(&call, &schedule).await?;
    let (runs, next) = api
        .app
        .list_schedule_runs(&caller, &schedule, &page)
        .await?;
    let runs: Vec<Value> = runs.iter().map(wire::schedule_run).collect();
    let mut body = json!({ "runs": runs });
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(next.as_str()));
    }
    Ok(Json(body))
}

#[utoipa::path(
    get, path = "/v1/host/tandem/schedule-runs/{scheduleRunId}/recipients", tag = "conversations",
    operation_id = "listScheduleRecipients", params(("scheduleRunId" = String, Path),
           ("limit" = Option<u64>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "Recipients of a campaign with their outcomes, in their order", body = Value))
)]
pub(super) async fn recipients(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(run): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    params.only(&["limit", "cursor"])?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let after = after.map(|text| text.parse().map_err(|_| unknown_cursor()));
    let page = ListingPage {
        after: after.transpose()?,
        limit: limit(&params)?,
    };
    let run = ScheduleRunId::from(run);
    let call = admin_call(&caller, &headers);
    api.app.authorize_schedule_run_reader(&call, &run).await?;
    let (found, next) = api
        .app
        .list_schedule_recipients(&caller, &run, &page)
        .await?;
    let shown = found
        .iter()
        .map(|found| wire::schedule_recipient(&run, found.ordinal, &found.record));
    let mut body = json!({ "recipients": shown.collect::<Vec<_>>() });
    if let Some(next) = next {
        body["nextCursor"] = json!(cursor(&next.to_string()));
    }
    Ok(Json(body))
}
