//! The inbox kept up to date: its rows when questions come and go, the chosen card when its run
//! moves. Nothing is queued: a stream holds two bells and what it sent last, and reads when they
//! ring.

use super::inbox_view;
use super::page::Detour;
use super::session::SignedIn;
use crate::api::Shared;
use crate::follow::stopped;
use crate::params::Params;
use crate::routes::find_question;
use crate::sse::{self, KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use axum::extract::State;
use axum::response::Response;
use futures_util::stream;
use std::time::Duration;
use tandem_access::{Identity, Scope};
use tandem_console::{Selection, inbox_card_json, inbox_rows_json};
use tandem_record::RunId;
use tokio::sync::watch;

/// Changes are gathered this long, so that a busy host does not redraw the list all the time.
const GATHERED: Duration = Duration::from_millis(100);

pub(super) async fn live(
    State(doors): State<Shared>,
    reader: SignedIn,
    params: Params,
) -> Result<Response, Detour> {
    reader.may(Scope::RunsRead)?;
    let bell = doors.runtime.bell().listen_questions();
    let item = match params.get("item") {
        Some(id) => {
            let row = find_question(&doors, &reader, id.to_owned()).await?;
            Some(Item {
                id: id.to_owned(),
                bell: doors.runtime.bell().listen(&row.run_id),
                run: row.run_id,
                sent: String::new(),
            })
        }
        None => None,
    };
    let guard = doors.open_session_stream(reader.session())?;
    let inbox = LiveInbox {
        selection: inbox_view::selection(&params)?,
        csrf: reader.csrf(),
        reader: Identity::clone(&reader),
        stopping: doors.stopping.clone(),
        sent: String::new(),
        stale: true,
        bell,
        item,
        doors,
    };
    let frames = stream::unfold(inbox, |mut inbox| async move {
        let chunk = inbox.chunk().await?;
        Some((chunk, inbox))
    });
    Ok(sse::response(guard, frames))
}

struct LiveInbox {
    doors: Shared,
    reader: Identity,
    csrf: String,
    selection: Selection,
    bell: watch::Receiver<u64>,
    item: Option<Item>,
    stopping: watch::Receiver<bool>,
    /// The rows the reader has; the same are not sent twice.
    sent: String,
    /// True at first: the page was rendered before the stream began.
    stale: bool,
}

struct Item {
    id: String,
    run: RunId,
    bell: watch::Receiver<u64>,
    sent: String,
}

impl LiveInbox {
    /// The next bytes; `None` when the host goes down or the store is in trouble. The browser comes
    /// back by itself.
    async fn chunk(&mut self) -> Option<String> {
        let keep_alive = next_keep_alive();
        loop {
            if !self.stale {
                tokio::select! {
                    rung = self.bell.changed() => rung.ok()?,
                    () = moved(&self.doors, &mut self.item) => {}
                    () = tokio::time::sleep_until(keep_alive) => {
                        return Some(KEEP_ALIVE_FRAME.to_owned());
                    }
                    () = stopped(&mut self.stopping) => return None,
                }
                tokio::time::sleep(GATHERED).await;
            }
            self.bell.mark_unchanged();
            self.stale = false;
            let mut out = String::new();
            self.add_card(&mut out).await?;
            self.add_rows(&mut out).await?;
            if !out.is_empty() {
                return Some(out);
            }
        }
    }

    async fn add_card(&mut self, out: &mut String) -> Option<()> {
        let Some(item) = &mut self.item else {
            return Some(());
        };
        item.bell.mark_unchanged();
        let card = inbox_view::card(&self.doors, &self.reader, item.id.clone()).await;
        let mut card = card.ok()?;
        card.csrf = self.csrf.clone();
        card.selection = self.selection.clone();
        let data = inbox_card_json(&card);
        if data != item.sent {
            write_frame(out, None, "card", &data);
            item.sent = data;
        }
        Some(())
    }

    async fn add_rows(&mut self, out: &mut String) -> Option<()> {
        let selection = self.selection.clone();
        let view = inbox_view::rows(&self.doors, &self.reader, selection).await;
        let mut view = view.ok()?;
        view.chosen = self.item.as_ref().map(|item| item.id.clone());
        let data = inbox_rows_json(&view);
        if data != self.sent {
            write_frame(out, None, "rows", &data);
            self.sent = data;
        }
        Some(())
    }
}

/// Resolves when the chosen question's run moves; never, when none is chosen.
async fn moved(doors: &Shared, item: &mut Option<Item>) {
    let Some(item) = item else {
        return std::future::pending().await;
    };
    if item.bell.changed().await.is_err() {
        // The bell was taken away; a new one still rings for what comes.
        item.bell = doors.runtime.bell().listen(&item.run);
    }
}
