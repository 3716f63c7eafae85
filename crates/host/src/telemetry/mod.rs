//! Export to an OpenTelemetry collector: spans of ended runs and the process's metrics, as OTLP
//! over HTTP. Best effort: data that a slow or absent collector does not accept is dropped.

mod convert;
mod exposition;
mod metrics;
mod spans;

use crate::serve::ServerContext;
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Time limit for the last exports when the server stops.
const FINAL_EXPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The exporting tasks of this process.
pub(crate) struct Exporter {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// Starts the export, if it is configured.
pub(crate) fn start(opened: &ServerContext) -> anyhow::Result<Option<Exporter>> {
    let Some(otel) = &opened.settings.otel else {
        return Ok(None);
    };
    // The exporters build HTTP clients, which need a TLS provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (stop, stopped) = watch::channel(false);
    let mut tasks = Vec::new();
    if let Some(endpoint) = &otel.traces_endpoint {
        tasks.push(spans::start(opened, otel, endpoint, stopped.clone())?);
    }
    if let Some(endpoint) = &otel.metrics_endpoint {
        tasks.push(metrics::start(opened, otel, endpoint, stopped)?);
    }
    Ok(Some(Exporter { stop, tasks }))
}

impl Exporter {
    /// Sends the pending data within time limits, and ends.
    pub(crate) async fn finish(self) {
        self.stop.send_replace(true);
        let deadline = tokio::time::Instant::now() + FINAL_EXPORT_TIMEOUT;
        for mut task in self.tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// Resolves when the server stops.
async fn stop_requested(stopped: &mut watch::Receiver<bool>) {
    // A dropped sender means the same.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// The resource attributes of this process.
fn resource(host_id: &str) -> Resource {
    let mut resource = Resource::builder().with_attributes([
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", host_id.to_owned()),
    ]);
    // The environment may set the service name; the builder has already read it.
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("tandem");
    }
    resource.build()
}
