//! Prometheus metrics of HTTP, beside those of the runtime. Labels are route templates and status
//! classes, so that the number of series is bounded.

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;
use tandem_app::{Metrics, WaitingWork};

/// The names discovery advertises, in the protocol's spelling.
pub(crate) const ADVERTISED: [&str; 16] = [
    "openwop.run.created",
    "openwop.run.completed",
    "openwop.run.active",
    "openwop.run.duration",
    "openwop.node.completed",
    "openwop.node.attempts",
    "openwop.activity.invocations",
    "openwop.activity.duration",
    "openwop.cap.exceeded",
    "openwop.queue.depth",
    "openwop.queue.enqueued",
    "openwop.run.backlog",
    "openwop.run.claim.conflicts",
    "openwop.node.duration",
    "openwop.interrupt.requested",
    "openwop.interrupt.duration",
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabel {
    route: String,
}

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([
            0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
        ])
    }
}

/// All metrics of this process: requests are counted here, the rest by the runtime.
pub struct HttpMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabel, Histogram, Buckets>,
    queue_depth: Gauge,
    parked: Gauge,
}

impl HttpMetrics {
    pub fn new(runtime: &Metrics) -> Self {
        let mut registry = Registry::default();
        runtime.register(&mut registry);
        let requests = Family::<RequestLabels, Counter>::default();
        let seconds = Family::new_with_constructor(Buckets);
        let queue_depth = Gauge::default();
        let parked = Gauge::default();
        registry.register(
            "tandem_http_requests",
            "Requests answered, by route and status class",
            requests.clone(),
        );
        registry.register_with_unit(
            "tandem_http_request_duration",
            "Time to the head of the answer, by route",
            Unit::Seconds,
            seconds.clone(),
        );
        registry.register(
            "openwop_queue_depth",
            "Effects waiting to be performed",
            queue_depth.clone(),
        );
        registry.register(
            "tandem_parked",
            "Timers and effects that wait for somebody to ask for a retry",
            parked.clone(),
        );
        Self {
            registry,
            requests,
            seconds,
            queue_depth,
            parked,
        }
    }

    pub(crate) fn record_response(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        elapsed: Duration,
    ) {
        let labels = RequestLabels {
            method: method_name(method),
            route: route.to_owned(),
            status: class(status),
        };
        self.requests.get_or_create(&labels).inc();
        let route = RouteLabel {
            route: route.to_owned(),
        };
        self.seconds
            .get_or_create(&route)
            .observe(elapsed.as_secs_f64());
    }

    /// All metrics as OpenMetrics text.
    pub fn text(&self, waiting: &WaitingWork) -> String {
        self.parked
            .set(i64::try_from(waiting.parked).unwrap_or(i64::MAX));
        self.queue_depth
            .set(i64::try_from(waiting.queued).unwrap_or(i64::MAX));
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("writing into a string cannot fail");
        out
    }
}

/// Callers can invent method names; unknown ones share one label.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
