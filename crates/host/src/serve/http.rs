//! The HTTP API of this process: its configuration, start and shutdown.

use super::connections;
use super::{ServerContext, links, packs};
use std::sync::Arc;
use std::time::Duration;
use tandem_access::{Groups, Sessions};
use tandem_api::{ApiConfig, Host, HttpSettings};
use tandem_app::{App, AppConfig};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A console session ends after this idle time.
const SESSION_IDLE_MS: u64 = 12 * 3600 * 1000;

pub(super) struct HttpServer {
    stopping: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

/// Starts accepting.
pub(super) async fn open(
    opened: &ServerContext,
    listener: TcpListener,
    large_requests: Handle,
) -> anyhow::Result<HttpServer> {
    let (stopping, stopped) = watch::channel(false);
    let router = tandem_api::router(api(opened, stopped.clone(), large_requests).await?);
    let limits = opened.connections.limits.clone();
    let serving = connections::serve(listener, router, limits, stopped);
    Ok(HttpServer {
        stopping,
        serving: tokio::spawn(serving),
    })
}

async fn api(
    opened: &ServerContext,
    stopping: watch::Receiver<bool>,
    large_requests: Handle,
) -> anyhow::Result<ApiConfig> {
    let (settings, bounds) = (&opened.settings, &opened.connections);
    let sessions = Arc::new(Sessions::new(SESSION_IDLE_MS));
    let app = App::new(AppConfig {
        runtime: opened.runtime.clone(),
        keyring: Arc::clone(&opened.keyring),
        codes: Arc::clone(&opened.codes),
        sessions: Arc::clone(&sessions),
        groups: Groups::from_names(&settings.groups),
        network_people: opened.settings.notice_people.clone(),
        links: links::signer(&**opened.runtime.store()).await?,
        audit_signer: Arc::clone(&opened.audit_signer),
        host_id: opened.host_id.clone(),
        test_hooks: settings.test_seams,
    });
    Ok(ApiConfig {
        app,
        keyring: Arc::clone(&opened.keyring),
        codes: Arc::clone(&opened.codes),
        sessions,
        host: Host {
            name: "Tandem".to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            public_url: settings.public_url.clone(),
        },
        settings: HttpSettings {
            body_timeout: bounds.body_timeout,
            streams: bounds.streams,
            requests_per_second: bounds.requests_per_second,
            request_burst: bounds.requests_per_second.saturating_mul(2),
            ..HttpSettings::default()
        },
        fixtures: fixtures(opened).await?,
        metrics: Arc::clone(&opened.metrics),
        stopping,
        test_seams: settings.test_seams,
        console: true,
        ancestry: settings.ancestry,
        otel: settings.otel.as_ref().map(|otel| otel.protocol.as_str()),
        packs: opened.packs.as_deref().map(packs::advertised),
        large_requests,
    })
}

/// The protocol's fixtures that this host can run.
async fn fixtures(opened: &ServerContext) -> anyhow::Result<Vec<String>> {
    let has_secret = |id: &str| opened.settings.secrets.contains_key(id);
    Ok(tandem_api::runnable_fixtures(&opened.runtime, has_secret).await?)
}

impl HttpServer {
    /// Resolves only if serving fails.
    pub(super) async fn ended(&mut self) -> anyhow::Error {
        match (&mut self.serving).await {
            Ok(()) => anyhow::anyhow!("the server stopped without a request to stop"),
            Err(error) => error.into(),
        }
    }

    /// Stops accepting, waits for requests and streams to end, and aborts the rest after
    /// `patience`.
    pub(super) async fn close(mut self, patience: Duration) {
        self.stopping.send_replace(true);
        if self.serving.is_finished() {
            return;
        }
        if tokio::time::timeout(patience, &mut self.serving)
            .await
            .is_err()
        {
            tracing::warn!("connections that did not end in time are aborted");
            self.serving.abort();
        }
    }
}
