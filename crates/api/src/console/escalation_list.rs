//! The list of open escalations, as a page and as a stream, and the buttons that say whose work one is.

use super::desk_offer::admin_token;
use super::escalation_view::escalation;
use super::live_rows;
use super::page::{PageError, chrome};
use super::session::{PostedForm, SignedIn};
use super::shown_bytes::line;
use crate::api::{ApiState, SharedState};
use crate::paging::{cursor, parse_cursor};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::{assignment, console_call};
use crate::sse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Redirect, Response};
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_app::conversation::{EscalationFound, EscalationQuery};
use tandem_app::{Completion, EscalationAssignee, Idempotency, ListingPage};
use tandem_console::{
    EscalationListRow, EscalationListView, EscalationSelection, InboxSelection, conversation_link,
    escalation_list_page, escalation_rows, escalations_link, html_json, question_link,
};
use tandem_record::EscalationId;
use tandem_record::conversation::DeskAction;

const ROWS: usize = 50;

fn selection(params: &Params) -> EscalationSelection {
    EscalationSelection {
        queue: params.get("queue").map(str::to_owned),
        assignee: params.get("assignee").map(str::to_owned),
        unclaimed: params.get("unclaimed") == Some("true"),
    }
}

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let view = view(&api, &reader, reader.csrf(), selection(&params), after).await?;
    Ok(Html(escalation_list_page(&chrome(&api, &reader), &view)))
}

async fn view(
    api: &ApiState,
    reader: &Identity,
    csrf: String,
    selection: EscalationSelection,
    after: Option<String>,
) -> Result<EscalationListView, Problem> {
    let of = selection.assignee.clone().map(EscalationAssignee::Actor);
    let query = EscalationQuery {
        queue: selection.queue.clone(),
        assignee: match selection.unclaimed {
            true => Some(EscalationAssignee::Nobody),
            false => of,
        },
        ..EscalationQuery::default()
    };
    let is_first = after.is_none();
    let page = ListingPage {
        after: after.map(EscalationId::from),
        limit: ROWS,
    };
    let (found, next) = api.app.list_desk(reader, query, &page).await?;
    Ok(EscalationListView {
        rows: found.iter().map(|found| row(api, reader, found)).collect(),
        selection,
        next_cursor: next.map(|next| cursor(next.as_str())),
        live: is_first,
        csrf,
    })
}

fn row(api: &ApiState, reader: &Identity, found: &EscalationFound) -> EscalationListRow {
    EscalationListRow {
        escalation: escalation(api, reader, found),
        session_id: found.session.to_string(),
        agent_id: found.agent.to_string(),
        user: line(&found.user_external_id),
    }
}

pub(super) async fn live(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let guard = api.open_session_stream(reader.session())?;
    let (csrf, selection) = (reader.csrf(), selection(&params));
    let reader = Arc::new(Identity::clone(&reader));
    let of = Arc::clone(&api);
    let frames = live_rows::frames(&api, live_rows::ROWS, move || {
        let (api, reader) = (Arc::clone(&of), Arc::clone(&reader));
        let (csrf, selection) = (csrf.clone(), selection.clone());
        async move {
            let view = view(&api, &reader, csrf, selection, None).await.ok()?;
            Some(html_json(escalation_rows(&view)))
        }
    });
    Ok(sse::response(guard, frames))
}

/// Claims, releases or assigns one, and goes back to where that was asked for.
pub(super) async fn act(
    State(api): State<SharedState>,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsRead)?;
    let action = match posted.field("action") {
        "claim" => DeskAction::Claim,
        "release" => DeskAction::Release,
        "assign" => assignment(posted.field("actorId"))?,
        _ => return Err(Problem::not_found("action").into()),
    };
    let admin_token = admin_token(&posted);
    let call = console_call(by, &headers, admin_token);
    let escalation = EscalationId::from(id);
    let done = api
        .app
        .do_desk_work(&call, escalation, action, Idempotency::none());
    let Completion::Done(changed) = done.await? else {
        unreachable!("a form has no idempotency key");
    };
    Ok(Redirect::to(&match posted.field("from") {
        "inbox" => question_link(posted.field("question"), &InboxSelection::default()),
        "list" => escalations_link(&EscalationSelection::default()),
        _ => conversation_link(changed.session.as_str()),
    }))
}
