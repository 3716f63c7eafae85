//! Reads a log as it grows. Holds a cursor and a bell: nothing is queued for a slow reader, and a
//! lost notification costs latency, never an event.

use crate::app::App;
use crate::fair_shares::{FairShares, HeldShare};
use crate::reader_memory::{MAX_WAIT, SMALL_PAGE_BYTES};
use std::sync::Arc;
use tandem_record::{RecordedEvent, RunId, Seq, StreamId, TenantId};
use tandem_runtime::{EventPage, Fault, PageLimit, Runtime, StoredRun};
use tokio::sync::watch;
use tokio::time::Instant;

/// The size of one read. A reader that does not consume holds this much, or one event. Above
/// [`SMALL_PAGE_BYTES`] it is counted.
pub(crate) const PAGE: PageLimit = PageLimit {
    events: 512,
    bytes: 256 * 1024,
};

pub struct Follower {
    runtime: Runtime,
    reader_memory: Arc<FairShares>,
    tenant: TenantId,
    run: RunId,
    cursor: Option<Seq>,
    bell: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    ended: bool,
    /// Room for the next large page, when the stream had to wait for it.
    room: Option<HeldShare>,
}

pub enum FollowUpdate {
    /// With their room in memory, when they are many bytes.
    Events(Vec<RecordedEvent>, Option<HeldShare>),
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
        Follower::new(self, run, cursor, stopping)
    }
}

impl Follower {
    /// Follows a run from after `cursor`. The bell is registered before the first read, so no event
    /// is missed in between.
    fn new(
        app: &App,
        run: &StoredRun,
        cursor: Option<Seq>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let row = &run.row;
        Self {
            bell: app.runtime().bell().listen(&StreamId::of_run(&row.run_id)),
            runtime: app.runtime().clone(),
            reader_memory: Arc::clone(app.reader_memory()),
            tenant: row.tenant.clone(),
            run: row.run_id.clone(),
            cursor,
            stopping,
            ended: row.status.is_terminal() && cursor >= Some(run.head),
            room: None,
        }
    }

    /// Room in memory beside the events; `None` if there is none in time.
    pub async fn room_for(&self, bytes: usize) -> Option<HeldShare> {
        let until = Instant::now() + MAX_WAIT;
        self.reader_memory.acquire(&self.tenant, bytes, until).await
    }

    /// The same without waiting.
    pub fn try_room_for(&self, bytes: usize) -> Option<HeldShare> {
        self.reader_memory.try_acquire(&self.tenant, bytes)
    }

    /// Waits for the next events and returns them.
    pub async fn next(&mut self, until: Instant) -> Result<FollowUpdate, Fault> {
        loop {
            if self.ended {
                return Ok(FollowUpdate::Ended);
            }
            self.bell.mark_unchanged();
            let page = self.runtime.event_page(&self.run, self.cursor, PAGE);
            let page = page.await?.filter(|page| !page.events.is_empty());
            if let Some(EventPage { events, bytes, .. }) = page
                && let Some(last) = events.last()
            {
                let needed = room_for_page(bytes);
                let mut room = self.room.take();
                if needed > 0 && room.is_none() {
                    room = self.reader_memory.try_acquire(&self.tenant, needed);
                }
                if needed > 0 && room.is_none() {
                    // A stream that waits for room holds no events. It reads them again.
                    drop(events);
                    tokio::select! {
                        room = self.reader_memory.acquire(&self.tenant, needed, until) => self.room = room,
                        () = wait_until_stopping(&mut self.stopping) => {
                            return Ok(FollowUpdate::Draining);
                        }
                    }
                    match self.room.is_some() {
                        true => continue,
                        false => return Ok(FollowUpdate::TimedOut),
                    }
                }
                self.cursor = Some(last.seq);
                self.ended = last.event.is_terminal();
                return Ok(FollowUpdate::Events(events, room));
            }
            tokio::select! {
                rung = self.bell.changed() => {
                    if rung.is_err() {
                        // The bell was removed; a new one rings for later events.
                        self.bell = self.runtime.bell().listen(&StreamId::of_run(&self.run));
                    }
                }
                () = tokio::time::sleep_until(until) => return Ok(FollowUpdate::TimedOut),
                () = wait_until_stopping(&mut self.stopping) => return Ok(FollowUpdate::Draining),
            }
        }
    }
}

/// The bytes that count for a page of this size: as values and as text. When the page is read again it is
/// as large, or filled up to the size of a page.
pub(crate) fn room_for_page(bytes: usize) -> usize {
    match bytes {
        0..=SMALL_PAGE_BYTES => 0,
        bytes => 2 * bytes.max(PAGE.bytes),
    }
}

/// Resolves when the host drains; never when the sender is gone.
pub async fn wait_until_stopping(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
