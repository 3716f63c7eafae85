//! Reads the event stream of a run or a session to its end, with as many connections as needed. The
//! cursor is the last id received, so a dropped connection costs time and never an event.

use super::sse::{Frame, Parser};
use super::{Client, ErrorResponse, encode_segment};
use crate::output;
use reqwest::Response;
use reqwest::header::ACCEPT;
use std::collections::VecDeque;
use std::time::Duration;

/// Consecutive connections without a frame before giving up.
const MAX_IDLE_CONNECTIONS: u32 = 30;
/// A stream sends an event or a keep-alive at least every 30 s.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(75);

/// What is followed.
enum Followed {
    Run { id: String, mode: &'static str },
    Session { id: String },
}

pub(crate) struct Follower {
    client: Client,
    followed: Followed,
    cursor: Option<String>,
    connection: Option<(Response, Parser)>,
    received: VecDeque<Frame>,
    /// Connections since the last frame.
    idle: u32,
    /// It had ended before this connection was opened: the end of the stream is the end of all.
    ended: bool,
}

impl Follower {
    pub(crate) fn of_run(client: &Client, run: &str, mode: &'static str) -> Self {
        let id = run.to_owned();
        Self::new(client, Followed::Run { id, mode }, None)
    }

    /// Follows a session from after a sequence; `None` for all of it.
    pub(crate) fn of_session(client: &Client, session: &str, after: Option<u64>) -> Self {
        let id = session.to_owned();
        let cursor = after.map(|sequence| sequence.to_string());
        Self::new(client, Followed::Session { id }, cursor)
    }

    fn new(client: &Client, followed: Followed, cursor: Option<String>) -> Self {
        Self {
            client: client.clone(),
            followed,
            cursor,
            connection: None,
            received: VecDeque::new(),
            idle: 0,
            ended: false,
        }
    }

    /// The next frame; `None` when the run or session has ended and everything was delivered.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.received.pop_front() {
                self.idle = 0;
                self.cursor = frame.id.clone().or(self.cursor.take());
                self.ended |= is_terminal(&frame);
                return Ok(Some(frame));
            }
            if self.connection.is_none() {
                self.connect().await?;
            }
            if !self.read().await && self.ended {
                return Ok(None);
            }
        }
    }

    /// `false` when the connection has ended.
    async fn read(&mut self) -> bool {
        let Some((response, parser)) = &mut self.connection else {
            return false;
        };
        match tokio::time::timeout(SILENCE_TIMEOUT, response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                self.received.extend(parser.feed(&bytes));
                true
            }
            Ok(Ok(None) | Err(_)) | Err(_) => {
                self.connection = None;
                false
            }
        }
    }

    async fn connect(&mut self) -> anyhow::Result<()> {
        if self.idle > 0 {
            let pause = Duration::from_millis(100 << self.idle.min(5));
            tokio::time::sleep(pause).await;
            // The stream closed without a terminal event: either all has ended, or the connection
            // dropped.
            self.ended = self.followed.has_ended(&self.client).await;
        }
        self.idle += 1;
        match self.open().await {
            Ok(response) => {
                self.connection = Some((response, Parser::default()));
                Ok(())
            }
            Err(error) if self.is_final(&error) => Err(error),
            Err(_) => {
                if self.idle == 1 {
                    output::note("connection lost, trying again …");
                }
                Ok(())
            }
        }
    }

    async fn open(&self) -> anyhow::Result<Response> {
        let url = self.client.url(&self.followed.events());
        let request = self.client.http.get(url);
        let mut request = request.header(ACCEPT, "text/event-stream");
        if let Some(cursor) = &self.cursor {
            request = request.header("Last-Event-ID", cursor);
        }
        self.client.send(request).await
    }

    /// Refusals are final, unless the server is only busy. A failure of the first connection is
    /// final too.
    fn is_final(&self, error: &anyhow::Error) -> bool {
        let at_once = match error.downcast_ref::<ErrorResponse>() {
            Some(response) => response.status < 500 && response.status != 429,
            None => self.cursor.is_none(),
        };
        at_once || self.idle > MAX_IDLE_CONNECTIONS
    }
}

impl Followed {
    /// The stream of its events.
    fn events(&self) -> String {
        match self {
            Self::Run { mode, .. } => format!("{}/events?streamMode={mode}", self.resource()),
            Self::Session { .. } => format!("{}/events", self.resource()),
        }
    }

    fn resource(&self) -> String {
        match self {
            Self::Run { id, .. } => format!("/v1/runs/{}", encode_segment(id)),
            Self::Session { id } => format!("/v1/host/tandem/sessions/{}", encode_segment(id)),
        }
    }

    async fn has_ended(&self, client: &Client) -> bool {
        let shown = client.get(&self.resource()).await.unwrap_or_default();
        match self {
            Self::Run { .. } => matches!(
                shown["status"].as_str(),
                Some("completed" | "failed" | "cancelled")
            ),
            Self::Session { .. } => shown["endedAt"].is_string(),
        }
    }
}

fn is_terminal(frame: &Frame) -> bool {
    matches!(
        frame.event.as_deref(),
        Some("run.completed" | "run.failed" | "run.cancelled" | "session:ended")
    )
}
