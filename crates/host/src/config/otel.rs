//! Where spans and metrics are exported to, as OTLP over HTTP.

use crate::failure::Failure;
use serde::Deserialize;
use std::time::Duration;
use url::Url;

/// The default of OpenTelemetry.
const DEFAULT_INTERVAL_MS: u64 = 60_000;
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 100..=3_600_000;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OtelLayer {
    pub(crate) endpoint: Option<String>,
    /// Used unchanged, for traces only.
    pub(crate) traces_endpoint: Option<String>,
    /// Used unchanged, for metrics only.
    pub(crate) metrics_endpoint: Option<String>,
    pub(crate) metrics_interval_ms: Option<u64>,
    pub(crate) protocol: Option<OtelProtocol>,
}

impl OtelLayer {
    pub(super) fn over(self, below: Self) -> Self {
        // A general endpoint in this layer must override a specific one in the layer below.
        let below = match self.endpoint {
            Some(_) => Self {
                traces_endpoint: None,
                metrics_endpoint: None,
                ..below
            },
            None => below,
        };
        Self {
            endpoint: self.endpoint.or(below.endpoint),
            traces_endpoint: self.traces_endpoint.or(below.traces_endpoint),
            metrics_endpoint: self.metrics_endpoint.or(below.metrics_endpoint),
            metrics_interval_ms: self.metrics_interval_ms.or(below.metrics_interval_ms),
            protocol: self.protocol.or(below.protocol),
        }
    }
}

/// The export settings. At least one of the endpoints is set; both are complete URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Otel {
    pub(crate) traces_endpoint: Option<String>,
    pub(crate) metrics_endpoint: Option<String>,
    pub(crate) metrics_interval: Duration,
    pub(crate) protocol: OtelProtocol,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum OtelProtocol {
    #[default]
    #[serde(rename = "http/protobuf")]
    Protobuf,
    #[serde(rename = "http/json")]
    Json,
}

impl OtelProtocol {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Protobuf => "http/protobuf",
            Self::Json => "http/json",
        }
    }
}

pub(super) fn resolve(layer: OtelLayer) -> Result<Option<Otel>, Failure> {
    let base = layer.endpoint.as_deref();
    let below = |path: &str| base.map(|base| format!("{}{path}", base.trim_end_matches('/')));
    let traces_endpoint = layer.traces_endpoint.or_else(|| below("/v1/traces"));
    let metrics_endpoint = layer.metrics_endpoint.or_else(|| below("/v1/metrics"));
    if traces_endpoint.is_none() && metrics_endpoint.is_none() {
        return Ok(None);
    }
    for endpoint in traces_endpoint.iter().chain(&metrics_endpoint) {
        check_endpoint(endpoint)?;
    }
    let interval_ms = layer.metrics_interval_ms.unwrap_or(DEFAULT_INTERVAL_MS);
    if !INTERVAL_MS.contains(&interval_ms) {
        return Err(Failure::new(
            format!("metrics cannot be exported every {interval_ms} ms"),
            format!(
                "Set OTEL_METRIC_EXPORT_INTERVAL to a number of milliseconds from {} to {}.",
                INTERVAL_MS.start(),
                INTERVAL_MS.end()
            ),
        ));
    }
    if cfg!(not(feature = "otel")) {
        return Err(Failure::new(
            "this build cannot export spans or metrics: it was made without the feature `otel`",
            "Unset OTEL_EXPORTER_OTLP_ENDPOINT, or build with default features.",
        ));
    }
    Ok(Some(Otel {
        traces_endpoint,
        metrics_endpoint,
        metrics_interval: Duration::from_millis(interval_ms),
        protocol: layer.protocol.unwrap_or_default(),
    }))
}

fn check_endpoint(endpoint: &str) -> Result<(), Failure> {
    let usable = Url::parse(endpoint).is_ok_and(|u| matches!(u.scheme(), "http" | "https"));
    if usable {
        return Ok(());
    }
    Err(Failure::new(
        format!("{endpoint:?} is not an OTLP endpoint: it must be an http or https address"),
        "Set OTEL_EXPORTER_OTLP_ENDPOINT to something like http://localhost:4318, or unset it.",
    ))
}
