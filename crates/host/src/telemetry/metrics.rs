//! Exports the metrics at an interval. They are read from the same registry as `/metrics` and get
//! the protocol's names: `openwop_run_duration_seconds` becomes `openwop.run.duration` in `s`.

use super::exposition::{self, Kind, Metric, Sample};
use super::{resource, stop_requested};
use crate::config::{Otel, OtelProtocol};
use crate::serve::ServerContext;
use anyhow::Context as _;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as OtlpMetric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tandem_api::HttpMetrics;
use tandem_app::WaitingWork;
use tandem_runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// An export that takes longer is dropped.
const TIMEOUT: Duration = Duration::from_secs(10);
const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

struct Export {
    runtime: Runtime,
    metrics: Arc<HttpMetrics>,
    client: reqwest::Client,
    endpoint: String,
    protocol: OtelProtocol,
    resource: Resource,
    began: u64,
    failing: bool,
}

pub(super) fn start(
    opened: &ServerContext,
    otel: &Otel,
    endpoint: &str,
    mut stopped: watch::Receiver<bool>,
) -> anyhow::Result<JoinHandle<()>> {
    let client = reqwest::Client::builder().timeout(TIMEOUT).build();
    let mut export = Export {
        runtime: opened.runtime.clone(),
        metrics: Arc::clone(&opened.metrics),
        client: client.context("metrics cannot be exported")?,
        endpoint: endpoint.to_owned(),
        protocol: otel.protocol,
        resource: Resource {
            attributes: attributes(&resource(&opened.host_id)),
            ..Resource::default()
        },
        began: nanoseconds_now(),
        failing: false,
    };
    let interval = otel.metrics_interval;
    tracing::info!(endpoint, ?interval, "metrics are exported");
    Ok(tokio::spawn(async move {
        loop {
            let last = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                () = stop_requested(&mut stopped) => true,
            };
            export.attempt().await;
            if last {
                return;
            }
        }
    }))
}

impl Export {
    async fn attempt(&mut self) {
        let outcome = self.send().await;
        // A failure is logged when it begins, not at every interval.
        if let Err(error) = &outcome
            && !self.failing
        {
            tracing::warn!("metrics were not exported: {error:#}");
        }
        self.failing = outcome.is_err();
    }

    async fn send(&self) -> anyhow::Result<()> {
        let waiting = WaitingWork::read(&self.runtime).await;
        let waiting = waiting.map_err(|fault| anyhow::anyhow!("{fault}"))?;
        let text = self.metrics.text(&waiting);
        let request = self.request(&exposition::parse(&text));
        let (content_type, body) = match self.protocol {
            OtelProtocol::Protobuf => ("application/x-protobuf", request.encode_to_vec()),
            OtelProtocol::Json => ("application/json", serde_json::to_vec(&request)?),
        };
        let sent = self
            .client
            .post(&self.endpoint)
            .header("content-type", content_type)
            .body(body)
            .send();
        sent.await?.error_for_status()?;
        Ok(())
    }

    fn request(&self, metrics: &[Metric]) -> ExportMetricsServiceRequest {
        let times = (self.began, nanoseconds_now());
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(InstrumentationScope {
                        name: "tandem".to_owned(),
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                        ..InstrumentationScope::default()
                    }),
                    metrics: metrics.iter().map(|m| converted(m, times)).collect(),
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        }
    }
}

/// Start of counting and current time, in nanoseconds.
type Times = (u64, u64);

fn converted(metric: &Metric, times: Times) -> OtlpMetric {
    let unit = metric.unit.as_deref();
    let suffix = unit.map(|unit| format!("_{unit}")).unwrap_or_default();
    let bare = metric.name.strip_suffix(&suffix).unwrap_or(&metric.name);
    let numbers = || metric.samples.iter().map(|s| number(metric, s, times));
    let data = match metric.kind {
        Kind::Gauge => Data::Gauge(Gauge {
            data_points: numbers().collect(),
        }),
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers().collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: histograms(metric, times),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    OtlpMetric {
        name: bare.replace('_', "."),
        description: metric.help.clone(),
        unit: match unit {
            Some("seconds") => "s".to_owned(),
            other => other.unwrap_or_default().to_owned(),
        },
        data: Some(data),
        ..OtlpMetric::default()
    }
}

fn number(metric: &Metric, sample: &Sample, (began, now): Times) -> NumberDataPoint {
    NumberDataPoint {
        attributes: labels(metric, &sample.labels),
        start_time_unix_nano: began,
        time_unix_nano: now,
        value: Some(number_data_point::Value::AsDouble(sample.value)),
        ..NumberDataPoint::default()
    }
}

/// One point for each set of labels besides `le`.
fn histograms(metric: &Metric, (began, now): Times) -> Vec<HistogramDataPoint> {
    let mut points: Vec<(Vec<(String, String)>, HistogramDataPoint)> = Vec::new();
    for sample in &metric.samples {
        let (bounds, series): (Vec<_>, Vec<_>) = sample
            .labels
            .iter()
            .cloned()
            .partition(|(name, _)| name == "le");
        let at = points.iter().position(|(of, _)| *of == series);
        let at = at.unwrap_or_else(|| {
            let point = HistogramDataPoint {
                attributes: labels(metric, &series),
                start_time_unix_nano: began,
                time_unix_nano: now,
                ..HistogramDataPoint::default()
            };
            points.push((series, point));
            points.len() - 1
        });
        let point = &mut points[at].1;
        match sample.suffix.as_str() {
            "_sum" => point.sum = Some(sample.value),
            "_count" => point.count = whole(sample.value),
            "_bucket" => {
                // In the text a bucket includes all lower ones; in OTLP it does not.
                let below: u64 = point.bucket_counts.iter().sum();
                point
                    .bucket_counts
                    .push(whole(sample.value).saturating_sub(below));
                let bound = bounds.first().and_then(|(_, le)| le.parse::<f64>().ok());
                point
                    .explicit_bounds
                    .extend(bound.filter(|b| b.is_finite()));
            }
            _ => {}
        }
    }
    points.into_iter().map(|(_, point)| point).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole, not negative and far below 2^53"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

/// Labels as attributes, with the protocol's names where they exist.
fn labels(metric: &Metric, labels: &[(String, String)]) -> Vec<KeyValue> {
    let named = |name: &str| match (metric.name.as_str(), name) {
        ("openwop_run_completed", "status") => "openwop.run_status".to_owned(),
        _ => name.to_owned(),
    };
    labels
        .iter()
        .map(|(name, value)| attribute(named(name), value.clone()))
        .collect()
}

fn attributes(resource: &opentelemetry_sdk::Resource) -> Vec<KeyValue> {
    resource
        .iter()
        .map(|(key, value)| attribute(key.to_string(), value.to_string()))
        .collect()
}

fn attribute(key: String, value: String) -> KeyValue {
    KeyValue {
        key,
        value: Some(AnyValue {
            value: Some(Value::StringValue(value)),
        }),
        ..KeyValue::default()
    }
}

fn nanoseconds_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}
