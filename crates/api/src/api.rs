//! The configuration of the HTTP API, and the state its handlers share.

use crate::http_metrics::HttpMetrics;
use crate::page_budget::PageBudget;
use crate::request_permits::RequestPermits;
use crate::streams::StreamPermits;
use crate::web_chat::VisitorLimits;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tandem_access::{Keyring, LoginCodes, RateLimiter, Sessions};
use tandem_app::{App, ShareLimits};
use tandem_record::Timestamp;
use tandem_wire::v1::capabilities::WasmPacks;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Everything the host passes in to build the HTTP API.
pub struct ApiConfig {
    /// The use cases. Entry points of one host share them.
    pub app: App,
    pub keyring: Arc<Keyring>,
    /// One-time login codes for the console; the host creates them.
    pub codes: Arc<LoginCodes>,
    pub sessions: Arc<Sessions>,
    pub host: Host,
    pub settings: HttpSettings,
    /// Workflow ids of the protocol's fixtures that this host can run; see
    /// [`crate::runnable_fixtures`].
    pub fixtures: Vec<String>,
    /// May hold metrics of the host; those of the runtime and of HTTP are added.
    pub metrics: Arc<HttpMetrics>,
    /// Becomes true when the host drains: open streams then end, so that their connections can
    /// close.
    pub stopping: watch::Receiver<bool>,
    /// Serves `/v1/host/tandem/test/*` and the protocol's sample test routes.
    pub test_seams: bool,
    pub console: bool,
    /// Serves the ancestry endpoint.
    pub ancestry: bool,
    /// How spans are exported, for discovery; `None` when they are not.
    pub otel: Option<&'static str>,
    /// How nodes of packs are run, for discovery; `None` without packs.
    pub packs: Option<WasmPacks>,
    /// Runs requests with large bodies; see [`crate::large_requests`].
    pub large_requests: Handle,
}

/// How this host identifies itself.
#[derive(Clone, Debug)]
pub struct Host {
    pub name: String,
    pub version: &'static str,
    /// The public URL of the host, without a trailing slash; `None` when it is only reached
    /// locally.
    pub public_url: Option<String>,
}

/// Limits and rates of the HTTP API.
#[derive(Clone, Copy, Debug)]
pub struct HttpSettings {
    pub max_body_bytes: usize,
    /// Sustained requests per second and key; 0 turns the limit off.
    pub requests_per_second: u32,
    pub request_burst: u32,
    /// Failed authentications per second and address.
    pub failures_per_second: u32,
    pub failure_burst: u32,
    /// Mutating requests in progress at once; a further one gets `Retry-After`.
    pub max_mutations: usize,
    /// Time limit for receiving a request body.
    pub body_timeout: Duration,
    /// Event streams and polls open at once.
    pub streams: ShareLimits,
    /// How long stored responses to idempotency keys are kept. The host expires them; this value is
    /// advertised.
    pub idempotency_seconds: u64,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            max_body_bytes: 1024 * 1024,
            // Far above normal use; it stops runaway clients.
            requests_per_second: 20_000,
            request_burst: 40_000,
            failures_per_second: 10,
            failure_burst: 200,
            max_mutations: 1_024,
            body_timeout: Duration::from_secs(30),
            streams: ShareLimits {
                total: 12_288,
                max_per_tenant: 6_144,
                max_per_key: 1_024,
            },
            idempotency_seconds: 24 * 3600,
        }
    }
}

/// The state behind every handler.
pub(crate) type SharedState = Arc<ApiState>;

pub(crate) struct ApiState {
    pub(crate) app: App,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) codes: Arc<LoginCodes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) host: Host,
    pub(crate) settings: HttpSettings,
    pub(crate) fixtures: Vec<String>,
    pub(crate) otel: Option<&'static str>,
    pub(crate) test_seams: bool,
    ancestry: bool,
    pub(crate) packs: Option<WasmPacks>,
    pub(crate) large_requests: Handle,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) requests: RateLimiter,
    pub(crate) failures: RateLimiter,
    pub(crate) streams: Arc<StreamPermits>,
    pub(crate) visitors: Arc<VisitorLimits>,
    pub(crate) pages: PageBudget,
    pub(crate) request_permits: Arc<RequestPermits>,
    pub(crate) metrics: Arc<HttpMetrics>,
    /// The OpenAPI document; set once the routes are known.
    pub(crate) openapi_json: OnceLock<Bytes>,
}

impl ApiState {
    pub(crate) fn new(config: ApiConfig) -> Self {
        let settings = config.settings;
        Self {
            metrics: config.metrics,
            pages: PageBudget::new(config.app.reader_memory()),
            app: config.app,
            keyring: config.keyring,
            codes: config.codes,
            sessions: config.sessions,
            host: config.host,
            settings,
            fixtures: config.fixtures,
            otel: config.otel,
            test_seams: config.test_seams,
            ancestry: config.ancestry,
            packs: config.packs,
            large_requests: config.large_requests,
            stopping: config.stopping,
            requests: RateLimiter::new(settings.requests_per_second, settings.request_burst),
            failures: RateLimiter::new(settings.failures_per_second, settings.failure_burst),
            streams: StreamPermits::new(settings.streams),
            visitors: Arc::default(),
            request_permits: RequestPermits::new(settings.max_mutations),
            openapi_json: OnceLock::new(),
        }
    }

    /// Whether the ancestry endpoint is served. It is part of causation across hosts.
    pub(crate) fn serves_ancestry(&self) -> bool {
        self.ancestry && self.app.agent_policy().crosses_hosts()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.app.now()
    }
}
