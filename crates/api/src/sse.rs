//! Server-sent events: frames, keep-alives, batches, and the end of streams.
//!
//! The connection pulls the stream: data that a slow reader does not take is not read from the log.
//! A stream buffers one page of the log and renders it in chunks of [`CHUNK_BYTES`] or one frame. Large
//! pages, and the state that some streams fold, count against the tenant's budget for unsent bytes.

use crate::page_budget::counted;
use crate::streams::{StreamGuard, while_allowed};
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tandem_app::{FollowUpdate, Follower, HeldShare, SMALL_PAGE_BYTES};
use tandem_record::{RecordedEvent, Seq};
use tokio::time::Instant;

/// Bytes handed to the connection at once, unless a single frame is larger.
const CHUNK_BYTES: usize = 64 * 1024;

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One server-sent event.
pub(crate) struct Frame {
    pub(crate) seq: Seq,
    pub(crate) name: &'static str,
    /// JSON on one line.
    pub(crate) data: String,
    /// Never delayed by a batch: a reader may have to act on it.
    pub(crate) urgent: bool,
}

/// Renders events as frames.
pub(crate) trait EventRenderer: Send + 'static {
    fn render(&mut self, recorded: &RecordedEvent) -> Option<Frame>;
    /// Size of the state it keeps between events.
    fn state_bytes(&self) -> usize {
        0
    }
    /// Called when all events read so far were rendered.
    fn render_page_end(&mut self) -> Option<Frame> {
        None
    }
    /// Rendered after the terminal event.
    fn render_end(&mut self) -> Option<String> {
        None
    }
}

/// A run's log as an event stream; with `window`, in batches of that duration.
pub(crate) fn stream(
    guard: StreamGuard,
    follower: Follower,
    renderer: impl EventRenderer,
    window: Option<Duration>,
) -> Response {
    let streaming = EventStream {
        follower,
        renderer,
        batch: window.map(Batch::new),
        pending: Vec::new().into_iter(),
        page_room: None,
        state_room: None,
        ended: false,
    };
    let frames = stream::unfold(streaming, |mut streaming| async move {
        let chunk = streaming.chunk().await?;
        Some((chunk, streaming))
    });
    response(guard, frames)
}

/// The headers of every event stream. The stream ends when the reader's credential ends.
pub(crate) fn response(
    guard: StreamGuard,
    frames: impl Stream<Item = impl Into<Bytes> + 'static> + Send + 'static,
) -> Response {
    let frames = while_allowed(guard, frames.map(Into::into), CREDENTIAL_ENDED_FRAME);
    let bytes = frames.map(Ok::<_, Infallible>);
    let mut response = Body::from_stream(bytes).into_response();
    let headers = response.headers_mut();
    let set = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // nginx and similar proxies would otherwise buffer frames.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(crate) const KEEP_ALIVE_FRAME: &str = ":keepalive\n\n";
/// A comment. A client that reconnects gets the exact reason as an error.
const CREDENTIAL_ENDED_FRAME: &str = ":the key or session of this stream has ended\n\n";

pub(crate) fn next_keep_alive() -> Instant {
    Instant::now() + KEEP_ALIVE
}

pub(crate) fn write_frame(out: &mut String, id: Option<Seq>, name: &str, data: &str) {
    if let Some(id) = id {
        let _ = writeln!(out, "id: {id}");
    }
    let _ = write!(out, "event: {name}\ndata: {data}\n\n");
}

struct EventStream<S> {
    follower: Follower,
    renderer: S,
    batch: Option<Batch>,
    /// Events that were read from the log and not yet rendered.
    pending: std::vec::IntoIter<RecordedEvent>,
    /// The room in memory of `pending` and of what is rendered from it.
    page_room: Option<Arc<HeldShare>>,
    /// The same for the renderer's state.
    state_room: Option<Arc<HeldShare>>,
    ended: bool,
}

impl<S: EventRenderer> EventStream<S> {
    /// The next bytes; `None` at the end.
    async fn chunk(&mut self) -> Option<Bytes> {
        let mut out = String::new();
        // Set once per chunk: events that this reader is not shown must not delay the keep-alive.
        let keep_alive = next_keep_alive();
        loop {
            self.render_pending(&mut out);
            if self.ended || !out.is_empty() {
                break;
            }
            // Everything of the page is handed over.
            self.page_room = None;
            let flush_at = self.batch.as_ref().and_then(Batch::due);
            let update = self.follower.next(flush_at.unwrap_or(keep_alive)).await;
            match update {
                Ok(FollowUpdate::Events(events, room)) => {
                    self.pending = events.into_iter();
                    self.page_room = room.map(Arc::new);
                    if !self.make_room_for_state().await {
                        tracing::debug!("event stream ended: no room for its state");
                        self.end(&mut out);
                    }
                }
                Ok(FollowUpdate::TimedOut) => match &mut self.batch {
                    Some(batch) if flush_at.is_some() => batch.flush(&mut out),
                    _ => out.push_str(KEEP_ALIVE_FRAME),
                },
                Ok(FollowUpdate::Ended) => {
                    self.end(&mut out);
                    out.extend(self.renderer.render_end());
                }
                Ok(FollowUpdate::Draining) => self.end(&mut out),
                Err(fault) => {
                    // The reader reconnects with its last id and misses nothing.
                    tracing::warn!(cause = %fault, "event stream ended by a fault");
                    self.end(&mut out);
                }
            }
        }
        if out.is_empty() {
            return None;
        }
        if !self.try_room_for_chunk(&mut out) {
            tracing::debug!("event stream ended: no room for what it renders");
            self.ended = true;
            return None;
        }
        Some(self.counted(out))
    }

    /// The chunk, with the room it takes: until it is written, its page and state count.
    fn counted(&self, out: String) -> Bytes {
        let rooms = [&self.page_room, &self.state_room].into_iter().flatten();
        rooms.fold(Bytes::from(out), counted)
    }

    /// Room for the renderer's state. `false` if there is none: a reader that reconnects continues when
    /// others have ended.
    async fn make_room_for_state(&mut self) -> bool {
        let bytes = self.renderer.state_bytes();
        match &self.state_room {
            _ if bytes <= SMALL_PAGE_BYTES => true,
            Some(room) => room.try_grow(bytes),
            None => {
                self.state_room = self.follower.room_for(bytes).await.map(Arc::new);
                self.state_room.is_some()
            }
        }
    }

    /// Room for a large chunk, and for the state it was rendered from. `false` if there is none now: the
    /// chunk is in memory already, so it must not wait.
    fn try_room_for_chunk(&mut self, out: &mut String) -> bool {
        let beyond_page = out.len().saturating_sub(CHUNK_BYTES);
        let bytes = beyond_page + self.renderer.state_bytes();
        if bytes <= SMALL_PAGE_BYTES {
            return true;
        }
        out.shrink_to_fit();
        match &self.state_room {
            Some(room) => room.try_grow(bytes),
            None => {
                self.state_room = self.follower.try_room_for(bytes).map(Arc::new);
                self.state_room.is_some()
            }
        }
    }

    /// Renders pending events until one chunk is full.
    fn render_pending(&mut self, out: &mut String) {
        while out.len() < CHUNK_BYTES
            && let Some(recorded) = self.pending.next()
        {
            let frame = self.renderer.render(&recorded);
            self.write(frame, out);
            if self.pending.as_slice().is_empty() {
                let frame = self.renderer.render_page_end();
                self.write(frame, out);
            }
        }
    }

    fn write(&mut self, frame: Option<Frame>, out: &mut String) {
        let Some(frame) = frame else {
            return;
        };
        match &mut self.batch {
            Some(batch) => batch.take(frame, out),
            None => write_frame(out, Some(frame.seq), frame.name, &frame.data),
        }
    }

    fn end(&mut self, out: &mut String) {
        self.ended = true;
        if let Some(batch) = &mut self.batch {
            batch.flush(out);
        }
    }
}

/// Frames delayed until their window closes.
struct Batch {
    window: Duration,
    held: Vec<Frame>,
    bytes: usize,
    due: Option<Instant>,
}

impl Batch {
    fn new(window: Duration) -> Self {
        Self {
            window,
            held: Vec::new(),
            bytes: 0,
            due: None,
        }
    }

    fn due(&self) -> Option<Instant> {
        self.due
    }

    fn take(&mut self, frame: Frame, out: &mut String) {
        let urgent = frame.urgent;
        self.bytes += frame.data.len();
        self.held.push(frame);
        if urgent || self.bytes >= CHUNK_BYTES {
            self.flush(out);
        } else if self.due.is_none() {
            self.due = Some(Instant::now() + self.window);
        }
    }

    /// Writes all delayed frames as one frame, with the id of the newest event.
    fn flush(&mut self, out: &mut String) {
        self.due = None;
        self.bytes = 0;
        let held = std::mem::take(&mut self.held);
        let Some(newest) = held.last().map(|frame| frame.seq) else {
            return;
        };
        let items: Vec<String> = held.into_iter().map(|frame| frame.data).collect();
        write_frame(
            out,
            Some(newest),
            "batch",
            &format!("[{}]", items.join(",")),
        );
    }
}
