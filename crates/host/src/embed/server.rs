//! A server inside another program, while it runs.

use crate::config::Settings;
use crate::failure::Failure;
use crate::serve::{
    Extensions, LargeRequestThread, RunningServer, ServerContext, Signals, base_url, open_prepared,
    prepare,
};
use std::net::SocketAddr;
use tokio::runtime::Handle;

/// Why a server could not be started, or stopped by itself. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(String);

impl From<anyhow::Error> for ServeError {
    fn from(error: anyhow::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

impl From<Failure> for ServeError {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

/// A running server. Dropping it stops the server in the background; [`shutdown`](Self::shutdown) also waits
/// until the store is closed, so that it can be opened again.
pub struct TandemServer {
    /// `None` while it is stopped.
    running: Option<RunningServer>,
    address: SocketAddr,
    url: String,
    #[expect(dead_code, reason = "held, not read")]
    large_requests: LargeRequestThread,
}

impl TandemServer {
    pub(super) async fn start(
        settings: Settings,
        extensions: Extensions,
    ) -> Result<Self, ServeError> {
        let prepare = async |opened: &ServerContext| prepare(opened).await;
        let (opened, listener, _) = open_prepared(settings, extensions, prepare).await?;
        let (address, url) = (opened.address, base_url(&opened));
        let large_requests = LargeRequestThread::start().map_err(anyhow::Error::from)?;
        let handle = large_requests.handle();
        let running = RunningServer::start(opened, listener, handle).await?;
        tracing::info!(%address, "listening on {url}");
        Ok(Self {
            running: Some(running),
            address,
            url,
            large_requests,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL for clients and browsers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Accepts no new connection, finishes what is under way, and closes the store.
    pub async fn shutdown(mut self) {
        self.stop().await;
    }

    /// Serves until SIGTERM or Ctrl-C, then shuts down.
    pub async fn until_signal(mut self) -> Result<(), ServeError> {
        let mut signals = Signals::listen().map_err(anyhow::Error::from)?;
        let broke = match &mut self.running {
            Some(running) => tokio::select! {
                () = signals.next() => None,
                ended = running.ended() => Some(ended),
            },
            None => None,
        };
        self.stop().await;
        broke.map_or(Ok(()), |ended| Err(ended.into()))
    }

    async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }
}

impl Drop for TandemServer {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        // Outside of a runtime nothing of it is running any more.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(running.stop());
        }
    }
}
