//! The configuration of the HTTP API, and the state its handlers share.

use crate::http_metrics::HttpMetrics;
use crate::idempotency::InFlight;
use crate::key_use::KeyUse;
use crate::page_budget::PageBudget;
use crate::problem::Problem;
use crate::request_permits::RequestPermits;
use crate::streams::StreamPermits;
use axum::http::request::Parts;
use bytes::Bytes;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tandem_access::{
    Groups, Identity, Keyring, LinkSigner, LoginCodes, RateKey, RateLimiter, Scope, Sessions,
};
use tandem_record::{InterruptId, Object, RunId, Timestamp, WorkspaceId};
use tandem_runtime::audit::AuditSigner;
use tandem_runtime::{InterruptRow, Runtime, StoredRun};
use tandem_wire::v1::capabilities::WasmPacks;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Everything the host passes in to build the HTTP API.
pub struct ApiConfig {
    pub runtime: Runtime,
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
    /// Signs and verifies links to open interrupts.
    pub links: LinkSigner,
    /// Seals the audit log and signs receipts. Sealing is started by the host, not by the API.
    pub audit_signer: Arc<AuditSigner>,
    /// Configured approver groups of every tenant; a tenant's own groups override them.
    pub groups: Groups,
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
    pub host_id: String,
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
    /// Event streams and polls open at once, over all keys.
    pub max_streams: usize,
    pub max_streams_per_key: usize,
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
            max_streams: 12_288,
            max_streams_per_key: 1_024,
            idempotency_seconds: 24 * 3600,
        }
    }
}

/// The state behind every handler.
pub(crate) type SharedState = Arc<ApiState>;

pub(crate) struct ApiState {
    pub(crate) runtime: Runtime,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) codes: Arc<LoginCodes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) host: Host,
    pub(crate) settings: HttpSettings,
    pub(crate) fixtures: Vec<String>,
    pub(crate) otel: Option<&'static str>,
    pub(crate) test_seams: bool,
    ancestry: bool,
    pub(crate) links: LinkSigner,
    pub(crate) audit_signer: Arc<AuditSigner>,
    pub(crate) groups: Groups,
    pub(crate) packs: Option<WasmPacks>,
    pub(crate) large_requests: Handle,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) requests: RateLimiter,
    pub(crate) failures: RateLimiter,
    /// Limits audit entries about denials, by key, so that repeated denials cannot fill the audit
    /// log.
    denials: RateLimiter,
    key_use: KeyUse,
    pub(crate) streams: Arc<StreamPermits>,
    pub(crate) pages: Arc<PageBudget>,
    pub(crate) request_permits: Arc<RequestPermits>,
    pub(crate) in_flight: InFlight,
    pub(crate) metrics: Arc<HttpMetrics>,
    /// The OpenAPI document; set once the routes are known.
    pub(crate) openapi_json: OnceLock<Bytes>,
}

impl ApiState {
    pub(crate) fn new(config: ApiConfig) -> Self {
        let settings = config.settings;
        Self {
            metrics: config.metrics,
            runtime: config.runtime,
            keyring: config.keyring,
            codes: config.codes,
            sessions: config.sessions,
            host: config.host,
            settings,
            fixtures: config.fixtures,
            otel: config.otel,
            test_seams: config.test_seams,
            ancestry: config.ancestry,
            links: config.links,
            audit_signer: config.audit_signer,
            groups: config.groups,
            packs: config.packs,
            large_requests: config.large_requests,
            stopping: config.stopping,
            requests: RateLimiter::new(settings.requests_per_second, settings.request_burst),
            failures: RateLimiter::new(settings.failures_per_second, settings.failure_burst),
            denials: RateLimiter::new(settings.failures_per_second, settings.failure_burst),
            key_use: KeyUse::default(),
            pages: Arc::default(),
            streams: StreamPermits::new(settings.max_streams, settings.max_streams_per_key),
            request_permits: RequestPermits::new(settings.max_mutations),
            in_flight: InFlight::default(),
            openapi_json: OnceLock::new(),
        }
    }

    /// The runtime, acting for a caller.
    pub(crate) fn runtime_of(&self, caller: &Identity) -> Runtime {
        self.runtime.acting_as(caller.actor())
    }

    /// Writes an audit entry that a key is in use.
    pub(crate) async fn audit_key_use(&self, caller: &Identity) {
        if self.key_use.is_first_today(&caller.key_id, self.now()) {
            self.audit(caller, "key.used", Object::new()).await;
        }
    }

    /// Writes an audit entry about the caller's key. A failure is ignored.
    async fn audit(&self, caller: &Identity, action: &str, details: Object) {
        let runtime = self.runtime_of(caller);
        let tenant = Some(&caller.tenant);
        let entry = runtime.record_audit_entry(tenant, action, &caller.key_id, details);
        if let Err(fault) = entry.await {
            tracing::warn!(%fault, action, "the audit entry was not written");
        }
    }

    /// Refuses a caller without the scope, and writes an audit entry about the denial.
    pub(crate) async fn check_scope(
        &self,
        caller: &Identity,
        scope: Scope,
        parts: &Parts,
    ) -> Result<(), Problem> {
        let Err(denied) = caller.require_scope(scope) else {
            return Ok(());
        };
        let now = u64::try_from(self.now().0).unwrap_or(0);
        if self
            .denials
            .check(RateKey::credential(&caller.key_id), now)
            .is_ok()
        {
            let details = Object::from_iter([
                ("scope".to_owned(), json!(scope.as_str())),
                ("method".to_owned(), json!(parts.method.as_str())),
            ]);
            self.audit(caller, "access.denied", details).await;
        }
        Err(denied.into())
    }

    /// Whether the ancestry endpoint is served. It is part of causation across hosts.
    pub(crate) fn serves_ancestry(&self) -> bool {
        self.ancestry && self.runtime.agent_policy().crosses_hosts()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.runtime.clock().now()
    }

    /// The row of a run this caller may see. A run of another tenant is reported like one that does
    /// not exist. A run of another workspace gets its own error, as the protocol requires.
    pub(crate) async fn load_run(
        &self,
        caller: &Identity,
        run: &RunId,
    ) -> Result<StoredRun, Problem> {
        let stored = self.load_run_or_expired(caller, run).await?;
        if self.runtime.is_past_retention(&stored) {
            return Err(Problem::run_expired());
        }
        Ok(stored)
    }

    /// The same, but also finds a run past retention, of which only the row is left.
    pub(crate) async fn load_run_or_expired(
        &self,
        caller: &Identity,
        run: &RunId,
    ) -> Result<StoredRun, Problem> {
        let Some(stored) = self.runtime.find_run(&caller.tenant, run).await? else {
            let other = self
                .runtime
                .find_run(&caller.counterpart_tenant(), run)
                .await?;
            let other = other.map(|stored| stored.row.workspace);
            return Err(explain_missing(caller, other, Problem::not_found("run")));
        };
        check_workspace(caller, stored.row.workspace.as_ref())?;
        Ok(stored)
    }

    /// An open or closed interrupt of a run this caller may see; the same rules apply as for the
    /// run.
    pub(crate) async fn load_interrupt(
        &self,
        caller: &Identity,
        id: &InterruptId,
    ) -> Result<InterruptRow, Problem> {
        let Some(row) = self.runtime.question(&caller.tenant, id).await? else {
            let other = self
                .runtime
                .question(&caller.counterpart_tenant(), id)
                .await?;
            let other = other.map(|row| row.workspace);
            return Err(explain_missing(
                caller,
                other,
                Problem::interrupt_not_found(),
            ));
        };
        check_workspace(caller, row.workspace.as_ref())?;
        Ok(row)
    }
}

fn check_workspace(caller: &Identity, of: Option<&WorkspaceId>) -> Result<(), Problem> {
    if caller.workspace.is_some() && caller.workspace.as_ref() != of {
        return Err(Problem::run_forbidden());
    }
    Ok(())
}

/// Why the caller cannot find something. `other` is the workspace of a record with this id in the
/// tenant for the other kind of key (test or live). If the caller could see that record with the
/// other kind of key, the error says so.
fn explain_missing(
    caller: &Identity,
    other: Option<Option<WorkspaceId>>,
    absent: Problem,
) -> Problem {
    match other {
        Some(workspace) if check_workspace(caller, workspace.as_ref()).is_ok() => {
            Problem::wrong_key_kind(caller)
        }
        _ => absent,
    }
}
