//! The list of conversations, as a page and as a stream that updates its newest page.

use super::conversation_view;
use super::page::{PageError, chrome};
use super::session::SignedIn;
use crate::api::{ApiState, SharedState};
use crate::paging::{cursor, parse_cursor};
use crate::params::Params;
use crate::problem::Problem;
use crate::sse::{self, KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use axum::extract::State;
use axum::response::{Html, Response};
use futures_util::stream;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_app::{ListingPage, SessionFilter, wait_until_stopping};
use tandem_console::{ConversationListView, conversation_list_page, conversation_rows_json};
use tandem_record::{AgentId, SessionId};
use tokio::sync::watch;

const ROWS: usize = 50;
/// Changes are collected for this long, so that a busy host does not redraw the table constantly.
const DEBOUNCE: Duration = Duration::from_millis(500);

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
    let rows = LiveRows {
        selection: Selection::read(&params),
        reader: Identity::clone(&reader),
        bell: api.app.listen_runs(),
        stopping: api.stopping.clone(),
        sent: String::new(),
        stale: true,
        api,
    };
    let frames = stream::unfold(rows, |mut rows| async move {
        let chunk = rows.chunk().await?;
        Some((chunk, rows))
    });
    Ok(sse::response(guard, frames))
}

struct LiveRows {
    api: SharedState,
    reader: Identity,
    selection: Selection,
    bell: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// The rows the reader has; the same are not sent twice.
    sent: String,
    /// Initially true: the page was rendered before the stream started.
    stale: bool,
}

impl LiveRows {
    /// The next frame; `None` when the host shuts down or the store fails. The browser reconnects.
    async fn chunk(&mut self) -> Option<String> {
        let keep_alive = next_keep_alive();
        loop {
            if !self.stale {
                tokio::select! {
                    rung = self.bell.changed() => rung.ok()?,
                    () = tokio::time::sleep_until(keep_alive) => {
                        return Some(KEEP_ALIVE_FRAME.to_owned());
                    }
                    () = wait_until_stopping(&mut self.stopping) => return None,
                }
                tokio::time::sleep(DEBOUNCE).await;
            }
            self.bell.mark_unchanged();
            self.stale = false;
            let view = view(&self.api, &self.reader, &self.selection, None).await;
            let data = conversation_rows_json(&view.ok()?);
            if data != self.sent {
                let mut out = String::new();
                write_frame(&mut out, None, "rows", &data);
                self.sent = data;
                return Some(out);
            }
        }
    }
}
