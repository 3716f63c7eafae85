//! The list of conversations, as a page and as a stream that updates its newest page.

use super::conversation_view;
use super::live_rows;
use super::page::{PageError, chrome};
use super::session::SignedIn;
use crate::api::{ApiState, SharedState};
use crate::paging::{cursor, parse_cursor};
use crate::params::Params;
use crate::problem::Problem;
use crate::sse;
use axum::extract::State;
use axum::response::{Html, Response};
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_app::{ListingPage, SessionFilter};
use tandem_console::{ConversationListView, conversation_list_page, conversation_rows_json};
use tandem_record::{AgentId, SessionId};

const ROWS: usize = 50;

/// Which conversations are listed.
#[derive(Clone)]
struct Selection {
    agent: Option<String>,
    with_ended: bool,
}

impl Selection {
    fn read(params: &Params) -> Self {
        Self {
            agent: params.get("agent").map(str::to_owned),
            with_ended: params.get("ended") == Some("true"),
        }
    }
}

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let after = params.get("cursor").map(parse_cursor).transpose()?;
    let mut view = view(&api, &reader, &Selection::read(&params), after).await?;
    let agents = api.app.list_agents(&reader)?;
    view.agents = agents.into_iter().map(|agent| agent.id).collect();
    Ok(Html(conversation_list_page(&chrome(&api, &reader), &view)))
}

async fn view(
    api: &ApiState,
    reader: &Identity,
    selection: &Selection,
    after: Option<String>,
) -> Result<ConversationListView, Problem> {
    let filter = SessionFilter {
        workspace: None,
        agent: selection.agent.as_deref().map(AgentId::from),
        user_external_id: None,
        active: (!selection.with_ended).then_some(true),
    };
    let is_first = after.is_none();
    let page = ListingPage {
        after: after.map(SessionId::from),
        limit: ROWS,
    };
    let listed = api.app.list_sessions(reader, filter, &page).await?;
    Ok(ConversationListView {
        rows: listed.sessions.iter().map(conversation_view::row).collect(),
        agents: Vec::new(),
        agent: selection.agent.clone(),
        with_ended: selection.with_ended,
        next_cursor: listed.next.map(|next| cursor(next.as_str())),
        live: is_first,
    })
}

pub(super) async fn live(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let guard = api.open_session_stream(reader.session())?;
    let selection = Selection::read(&params);
    let reader = Arc::new(Identity::clone(&reader));
    let of = Arc::clone(&api);
    let frames = live_rows::frames(&api, live_rows::ROWS, move || {
        let (api, reader, selection) = (Arc::clone(&of), Arc::clone(&reader), selection.clone());
        async move {
            let view = view(&api, &reader, &selection, None).await.ok()?;
            Some(conversation_rows_json(&view))
        }
    });
    Ok(sse::response(guard, frames))
}
