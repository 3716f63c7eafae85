//! Connections: their number, their timeouts, and serving HTTP on each.
//!
//! Requests have no timers of their own: a connection records what it waits for and since when, and
//! one sweep per second closes connections that took too long.

mod descriptors;
mod eviction;
mod phase;
mod table;
#[cfg(test)]
mod tests;
mod tracked_io;

pub(crate) use descriptors::raise_descriptor_limit;

use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use table::{ConnectionSlot, ConnectionTable};
use tandem_api::VerbRouter;
use tandem_app::ShareLimits;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tower::Service as _;
use tracked_io::{RequestBody, ResponseBody, Socket};

/// Time between two sweeps for overdue connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a failed accept, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time between two equal log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum size of all headers of a request; also the size of the write buffer.
const BUFFER_BYTES: usize = 64 * 1024;

/// Limits of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Connections at once.
    pub(crate) max: usize,
    /// Connections at once from one address that is not loopback.
    pub(crate) max_per_address: usize,
    /// Connections with requests in progress of one tenant.
    pub(crate) max_per_tenant: usize,
    /// The same of one key.
    pub(crate) max_per_key: usize,
    /// From the start of a connection, or the first byte of a request, to the end of its headers.
    pub(crate) header_timeout: Duration,
    /// Between two requests.
    pub(crate) idle_timeout: Duration,
    /// For a peer to accept any of the bytes written to it.
    pub(crate) write_timeout: Duration,
}

impl ConnectionLimits {
    fn shares(&self) -> ShareLimits {
        ShareLimits {
            total: self.max,
            max_per_tenant: self.max_per_tenant,
            max_per_key: self.max_per_key,
        }
    }
}

/// Accepts and serves until `stopping` is true and every connection has ended.
pub(super) async fn serve(
    listener: TcpListener,
    app: VerbRouter,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let table = ConnectionTable::new(limits);
    let _abort_on_drop = AbortOnDrop(Arc::clone(&table));
    // Each connection holds a receiver; the last one dropped closes the channel.
    let (all_ended, connected) = watch::channel(());
    let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut log_throttle = LogThrottle::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => match table.admit(peer.ip()) {
                    Some(slot) => {
                        let id = slot.id;
                        let serving = handle_connection(socket, peer, slot, app.clone(), stopping.clone());
                        let connected = connected.clone();
                        let task = tokio::spawn(async move {
                            serving.await;
                            drop(connected);
                        });
                        table.started(id, task.abort_handle());
                    }
                    None => log_throttle.log(|| {
                        tracing::warn!(
                            "connections are refused: the maximum number has requests in progress"
                        );
                    }),
                },
                Err(error) => {
                    // Most likely no descriptors are left, or the peer has already disconnected.
                    if !is_peer_error(&error) {
                        log_throttle.log(|| {
                            tracing::warn!(%error, "connections cannot be accepted");
                        });
                        table.evict_waiting();
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            },
            _ = sweep.tick() => table.close_overdue(),
            () = stop_requested(&mut stopping) => break,
        }
    }
    drop(listener);
    drop(connected);
    table.close_without_request();
    loop {
        tokio::select! {
            () = all_ended.closed() => return,
            _ = sweep.tick() => {
                table.close_without_request();
                table.close_overdue();
            }
        }
    }
}

async fn stop_requested(stopping: &mut watch::Receiver<bool>) {
    // A dropped sender means the same.
    let _ = stopping.wait_for(|stop| *stop).await;
}

fn is_peer_error(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Aborts running connections when the serve future is dropped.
struct AbortOnDrop(Arc<ConnectionTable>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Default)]
struct LogThrottle {
    last: Option<Instant>,
}

impl LogThrottle {
    fn log(&mut self, write: impl FnOnce()) {
        let now = Instant::now();
        if self.last.is_none_or(|last| now - last >= LOG_INTERVAL) {
            self.last = Some(now);
            write();
        }
    }
}

/// A request arrived after its connection was chosen for closing.
#[derive(Debug, thiserror::Error)]
#[error("the connection is being closed")]
struct ConnectionClosing;

/// The HTTP library reads a little more than its buffer at once, so the bound is checked again.
fn header_bytes<B>(request: &Request<B>) -> usize {
    let headers = request.headers().iter();
    let fields = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let target = request.uri().path_and_query();
    fields.sum::<usize>() + target.map_or(0, |target| target.as_str().len())
}

/// Serves one connection to its end.
async fn handle_connection(
    socket: TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
    app: VerbRouter,
    mut stopping: watch::Receiver<bool>,
) {
    // Events are small and must be sent at once.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let slot = Arc::new(slot);
    let connection = Arc::clone(&slot.connection);
    let key = slot.key();
    let service = service_fn(|mut request: Request<Incoming>| {
        let connection = Arc::clone(&connection);
        let accepted = connection.begin(!request.body().is_end_stream());
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(key.clone());
        let request =
            request.map(|body| Body::new(RequestBody::new(body, Arc::clone(&connection))));
        let mut app = app.clone();
        async move {
            if !accepted {
                return Err(ConnectionClosing);
            }
            if header_bytes(&request) > BUFFER_BYTES {
                let mut refused = Response::new(Body::empty());
                *refused.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                return Ok(refused.map(|body| ResponseBody::new(body, connection)));
            }
            let answer: Response<Body> = match app.call(request).await {
                Ok(answer) => answer,
                Err(never) => match never {},
            };
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                connection.upgraded();
            }
            Ok(answer.map(|body| ResponseBody::new(body, connection)))
        }
    });
    let socket = Socket::new(socket, slot);
    let mut serving = pin!(
        http1::Builder::new()
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(socket, service)
            .with_upgrades()
    );
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        () = stop_requested(&mut stopping) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended early");
    }
}
