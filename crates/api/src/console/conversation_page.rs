//! The page of one conversation, its live updates, and the button that ends it.

use super::conversation_view::{self, SHOWN_MESSAGES};
use super::page::{PageError, chrome};
use super::session::{PostedForm, SignedIn};
use crate::api::SharedState;
use crate::page_budget::counted;
use crate::path_params::PathParams;
use crate::routes::console_call;
use crate::sse::{self, KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Redirect, Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_app::conversation::{SessionFollower, SessionLog, SessionUpdate};
use tandem_app::{Idempotency, SMALL_PAGE_BYTES};
use tandem_console::{conversation_page, conversation_parts, html_json};
use tandem_record::SessionId;
use tandem_record::conversation::SessionEventBody as Body;
use tokio::time::Instant;

/// Changes are collected for this long, so that a busy conversation is not redrawn with each event.
const DEBOUNCE: Duration = Duration::from_millis(100);

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(session): PathParams<String>,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let session = SessionId::from(session);
    let _build = api.pages.begin_build(&reader.tenant).await?;
    let found = api.app.read_chat_session(&reader, &session).await?;
    let log = api.app.read_session_log(&reader, &session).await?;
    let view = conversation_view::page(&api, &reader, &found, &log, reader.csrf()).await?;
    Ok(Html(conversation_page(&chrome(&api, &reader), &view)))
}

pub(super) async fn end(
    State(api): State<SharedState>,
    PathParams(session): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsCancel)?;
    let session = SessionId::from(session);
    let back = format!("/console/conversations/{session}");
    let call = console_call(by, &headers, None);
    let ended = api.app.end_session(&call, session, Idempotency::none());
    ended.await?;
    Ok(Redirect::to(&back))
}

pub(super) async fn live(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(session): PathParams<String>,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let session = SessionId::from(session);
    let guard = api.open_session_stream(reader.session())?;
    let stopping = api.stopping.clone();
    let followed = api.app.follow_session(&reader, &session, None, stopping);
    let (_, follower) = followed.await?;
    let live = LiveConversation {
        csrf: reader.csrf(),
        reader: Identity::clone(&reader),
        session,
        follower,
        log: SessionLog::default(),
        dropped: 0,
        sent: HashMap::new(),
        is_writing: false,
        has_ended: false,
        api,
    };
    let frames = stream::unfold(live, |mut live| async move {
        let chunk = live.chunk().await?;
        Some((chunk, live))
    });
    Ok(sse::response(guard, frames))
}

struct LiveConversation {
    api: SharedState,
    reader: Identity,
    csrf: String,
    session: SessionId,
    follower: SessionFollower,
    /// The last messages; older ones are dropped.
    log: SessionLog,
    dropped: u64,
    /// The parts the reader has.
    sent: HashMap<&'static str, String>,
    /// The reader is shown pieces of an answer.
    is_writing: bool,
    has_ended: bool,
}

impl LiveConversation {
    /// The next bytes; `None` at the end. The browser reconnects if it was not the end of the conversation.
    async fn chunk(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        let mut out = String::new();
        let mut until = next_keep_alive();
        let mut has_events = false;
        // Of an answer that is being written while the page is shown for the first time.
        let mut written = String::new();
        loop {
            match self.follower.next(until).await.ok()? {
                SessionUpdate::Events(events, _) => {
                    let ends = |body: &Body| {
                        matches!(body, Body::WorkFinished { .. } | Body::TurnEnded(_))
                    };
                    if events.iter().any(|event| ends(&event.event.body)) {
                        written.clear();
                    }
                    events.iter().for_each(|event| self.log.evolve(event));
                    self.drop_old_messages();
                    has_events = true;
                    until = Instant::now() + DEBOUNCE;
                }
                SessionUpdate::Piece(piece) if self.sent.is_empty() => {
                    written.push_str(&piece.text);
                }
                SessionUpdate::Piece(piece) => {
                    // The piece belongs below what the events before it show.
                    if std::mem::take(&mut has_events) {
                        self.add_state(&mut out).await?;
                    }
                    let data = json!({"content": piece.text}).to_string();
                    write_frame(&mut out, None, "piece", &data);
                    self.is_writing = true;
                    break;
                }
                SessionUpdate::TimedOut if has_events => break,
                SessionUpdate::TimedOut => {
                    return Some(Bytes::from_static(KEEP_ALIVE_FRAME.as_bytes()));
                }
                SessionUpdate::Ended => {
                    self.has_ended = true;
                    break;
                }
                SessionUpdate::Draining => return None,
            }
        }
        if has_events || self.has_ended {
            self.add_state(&mut out).await?;
        }
        if !written.is_empty() {
            let data = json!({"content": written}).to_string();
            write_frame(&mut out, None, "piece", &data);
            self.is_writing = true;
        }
        if self.has_ended {
            // Browsers ignore a message without data.
            write_frame(&mut out, None, "end", "{}");
        }
        self.counted(out)
    }

    /// The parts that changed.
    async fn add_state(&mut self, out: &mut String) -> Option<()> {
        let _build = self.api.pages.begin_build(&self.reader.tenant).await.ok()?;
        let found = self.api.app.read_chat_session(&self.reader, &self.session);
        let found = found.await.ok()?;
        let csrf = self.csrf.clone();
        let view = conversation_view::page(&self.api, &self.reader, &found, &self.log, csrf);
        let mut view = view.await.ok()?;
        view.lines_omitted += self.dropped;
        let mut changed = String::new();
        for (name, html) in conversation_parts(&view) {
            if self.sent.get(name) != Some(&html) {
                changed.push_str(&html);
                self.sent.insert(name, html);
            }
        }
        if !changed.is_empty() {
            write_frame(out, None, "state", &html_json(changed));
        }
        if std::mem::take(&mut self.is_writing) {
            write_frame(out, None, "written", "{}");
        }
        Some(())
    }

    fn drop_old_messages(&mut self) {
        let surplus = self.log.messages.len().saturating_sub(SHOWN_MESSAGES);
        self.log.messages.drain(..surplus);
        self.dropped += u64::try_from(surplus).unwrap_or(u64::MAX);
        let surplus = self.log.outbox.len().saturating_sub(SHOWN_MESSAGES);
        self.log.outbox.drain(..surplus);
        let passed = &mut self.log.bridges.messages;
        passed.drain(..passed.len().saturating_sub(SHOWN_MESSAGES));
    }

    /// The bytes, with the room they take until they are written.
    fn counted(&self, out: String) -> Option<Bytes> {
        if out.len() <= SMALL_PAGE_BYTES {
            return Some(out.into());
        }
        let share = self.api.pages.try_hold(&self.reader.tenant, out.len())?;
        Some(counted(out, &Arc::new(share)))
    }
}
