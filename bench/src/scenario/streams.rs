//! Many subscribers of one busy run. Each must get every event of the log, in order, and the end.

use crate::client::{Connection, Failure, create, find, get, request, text_field};
use crate::options::Options;
use crate::server::Server;
use crate::workflows::QUIET_MS;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TIMEOUT: Duration = Duration::from_secs(90);

pub(crate) struct Streams {
    pub(crate) subscribers: usize,
    pub(crate) events: usize,
    pub(crate) complete: bool,
    /// Delivered to all subscribers together, from the first busy moment to the end of the last
    /// stream.
    pub(crate) per_second: f64,
}

pub(crate) async fn measure(server: &Server, options: &Options) -> Result<Streams, Failure> {
    let mut connection = Connection::open(server.address).await?;
    let made = connection.exchange(&create("bench-stream")).await?;
    let began = Instant::now();
    let run = text_field(made.body, "runId").ok_or("no run was created")?;
    let path = format!("/v1/runs/{run}/events?streamMode=debug");
    let readers: Vec<_> = (0..options.subscribers)
        .map(|_| tokio::spawn(follow(server.address, path.clone())))
        .collect();
    let mut counts = Vec::new();
    for reader in readers {
        counts.push(reader.await??);
    }
    let busy = began
        .elapsed()
        .saturating_sub(Duration::from_millis(QUIET_MS));
    let log = connection.exchange(&get(&path)).await?;
    let log: serde_json::Value = serde_json::from_slice(log.body)?;
    let events = log["events"].as_array().map_or(0, Vec::len);
    let delivered: usize = counts.iter().sum();
    Ok(Streams {
        subscribers: options.subscribers,
        events,
        complete: events > 0 && counts.iter().all(|count| *count == events),
        per_second: delivered as f64 / busy.as_secs_f64(),
    })
}

/// Reads one stream to its end; returns the number of events, whose ids must be 0, 1, 2, …
async fn follow(address: SocketAddr, path: String) -> Result<usize, Failure> {
    let mut stream = Connection::open(address).await?.into_stream();
    let request_bytes = request("GET", &path, "text/event-stream", "");
    stream.write_all(&request_bytes).await?;
    let mut buffer = Vec::with_capacity(16 * 1024);
    let mut count = 0;
    let reading = async {
        loop {
            let ended = stream.read_buf(&mut buffer).await? == 0;
            count += take_ids(&mut buffer, count)?;
            // The connection stays open after the body; the empty chunk ends it.
            if ended || buffer.ends_with(b"0\r\n\r\n") {
                return Ok::<(), Failure>(());
            }
        }
    };
    tokio::time::timeout(TIMEOUT, reading).await??;
    Ok(count)
}

/// Counts the `id:` lines and drops what was read, except for an incomplete last line. Chunk
/// boundaries are between frames and can be ignored.
fn take_ids(buffer: &mut Vec<u8>, first: usize) -> Result<usize, Failure> {
    let mut count = 0;
    let mut at = 0;
    while let Some(end) = find(&buffer[at..], b"\n") {
        let line = buffer[at..at + end].trim_ascii();
        at += end + 1;
        if let Some(id) = line.strip_prefix(b"id:") {
            let id: usize = std::str::from_utf8(id)?.trim().parse()?;
            if id != first + count {
                return Err(format!("event {id} came where {} was due", first + count).into());
            }
            count += 1;
        }
    }
    // Keep the last five bytes, to recognise the empty chunk.
    let keep = at.min(buffer.len().saturating_sub(5));
    buffer.drain(..keep);
    Ok(count)
}
