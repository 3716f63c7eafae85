//! Spans of ended runs. The log is the only source: the log of an ended run is read and its spans
//! are derived from it. So no run waits for a collector, and exporting a run twice gives the same
//! spans.

use super::{convert, resource, stop_requested};
use crate::config::{Otel, OtelProtocol};
use crate::serve::ServerContext;
use anyhow::Context as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use std::time::Duration;
use tandem_record::{Event, RecordedEvent, RunId, Seq};
use tandem_runtime::{Fault, PageLimit, Runtime};
use tandem_wire::v1::spans::spans;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Maximum size of a batch; a run with more spans is one larger batch.
const BATCH: usize = 512;
/// How long a batch waits for more spans.
const LINGER: Duration = Duration::from_secs(1);
/// Events of one run that are read for its spans.
const MAX_EVENTS: usize = 50_000;
/// Bytes of a log that are read for spans; later events are not traced.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const PAGE: PageLimit = PageLimit {
    events: 1024,
    bytes: 1024 * 1024,
};
/// Minimum time between two log lines about failures.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

pub(super) fn start(
    opened: &ServerContext,
    otel: &Otel,
    endpoint: &str,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<JoinHandle<()>> {
    let export = Export {
        runtime: opened.runtime.clone(),
        exporter: exporter(otel, endpoint, &opened.host_id)?,
        batch: Vec::new(),
        due: None,
        lost: 0,
        last_warning: None,
    };
    tracing::info!(endpoint, "spans of ended runs are exported");
    Ok(tokio::spawn(export.run(opened.runtime.ended(), stopped)))
}

fn exporter(otel: &Otel, endpoint: &str, host_id: &str) -> anyhow::Result<SpanExporter> {
    let protocol = match otel.protocol {
        OtelProtocol::Protobuf => Protocol::HttpBinary,
        OtelProtocol::Json => Protocol::HttpJson,
    };
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(endpoint)
        .with_protocol(protocol)
        .build()
        .context("spans cannot be exported")?;
    exporter.set_resource(&resource(host_id));
    Ok(exporter)
}

struct Export {
    runtime: Runtime,
    exporter: SpanExporter,
    batch: Vec<SpanData>,
    /// When the batch is sent, full or not.
    due: Option<Instant>,
    /// Runs not exported since the last log line.
    lost: u64,
    last_warning: Option<Instant>,
}

impl Export {
    async fn run(
        mut self,
        mut ended: broadcast::Receiver<RunId>,
        mut stopped: watch::Receiver<bool>,
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
                    Err(RecvError::Lagged(missed)) => self.warn_lost(missed, "they end too fast"),
                    Err(RecvError::Closed) => break,
                },
                () = linger => self.flush().await,
                () = stop_requested(&mut stopped) => break,
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
            Err(fault) => self.warn_lost(1, &fault.message),
        }
        if self.batch.len() >= BATCH {
            self.flush().await;
        } else if !self.batch.is_empty() {
            self.due.get_or_insert(Instant::now() + LINGER);
        }
    }

    async fn spans_of(&self, run: &RunId) -> Result<Vec<SpanData>, Fault> {
        let mut events: Vec<RecordedEvent> = Vec::new();
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
        // The caller's sampled flag decides whether the trace is exported.
        let trace = request.trace.as_ref();
        if trace.is_some_and(|trace| !convert::is_sampled(&trace.traceparent)) {
            return Ok(Vec::new());
        }
        let class = self.class_of(run).await?;
        let spans = spans(run, workflow_id, class.as_deref(), &events);
        Ok(spans.into_iter().filter_map(convert::span_data).collect())
    }

    /// The data class of the run's workflow.
    async fn class_of(&self, run: &RunId) -> Result<Option<String>, Fault> {
        let Some(stored) = self.runtime.find_any_run(run).await? else {
            return Ok(None);
        };
        let run_fold = self.runtime.run_fold(&stored).await?;
        Ok(run_fold.0.definition().sensitivity.class.clone())
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
        if let Err(error) = self.exporter.export(batch).await {
            self.warn_lost(runs as u64, &error.to_string());
        }
    }

    fn warn_lost(&mut self, runs: u64, why: &str) {
        self.lost += runs;
        let recently = |at: Instant| at.elapsed() < LOG_INTERVAL;
        if self.last_warning.is_some_and(recently) {
            return;
        }
        tracing::warn!(
            runs = self.lost,
            "spans of ended runs were not exported: {why}"
        );
        self.lost = 0;
        self.last_warning = Some(Instant::now());
    }
}
