//! Reads a log as it grows. Holds a cursor and a bell: nothing is queued for a slow reader, and a
//! lost notification costs latency, never an event.

use crate::api::ApiState;
use tandem_record::{RecordedEvent, RunId, Seq};
use tandem_runtime::{Fault, PageLimit, Runtime, StoredRun};
use tokio::sync::watch;
use tokio::time::Instant;

/// The size of one read. A reader that does not consume holds this much, or one event.
pub(crate) const PAGE: PageLimit = PageLimit {
    events: 512,
    bytes: 256 * 1024,
};

pub(crate) struct Follower {
    runtime: Runtime,
    run: RunId,
    cursor: Option<Seq>,
    bell: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    ended: bool,
}

pub(crate) enum FollowUpdate {
    Events(Vec<RecordedEvent>),
    /// No event arrived before the deadline.
    TimedOut,
    /// The terminal event was already returned.
    Ended,
    /// The host is shutting down; the reader can continue later.
    Draining,
}

impl Follower {
    /// Follows a run from after `cursor`. The bell is registered before the first read, so no event
    /// is missed in between.
    pub(crate) fn new(api: &ApiState, run: &StoredRun, cursor: Option<Seq>) -> Self {
        let row = &run.row;
        Self {
            bell: api.runtime.bell().listen(&row.run_id),
            runtime: api.runtime.clone(),
            run: row.run_id.clone(),
            cursor,
            stopping: api.stopping.clone(),
            ended: row.status.is_terminal() && cursor >= Some(run.head),
        }
    }

    /// Waits for the next events and returns them.
    pub(crate) async fn next(&mut self, until: Instant) -> Result<FollowUpdate, Fault> {
        loop {
            if self.ended {
                return Ok(FollowUpdate::Ended);
            }
            self.bell.mark_unchanged();
            let page = self.runtime.event_page(&self.run, self.cursor, PAGE);
            let page = page.await?;
            let events = page.map(|page| page.events).unwrap_or_default();
            if let Some(last) = events.last() {
                self.cursor = Some(last.seq);
                self.ended = last.event.is_terminal();
                return Ok(FollowUpdate::Events(events));
            }
            tokio::select! {
                rung = self.bell.changed() => {
                    if rung.is_err() {
                        // The bell was removed; a new one rings for later events.
                        self.bell = self.runtime.bell().listen(&self.run);
                    }
                }
                () = tokio::time::sleep_until(until) => return Ok(FollowUpdate::TimedOut),
                () = wait_until_stopping(&mut self.stopping) => return Ok(FollowUpdate::Draining),
            }
        }
    }
}

/// Resolves when the host drains; never when the sender is gone.
pub(crate) async fn wait_until_stopping(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
