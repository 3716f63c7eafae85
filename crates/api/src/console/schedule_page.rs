//! The page of one schedule with its occurrences, the buttons that change it, and the page of one occurrence.

use super::desk_offer::admin_token;
use super::live_rows;
use super::page::{PageError, chrome};
use super::schedule_view;
use super::session::{PostedForm, SignedIn};
use crate::api::{ApiState, SharedState};
use crate::paging::{cursor, parse_cursor, unknown_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::console_call;
use crate::sse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Redirect, Response};
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_app::conversation::ScheduleChange;
use tandem_app::{Idempotency, ListingPage};
use tandem_console::{
    SchedulePageView, ScheduleRunPageView, html_json, schedule_link, schedule_page, schedule_parts,
    schedule_run_page,
};
use tandem_record::{ScheduleId, ScheduleRunId};

const RUNS: usize = 25;
const RECIPIENTS: usize = 50;

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(schedule): PathParams<String>,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let schedule = ScheduleId::from(schedule);
    let view = view(&api, &reader, &schedule, reader.csrf(), after).await?;
    Ok(Html(schedule_page(&chrome(&api, &reader), &view)))
}

async fn view(
    api: &ApiState,
    reader: &Identity,
    schedule: &ScheduleId,
    csrf: String,
    after: Option<String>,
) -> Result<SchedulePageView, Problem> {
    let record = api.app.read_schedule(reader, schedule).await?;
    let is_first = after.is_none();
    let page = ListingPage {
        after: after.map(ScheduleRunId::from),
        limit: RUNS,
    };
    let listed = api.app.list_schedule_runs(reader, schedule, &page);
    let (runs, next) = listed.await?;
    let runs = runs.iter();
    Ok(SchedulePageView {
        runs: runs
            .map(|run| schedule_view::run(api, &record.definition, run))
            .collect(),
        next_cursor: next.map(|next| cursor(next.as_str())),
        live: is_first,
        ..schedule_view::page(api, reader, &record, csrf)
    })
}

pub(super) async fn live(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(schedule): PathParams<String>,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let schedule = ScheduleId::from(schedule);
    api.app.read_schedule(&reader, &schedule).await?;
    let guard = api.open_session_stream(reader.session())?;
    let csrf = reader.csrf();
    let reader = Arc::new(Identity::clone(&reader));
    let of = Arc::clone(&api);
    let frames = live_rows::frames(&api, live_rows::STATE, move || {
        let (api, reader) = (Arc::clone(&of), Arc::clone(&reader));
        let (schedule, csrf) = (schedule.clone(), csrf.clone());
        async move {
            let view = view(&api, &reader, &schedule, csrf, None).await.ok()?;
            Some(html_json(schedule_parts(&view)))
        }
    });
    Ok(sse::response(guard, frames))
}

/// Pauses, resumes or cancels it, if it is still as the page showed it.
pub(super) async fn act(
    State(api): State<SharedState>,
    PathParams((schedule, action)): PathParams<(String, String)>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsRead)?;
    let change = match action.as_str() {
        "pause" => ScheduleChange::Pause,
        "resume" => ScheduleChange::Resume,
        "cancel" => ScheduleChange::Cancel,
        _ => return Err(Problem::not_found("action").into()),
    };
    let version = posted.field("version").parse();
    let wrong = |_| Problem::invalid("version", "must be the version of the schedule, a number");
    let expected = Some(version.map_err(wrong)?);
    let admin_token = admin_token(&posted);
    let call = console_call(by, &headers, admin_token);
    let schedule = ScheduleId::from(schedule);
    let once = Idempotency::none();
    let changed = api
        .app
        .change_schedule(&call, &schedule, expected, change, once);
    changed.await?;
    Ok(Redirect::to(&schedule_link(schedule.as_str())))
}

/// One occurrence with its recipients.
pub(super) async fn run(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(run): PathParams<String>,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let after = after.map(|text| text.parse().map_err(|_| unknown_cursor()));
    let page = ListingPage {
        after: after.transpose()?,
        limit: RECIPIENTS,
    };
    let run = ScheduleRunId::from(run);
    let record = api.app.read_schedule_run(&reader, &run).await?;
    let schedule = api.app.read_schedule(&reader, &record.schedule_id).await?;
    let listed = api.app.list_schedule_recipients(&reader, &run, &page);
    let (recipients, next) = listed.await?;
    let view = ScheduleRunPageView {
        schedule_id: record.schedule_id.to_string(),
        starts: schedule_view::starts(record.flow_id.as_ref(), &record.target),
        target: schedule_view::target(&record.target),
        run: schedule_view::run(&api, &schedule.definition, &record),
        recipients: recipients.iter().map(schedule_view::recipient).collect(),
        next_cursor: next.map(|next| cursor(&next.to_string())),
    };
    Ok(Html(schedule_run_page(&chrome(&api, &reader), &view)))
}
