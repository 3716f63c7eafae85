//! A stream that sends the rows of a list, or the parts of a page, again when they change.

use crate::api::ApiState;
use crate::sse::{KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use futures_util::stream::{self, Stream};
use std::time::Duration;
use tandem_app::wait_until_stopping;
use tokio::sync::watch;

/// Changes are collected for this long, so that a busy host does not redraw the table constantly.
const DEBOUNCE: Duration = Duration::from_millis(500);

/// Events whose data are the rows of the list.
pub(super) const ROWS: &str = "rows";
/// Events whose data are parts of the page.
pub(super) const STATE: &str = "state";

/// `render` gives what is shown as the data of a frame; `None` when the store fails.
pub(super) fn frames<R, F>(
    api: &ApiState,
    event: &'static str,
    render: R,
) -> impl Stream<Item = String> + use<R, F>
where
    R: Fn() -> F + Send,
    F: Future<Output = Option<String>> + Send,
{
    let rows = LiveRows {
        render,
        event,
        bell: api.app.listen_runs(),
        stopping: api.stopping.clone(),
        sent: String::new(),
        stale: true,
    };
    stream::unfold(rows, |mut rows| async move {
        let chunk = rows.chunk().await?;
        Some((chunk, rows))
    })
}

struct LiveRows<R> {
    render: R,
    event: &'static str,
    bell: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// What the reader has; the same is not sent twice.
    sent: String,
    /// Initially true: the page was rendered before the stream started.
    stale: bool,
}

impl<R, F> LiveRows<R>
where
    R: Fn() -> F,
    F: Future<Output = Option<String>>,
{
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
            let data = (self.render)().await?;
            // The bell rings for all tenants; a frame for others would tell of their activity.
            if data != self.sent {
                let mut out = String::new();
                write_frame(&mut out, None, self.event, &data);
                self.sent = data;
                return Some(out);
            }
        }
    }
}
