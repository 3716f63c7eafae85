//! Live updates of the inbox: its rows when interrupts open and close, the chosen card when the stream that
//! asks changes. Nothing is queued: a stream holds two bells and the digests of what it sent last, and reads when
//! a bell rings. What it sends counts against the tenant's budget for unsent bytes.

use super::inbox_view;
use super::page::PageError;
use super::session::SignedIn;
use crate::api::SharedState;
use crate::page_budget::counted;
use crate::params::Params;
use crate::sse::{self, KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_app::{SMALL_PAGE_BYTES, wait_until_stopping};
use tandem_console::{InboxSelection, inbox_card_json, inbox_rows_json};
use tandem_record::{InterruptId, StreamId};
use tokio::sync::watch;

/// Changes are collected for this long, so that a busy host does not redraw the list constantly.
const DEBOUNCE: Duration = Duration::from_millis(100);

pub(super) async fn live(
    State(api): State<SharedState>,
    reader: SignedIn,
    params: Params,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let bell = api.app.listen_questions();
    let item = match params.get("item") {
        Some(id) => {
            let question = InterruptId::new(id);
            let row = api.app.read_interrupt(&reader, &question).await?;
            // A session decides for its flows: each of its commits may change a question of theirs.
            let session = row
                .question()?
                .session_id
                .map(|id| StreamId::of_session(&id));
            let stream = session.unwrap_or(row.stream);
            Some(ChosenQuestion {
                id: id.to_owned(),
                bell: api.app.listen_stream(&stream),
                stream,
                sent: None,
            })
        }
        None => None,
    };
    let guard = api.open_session_stream(reader.session())?;
    let inbox = LiveInbox {
        selection: inbox_view::selection(&params)?,
        csrf: reader.csrf(),
        reader: Identity::clone(&reader),
        stopping: api.stopping.clone(),
        sent: None,
        stale: true,
        bell,
        item,
        api,
    };
    let frames = stream::unfold(inbox, |mut inbox| async move {
        let chunk = inbox.chunk().await?;
        Some((chunk, inbox))
    });
    Ok(sse::response(guard, frames))
}

struct LiveInbox {
    api: SharedState,
    reader: Identity,
    csrf: String,
    selection: InboxSelection,
    bell: watch::Receiver<u64>,
    item: Option<ChosenQuestion>,
    stopping: watch::Receiver<bool>,
    /// The digest of the rows the reader has; equal rows are not sent again.
    sent: Option<u64>,
    /// Initially true: the page was rendered before the stream started.
    stale: bool,
}

struct ChosenQuestion {
    id: String,
    stream: StreamId,
    bell: watch::Receiver<u64>,
    /// The digest of the card the reader has.
    sent: Option<u64>,
}

impl LiveInbox {
    /// The next bytes; `None` when the host shuts down, the store fails or there is no room. The browser
    /// reconnects.
    async fn chunk(&mut self) -> Option<Bytes> {
        let keep_alive = next_keep_alive();
        loop {
            if !self.stale {
                tokio::select! {
                    rung = self.bell.changed() => rung.ok()?,
                    () = wait_for_run_change(&self.api, &mut self.item) => {}
                    () = tokio::time::sleep_until(keep_alive) => {
                        return Some(Bytes::from_static(KEEP_ALIVE_FRAME.as_bytes()));
                    }
                    () = wait_until_stopping(&mut self.stopping) => return None,
                }
                tokio::time::sleep(DEBOUNCE).await;
            }
            self.bell.mark_unchanged();
            self.stale = false;
            let out = self.changes().await?;
            if !out.is_empty() {
                return self.counted(out);
            }
        }
    }

    /// The frames whose content changed.
    async fn changes(&mut self) -> Option<String> {
        let build = self.api.pages.begin_build(&self.reader.tenant).await;
        let _build = build.ok()?;
        let mut out = String::new();
        self.add_card(&mut out).await?;
        self.add_rows(&mut out).await?;
        Some(out)
    }

    /// The bytes, with the room they take until they are written.
    fn counted(&self, out: String) -> Option<Bytes> {
        if out.len() <= SMALL_PAGE_BYTES {
            return Some(out.into());
        }
        let share = self.api.pages.try_hold(&self.reader.tenant, out.len())?;
        Some(counted(out, &Arc::new(share)))
    }

    async fn add_card(&mut self, out: &mut String) -> Option<()> {
        let Some(item) = &mut self.item else {
            return Some(());
        };
        item.bell.mark_unchanged();
        let card = inbox_view::load_card(&self.api, &self.reader, item.id.clone()).await;
        let mut card = card.ok()?;
        card.csrf = self.csrf.clone();
        card.selection = self.selection.clone();
        let data = inbox_card_json(&card);
        let digest = Some(digest(&data));
        if digest != item.sent {
            write_frame(out, None, "card", &data);
            item.sent = digest;
        }
        Some(())
    }

    async fn add_rows(&mut self, out: &mut String) -> Option<()> {
        let selection = self.selection.clone();
        let view = inbox_view::load_rows(&self.api, &self.reader, selection).await;
        let mut view = view.ok()?;
        view.chosen = self.item.as_ref().map(|item| item.id.clone());
        let data = inbox_rows_json(&view);
        let digest = Some(digest(&data));
        if digest != self.sent {
            write_frame(out, None, "rows", &data);
            self.sent = digest;
        }
        Some(())
    }
}

/// Recognizes equal data within one stream.
fn digest(data: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}

/// Resolves when the run of the chosen question changes; never when none is chosen.
async fn wait_for_run_change(api: &SharedState, item: &mut Option<ChosenQuestion>) {
    let Some(item) = item else {
        return std::future::pending().await;
    };
    if item.bell.changed().await.is_err() {
        // The bell was removed; a new one rings for later events.
        item.bell = api.app.listen_stream(&item.stream);
    }
}
