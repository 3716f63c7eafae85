//! The resources of a server: its address, its store, its runtime.

use super::agents;
use super::audit_key;
use super::connections::raise_descriptor_limit;
use super::extensions::Extensions;
use super::host_id;
use super::models::{models, providers};
use super::notices;
use super::packs;
use super::tools::{mcp_servers, tool_servers};
use super::webhook_sender::HttpWebhookSender;
use crate::config::{Connections, Settings};
use crate::failure::Failure;
use crate::private;
use anyhow::Context as _;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use tandem_access::{Keyring, LoginCodes};
use tandem_agents::AgentWatcher;
use tandem_api::HttpMetrics;
use tandem_nodes::{CallLimits, HttpCaller, PackCaller, Performer, RustNodes, Secrets, UrlGuard};
use tandem_record::Timestamp;
use tandem_runtime::audit::AuditSigner;
use tandem_runtime::{CLOCK_OFFSET, Clock, Fault, Redactor, Runtime, RuntimeConfig, SystemClock};
use tandem_store::SettingsStore as _;
use tandem_store_sqlite::{Options, SqliteStore};
use tandem_wasm::Packs;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Lifetime of a printed login link.
const LOGIN_CODE_MS: u64 = 30 * 60 * 1000;

pub(crate) struct ServerContext {
    pub(crate) settings: Settings,
    /// The protocol name of this host.
    pub(crate) host_id: String,
    pub(crate) connections: Connections,
    pub(crate) runtime: Runtime,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) codes: Arc<LoginCodes>,
    pub(crate) audit_signer: Arc<AuditSigner>,
    pub(crate) metrics: Arc<HttpMetrics>,
    /// Packs whose nodes may be called; `None` if none are configured.
    pub(crate) packs: Option<Arc<Packs>>,
    /// Takes changes of agents' files over as long as it exists.
    #[expect(dead_code, reason = "held, not read")]
    agent_watcher: Option<AgentWatcher>,
    /// The listen address, for local clients.
    pub(crate) address: SocketAddr,
}

impl ServerContext {
    pub(super) async fn open(
        settings: Settings,
        extensions: Extensions,
    ) -> anyhow::Result<(Self, TcpListener)> {
        let connections = settings.connections.within(raise_descriptor_limit())?;
        let listener = bind(settings.listen).await?;
        let address = listener.local_addr()?;
        let packs = packs::load(&settings)?;
        let node_types = extensions.node_types(packs.as_deref())?;
        let Extensions { agents, nodes } = extensions;
        // The store is opened on another thread: reading certificates takes as long.
        let opening = open_store(&settings)?;
        let performer = performer(&settings, packs.as_ref(), nodes)?;
        let store = Arc::new(opening.await??);
        let audit_signer = AuditSigner::new(
            store.clone(),
            audit_key::obtain(settings.audit_key.as_ref(), &*store).await?,
        );
        let clock = clock(&settings, &store).await?;
        let host_id = host_id::obtain(settings.host_id.as_deref(), &*store).await?;
        let keyring = Arc::new(Keyring::new(store.clone()));
        let webhook_sender = HttpWebhookSender::open(
            &store,
            Arc::clone(&keyring),
            guard(&settings),
            settings.public_url.as_deref(),
        )
        .await?;
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let agents = agents::load(&settings, agents, store.clone(), Arc::clone(&clock)).await?;
        let conversations = agents.as_ref().map(|agents| &agents.conversations);
        let agent_host = conversations.map(|conversations| &**conversations.agents());
        let config = RuntimeConfig {
            notices: notices::rules(&settings, agent_host)?,
            conversations: agents.as_ref().map(|agents| agents.conversations.clone()),
            webhook_sender: Some(Arc::new(webhook_sender)),
            clock,
            redactor: redactor(&settings),
            retention: settings.retention.clone(),
            agents: settings.agent_policy.clone().with_host_id(&host_id),
            conformance: settings.conformance,
            limits: settings.limits,
            strict_documents: settings.strict_documents,
            providers: providers(&settings),
            packs: node_types,
            tools: tool_servers(&settings),
            max_effects: settings.calls.max,
            max_calls_per_tenant: settings.calls.per_tenant,
            max_calls_per_target: settings.calls.per_target,
            ..RuntimeConfig::new(store.clone(), Arc::new(performer))
        };
        let runtime = Runtime::start(config).await.map_err(store_open_failure)?;
        let opened = Self {
            metrics: Arc::new(HttpMetrics::new(runtime.metrics())),
            settings,
            host_id,
            connections,
            runtime,
            keyring,
            codes: Arc::new(LoginCodes::new(LOGIN_CODE_MS)),
            audit_signer: Arc::new(audit_signer),
            packs,
            agent_watcher: agents.and_then(|agents| agents.watcher),
            address,
        };
        Ok((opened, listener))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.runtime.clock().now()
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let (why, next) = match error.kind() {
            ErrorKind::AddrInUse => (
                "the port is in use".to_owned(),
                "Stop the other process, or choose another address with --listen.",
            ),
            ErrorKind::PermissionDenied => (
                "this user may not use that port".to_owned(),
                "Choose a port above 1023 with --listen.",
            ),
            ErrorKind::AddrNotAvailable => (
                "this machine has no such address".to_owned(),
                "Choose one it has with --listen, for example 127.0.0.1:7717.",
            ),
            _ => (error.to_string(), "Choose another address with --listen."),
        };
        Failure::new(format!("cannot listen on {address}: {why}"), next)
    })
}

fn open_store(settings: &Settings) -> Result<JoinHandle<Result<SqliteStore, Failure>>, Failure> {
    let path = settings.store.clone();
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        private::create_dir_all(dir).map_err(|error| {
            Failure::new(
                format!(
                    "cannot create the store's directory {}: {error}",
                    dir.display()
                ),
                "Choose another place with --store sqlite:PATH.",
            )
        })?;
    }
    // Opening checks and migrates the file, which may take long.
    Ok(tokio::task::spawn_blocking(move || {
        SqliteStore::open(path, Options::default()).map_err(store_open_failure)
    }))
}

/// Converts a store fault; its message already says what to do.
pub(super) fn store_open_failure(fault: Fault) -> Failure {
    let next = match fault.code {
        "locked" => "Only one tandem may use a store.",
        "newer_schema" => "Use the version of tandem that wrote it, or a newer one.",
        "corrupt" | "data_missing" | "hard_linked" => "Nothing was changed.",
        "disk_full" => "Make room and start again.",
        _ => "Check the path and its permissions, or choose another with --store sqlite:PATH.",
    };
    Failure::new(
        format!("cannot open the store ({}): {}", fault.code, fault.message),
        next,
    )
}

/// The system clock; with test seams, moved as tests moved it before and as configured now.
async fn clock(settings: &Settings, store: &SqliteStore) -> anyhow::Result<SystemClock> {
    if !settings.test_seams {
        return Ok(SystemClock::default());
    }
    let stored = store.get(CLOCK_OFFSET).await.map_err(store_open_failure)?;
    let before: i64 = stored.and_then(|text| text.parse().ok()).unwrap_or(0);
    let offset = before.saturating_add(settings.clock_advance_ms);
    if offset != before {
        let text = offset.to_string();
        store
            .set(CLOCK_OFFSET, &text)
            .await
            .map_err(store_open_failure)?;
    }
    Ok(SystemClock::shifted(offset))
}

/// The rule for outbound addresses, for nodes and webhooks.
pub(super) fn guard(settings: &Settings) -> UrlGuard {
    UrlGuard {
        allow_private: settings.test_seams,
        ..UrlGuard::default()
    }
}

fn performer(
    settings: &Settings,
    packs: Option<&Arc<Packs>>,
    nodes: RustNodes,
) -> anyhow::Result<Performer> {
    let http = HttpCaller::new(guard(settings), CallLimits::default())
        .context("outgoing calls cannot be made")?;
    let secrets = settings.secrets.iter();
    let secrets: Secrets = secrets
        .map(|(id, value)| (id.clone(), value.0.clone()))
        .collect();
    let models = models(settings).context("models cannot be called")?;
    let tools = mcp_servers(settings).context("tools cannot be called")?;
    let packs = packs.map(|packs| PackCaller::new(Arc::clone(packs)));
    Ok(Performer::new(http, secrets)
        .with_models(models)
        .with_tools(tools)
        .with_packs(packs)
        .with_rust_nodes(nodes))
}

/// Keys from the environment are redacted too, because an operator's key may have any format.
pub(super) fn redactor(settings: &Settings) -> Redactor {
    let secrets = settings.secrets.iter();
    let secrets = secrets.map(|(id, value)| (id.as_str(), value.0.as_str()));
    let keys = [
        &settings.api_key,
        &settings.tenant2_api_key,
        &settings.audit_key,
    ];
    let keys = keys
        .into_iter()
        .flatten()
        .map(|key| ("api-key", key.0.as_str()));
    let tools = settings.tools.values().filter_map(|t| t.key.as_ref());
    let tools = tools.map(|key| ("mcp-key", key.0.as_str()));
    Redactor::new(secrets.chain(keys).chain(tools))
}
