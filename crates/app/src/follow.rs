//! Reads a log as it grows. Holds a cursor and a bell: nothing is queued for a slow reader, and a
//! lost notification costs latency, never an event.

use crate::app::App;
use tandem_record::{RecordedEvent, RunId, Seq};
use tandem_runtime::{Fault, PageLimit, Runtime, StoredRun};
use tokio::sync::watch;
use tokio::time::Instant;

/// The size of one read. A reader that does not consume holds this much, or one event.
pub(crate) const PAGE: PageLimit = PageLimit {
    events: 512,
    bytes: 256 * 1024,
};

pub struct Follower {
    runtime: Runtime,
    run: RunId,
    cursor: Option<Seq>,
    bell: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    ended: bool,
}

pub enum FollowUpdate {
    Events(Vec<RecordedEvent>),
    /// No event arrived before the deadline.
    TimedOut,
    /// The terminal event was already returned.
    Ended,
    /// The host is shutting down; the reader can continue later.
    Draining,
}

impl App {
    /// Follows a run the caller may see, from after `cursor`, until the run ends or `stopping` becomes true.
    pub fn follow_run(
        &self,
        run: &StoredRun,
        cursor: Option<Seq>,
        stopping: watch::Receiver<bool>,
    ) -> Follower {
        Follower::new(self.runtime().clone(), run, cursor, stopping)
    }
}

impl Follower {
    /// Follows a run from after `cursor`. The bell is registered before the first read, so no event
    /// is missed in between.
    fn new(
        runtime: Runtime,
        run: &StoredRun,
        cursor: Option<Seq>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let row = &run.row;
        Self {
            bell: runtime.bell().listen(&row.run_id),
            runtime,
            run: row.run_id.clone(),
            cursor,
            stopping,
            ended: row.status.is_terminal() && cursor >= Some(run.head),
        }
    }

    /// Waits for the next events and returns them.
    pub async fn next(&mut self, until: Instant) -> Result<FollowUpdate, Fault> {
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
pub async fn wait_until_stopping(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
