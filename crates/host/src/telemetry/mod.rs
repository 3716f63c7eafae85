//! Spans of ended runs, sent to an OpenTelemetry collector. The log is the only source: a run is
//! read once it has ended and its spans are derived from it, so nothing in the path of a run waits
//! for a collector, and exporting a run twice gives the same spans.
//!
//! Best effort by design: what a slow or absent collector does not take is dropped and counted.

mod convert;

use crate::config::{Otel, OtelProtocol};
use crate::serve::Opened;
use anyhow::Context as _;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use std::time::Duration;
use tandem_record::{Event, Recorded, RunId, Seq};
use tandem_runtime::{Fault, PageLimit, Runtime};
use tandem_wire::v1::spans::spans;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Sent together at most; a run with more spans is one larger batch.
const BATCH: usize = 512;
/// How long a span waits for company.
const LINGER: Duration = Duration::from_secs(1);
/// Events of one run that are read for its spans.
const MAX_EVENTS: usize = 50_000;
/// Bytes of a log that spans are made of; what is beyond is not traced.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const PAGE: PageLimit = PageLimit {
    events: 1024,
    bytes: 1024 * 1024,
};
/// How long the last batch may take when the server stops.
const LAST_CALL: Duration = Duration::from_secs(2);
/// Trouble is logged once per this time, not once per batch.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// The exporting task of this process.
pub(crate) struct Exporter {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Starts exporting, if the configuration asks for it.
pub(crate) fn start(opened: &Opened) -> anyhow::Result<Option<Exporter>> {
    let Some(otel) = &opened.settings.otel else {
        return Ok(None);
    };
    let outlet = outlet(otel, &opened.settings.host_id)?;
    let (stop, stopped) = oneshot::channel();
    let export = Export {
        runtime: opened.runtime.clone(),
        outlet,
        batch: Vec::new(),
        due: None,
        lost: 0,
        complained: None,
    };
    let task = tokio::spawn(export.run(opened.runtime.ended(), stopped));
    tracing::info!(endpoint = otel.endpoint, "spans of ended runs are exported");
    Ok(Some(Exporter { stop, task }))
}

fn outlet(otel: &Otel, host_id: &str) -> anyhow::Result<SpanExporter> {
    let protocol = match otel.protocol {
        OtelProtocol::Protobuf => Protocol::HttpBinary,
        OtelProtocol::Json => Protocol::HttpJson,
    };
    // The exporter builds an HTTP client, which needs a TLS provider to exist.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut outlet = SpanExporter::builder()
        .with_http()
        .with_endpoint(&otel.endpoint)
        .with_protocol(protocol)
        .build()
        .context("spans cannot be exported")?;
    let mut resource = Resource::builder().with_attributes([
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", host_id.to_owned()),
    ]);
    // The environment may name the service; the builder has read it already.
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("tandem");
    }
    outlet.set_resource(&resource.build());
    Ok(outlet)
}

impl Exporter {
    /// Sends what is there, within limits, and ends.
    pub(crate) async fn finish(self) {
        let _ = self.stop.send(());
        let task = self.task.abort_handle();
        if tokio::time::timeout(LAST_CALL, self.task).await.is_err() {
            task.abort();
        }
    }
}

struct Export {
    runtime: Runtime,
    outlet: SpanExporter,
    batch: Vec<SpanData>,
    /// When the batch goes, full or not.
    due: Option<Instant>,
    /// Runs not exported since the last complaint.
    lost: u64,
    complained: Option<Instant>,
}

impl Export {
    async fn run(
        mut self,
        mut ended: broadcast::Receiver<RunId>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        loop {
            let due = self.due;
            let linger = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                run = ended.recv() => match run {
                    Ok(run) => self.add(&run).await,
                    Err(RecvError::Lagged(missed)) => self.complain(missed, "they end too fast"),
                    Err(RecvError::Closed) => break,
                },
                () = linger => self.flush().await,
                _ = &mut stopped => break,
            }
        }
        loop {
            match ended.try_recv() {
                Ok(run) => self.add(&run).await,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.flush().await;
    }

    async fn add(&mut self, run: &RunId) {
        match self.spans_of(run).await {
            Ok(spans) => self.batch.extend(spans),
            Err(fault) => self.complain(1, &fault.message),
        }
        if self.batch.len() >= BATCH {
            self.flush().await;
        } else if !self.batch.is_empty() {
            self.due.get_or_insert(Instant::now() + LINGER);
        }
    }

    async fn spans_of(&self, run: &RunId) -> Result<Vec<SpanData>, Fault> {
        let mut events: Vec<Recorded> = Vec::new();
        let (mut after, mut bytes): (Option<Seq>, usize) = (None, 0);
        while events.len() < MAX_EVENTS {
            let Some(page) = self.runtime.event_page(run, after, PAGE).await? else {
                break;
            };
            after = page.events.last().map(|recorded| recorded.seq);
            bytes += page.bytes;
            let last = after.is_none() || after >= Some(page.head) || bytes > MAX_BYTES;
            events.extend(page.events);
            if last {
                break;
            }
        }
        let Some(Event::RunStarted {
            workflow_id,
            request,
            ..
        }) = events.first().map(|r| &r.event)
        else {
            return Ok(Vec::new());
        };
        // Whoever began the trace decides whether it is recorded.
        let trace = request.trace.as_ref();
        if trace.is_some_and(|trace| !convert::is_sampled(&trace.traceparent)) {
            return Ok(Vec::new());
        }
        let class = self.class_of(run).await?;
        let spans = spans(run, workflow_id, class.as_deref(), &events);
        Ok(spans.into_iter().filter_map(convert::span_data).collect())
    }

    /// What the run's workflow says its data is about.
    async fn class_of(&self, run: &RunId) -> Result<Option<String>, Fault> {
        let Some(stored) = self.runtime.find_any_run(run).await? else {
            return Ok(None);
        };
        let unfolded = self.runtime.unfolded(&stored).await?;
        Ok(unfolded.0.definition().sensitivity.class.clone())
    }

    async fn flush(&mut self) {
        self.due = None;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return;
        }
        let runs = batch
            .iter()
            .filter(|span| span.name == "openwop.run")
            .count();
        if let Err(error) = self.outlet.export(batch).await {
            self.complain(runs as u64, &error.to_string());
        }
    }

    fn complain(&mut self, runs: u64, why: &str) {
        self.lost += runs;
        let recently = |at: Instant| at.elapsed() < COMPLAIN_EVERY;
        if self.complained.is_some_and(recently) {
            return;
        }
        tracing::warn!(
            runs = self.lost,
            "spans of ended runs were not exported: {why}"
        );
        self.lost = 0;
        self.complained = Some(Instant::now());
    }
}
