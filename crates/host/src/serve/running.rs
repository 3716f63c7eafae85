//! A server that accepts requests, from its first connection to the closed store.

use super::open::ServerContext;
use super::{http, maintenance};
#[cfg(feature = "otel")]
use crate::telemetry;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Time for open connections to end after a request to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for running effects to end after that.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct RunningServer {
    context: ServerContext,
    http_server: http::HttpServer,
    maintenance: [JoinHandle<()>; 2],
    #[cfg(feature = "otel")]
    exporter: Option<telemetry::Exporter>,
}

impl RunningServer {
    /// Starts accepting. A server that cannot is closed again.
    pub(crate) async fn start(
        context: ServerContext,
        listener: TcpListener,
        large_requests: Handle,
    ) -> anyhow::Result<Self> {
        let runtime = context.runtime.clone();
        let started = Self::accept(context, listener, large_requests).await;
        if started.is_err() {
            runtime.shutdown(Duration::ZERO).await;
        }
        started
    }

    async fn accept(
        context: ServerContext,
        listener: TcpListener,
        large_requests: Handle,
    ) -> anyhow::Result<Self> {
        #[cfg(feature = "otel")]
        let exporter = telemetry::start(&context)?;
        let http_server = http::open(&context, listener, large_requests).await?;
        let (runtime, audit_signer) = (&context.runtime, &context.audit_signer);
        let maintenance = [
            tokio::spawn(maintenance::expire_idempotency_records(runtime.clone())),
            tokio::spawn(maintenance::seal_audit(
                runtime.clone(),
                Arc::clone(audit_signer),
            )),
        ];
        Ok(Self {
            http_server,
            maintenance,
            #[cfg(feature = "otel")]
            exporter,
            context,
        })
    }

    pub(crate) fn context(&self) -> &ServerContext {
        &self.context
    }

    /// Resolves only if serving fails.
    pub(crate) async fn ended(&mut self) -> anyhow::Error {
        let ended = self.http_server.ended().await;
        ended.context("the server stopped listening")
    }

    /// Accepts no new connection, finishes what is under way, and closes the store.
    pub(crate) async fn stop(self) {
        self.http_server.close(DRAIN_TIMEOUT).await;
        self.maintenance.iter().for_each(JoinHandle::abort);
        #[cfg(feature = "otel")]
        if let Some(exporter) = self.exporter {
            exporter.finish().await;
        }
        self.context.runtime.shutdown(FINISH_TIMEOUT).await;
    }
}
