//! The list of schedules, as a page and as a stream that updates its newest page.

use super::live_rows;
use super::page::{PageError, chrome};
use super::schedule_view;
use super::session::SignedIn;
use crate::api::{ApiState, SharedState};
use crate::paging::{cursor, parse_cursor};
use crate::params::Params;
use crate::problem::Problem;
use crate::routes::schedule_status;
use crate::sse;
use axum::extract::State;
use axum::response::{Html, Response};
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_app::ListingPage;
use tandem_app::conversation::ScheduleQuery;
use tandem_console::{
    ScheduleListView, ScheduleSelection, html_json, schedule_list_page, schedule_rows,
};
use tandem_record::conversation::ScheduleStatus;
use tandem_record::{AgentId, ScheduleId};

/// Each row reads its last run.
const ROWS: usize = 25;

/// Which schedules are listed.
#[derive(Clone)]
struct Selection {
    agent: Option<String>,
    status: Option<ScheduleStatus>,
}

impl Selection {
    fn read(params: &Params) -> Result<Self, Problem> {
        Ok(Self {
            agent: params.get("agent").map(str::to_owned),
            status: schedule_status(params)?,
        })
    }
}

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let mut view = view(&api, &reader, &Selection::read(&params)?, after).await?;
    let agents = api.app.list_agents(&reader)?;
    view.agents = agents.into_iter().map(|agent| agent.id).collect();
    Ok(Html(schedule_list_page(&chrome(&api, &reader), &view)))
}

async fn view(
    api: &ApiState,
    reader: &Identity,
    selection: &Selection,
    after: Option<String>,
) -> Result<ScheduleListView, Problem> {
    let query = ScheduleQuery {
        agent: selection.agent.as_deref().map(AgentId::from),
        status: selection.status,
        ..ScheduleQuery::default()
    };
    let is_first = after.is_none();
    let page = ListingPage {
        after: after.map(ScheduleId::from),
        limit: ROWS,
    };
    let (records, next) = api.app.list_schedules(reader, query, &page).await?;
    let mut rows = Vec::with_capacity(records.len());
    for record in &records {
        rows.push(schedule_view::row(api, record).await?);
    }
    let status = selection.status.map(ScheduleStatus::as_str);
    Ok(ScheduleListView {
        rows,
        selection: ScheduleSelection {
            agent: selection.agent.clone(),
            status: status.map(str::to_owned),
        },
        agents: Vec::new(),
        statuses: ScheduleStatus::ALL.map(ScheduleStatus::as_str).into(),
        next_cursor: next.map(|next| cursor(next.as_str())),
        live: is_first,
    })
}

pub(super) async fn live(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let selection = Selection::read(&params)?;
    let guard = api.open_session_stream(reader.session())?;
    let reader = Arc::new(Identity::clone(&reader));
    let of = Arc::clone(&api);
    let frames = live_rows::frames(&api, live_rows::ROWS, move || {
        let (api, reader, selection) = (Arc::clone(&of), Arc::clone(&reader), selection.clone());
        async move {
            let view = view(&api, &reader, &selection, None).await.ok()?;
            Some(html_json(schedule_rows(&view)))
        }
    });
    Ok(sse::response(guard, frames))
}
