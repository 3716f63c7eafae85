//! Reads a run's event stream to its end, with as many connections as needed. The cursor is the
//! last id received, so a dropped connection costs time and never an event.

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

pub(crate) struct Follower {
    client: Client,
    run: String,
    mode: &'static str,
    cursor: Option<String>,
    connection: Option<(Response, Parser)>,
    received: VecDeque<Frame>,
    /// Connections since the last frame.
    idle: u32,
    /// The run had ended before this connection was opened: the end of the stream is the end of the
    /// run.
    ended: bool,
}

impl Follower {
    pub(crate) fn new(client: &Client, run: &str, mode: &'static str) -> Self {
        Self {
            client: client.clone(),
            run: run.to_owned(),
            mode,
            cursor: None,
            connection: None,
            received: VecDeque::new(),
            idle: 0,
            ended: false,
        }
    }

    /// The next frame; `None` when the run has ended and everything was delivered.
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
            // The stream closed without a terminal event: either the run has ended, or the
            // connection dropped.
            self.ended = self.has_ended().await;
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
        let path = format!("/v1/runs/{}/events", encode_segment(&self.run));
        let url = format!("{}?streamMode={}", self.client.url(&path), self.mode);
        let mut request = self
            .client
            .http
            .get(url)
            .header(ACCEPT, "text/event-stream");
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

    async fn has_ended(&self) -> bool {
        let path = format!("/v1/runs/{}", encode_segment(&self.run));
        let snapshot = self.client.get(&path).await.unwrap_or_default();
        matches!(
            snapshot["status"].as_str(),
            Some("completed" | "failed" | "cancelled")
        )
    }
}

fn is_terminal(frame: &Frame) -> bool {
    matches!(
        frame.event.as_deref(),
        Some("run.completed" | "run.failed" | "run.cancelled")
    )
}
