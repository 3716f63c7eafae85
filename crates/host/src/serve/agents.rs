//! The chat agents of a server: those in folders, those of an embedding program, and what they may use.

use super::links;
use super::models::operator_models;
use super::open::guard;
use super::test_recorder::{NoRecorder, StoreRecorder};
use crate::config::Settings;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_agents::{
    AgentRegistry, AgentResources, AgentWatcher, ChatTransport, FolderAgents, LifeSigns,
    LoopbackTransport, ModelAccess, NoticeLinks, RustAgents, TestRecorder, TransportResources,
    WebChatTransport,
};
use tandem_nodes::{
    BreakerSettings, CallLimits, CircuitBreakers, HttpCaller, LocalScripts, ScriptMemory, UrlGuard,
};
use tandem_runtime::Clock;
use tandem_runtime::conversation::{Conversations, WEB_TRANSPORT};
use tandem_script::ScriptLimits;
use tandem_store::Store;

/// The agents of a server, and the watch over their files.
pub(crate) struct ServedAgents {
    pub(crate) conversations: Conversations,
    /// Takes changes of files over as long as it exists; `None` without folders.
    pub(crate) watcher: Option<AgentWatcher>,
}

/// `None` when no folder is configured and no program brings agents.
pub(super) async fn load(
    settings: &Settings,
    rust: RustAgents,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Option<ServedAgents>> {
    if settings.agents.is_empty() && rust.is_empty() {
        return Ok(None);
    }
    let (folders, registry_clock) = (settings.agents.clone(), Arc::clone(&clock));
    // Reading and checking the code uses the processor.
    let load = move || AgentRegistry::load(folders, rust, ScriptLimits::default(), registry_clock);
    let registry = Arc::new(tokio::task::spawn_blocking(load).await??);
    for id in registry.ids() {
        for error in registry.summary(&id).into_iter().flat_map(|s| s.errors) {
            let (file, line) = (&error.file, error.line.unwrap_or(0));
            tracing::error!(agent = %id, file, line, "{}", error.message);
        }
    }
    let links = match settings.public_url.as_deref() {
        Some(base) => Some(Arc::new(NoticeLinks::new(
            links::signer(&*store).await?,
            base,
        ))),
        None => None,
    };
    let (recorder, scripts) = memory(settings, store, &clock);
    let loopback = LoopbackTransport::new(Arc::clone(&recorder), Arc::clone(&clock));
    let loopback: Arc<dyn ChatTransport> = Arc::new(loopback);
    let web: Arc<dyn ChatTransport> = Arc::new(WebChatTransport);
    let http = HttpCaller::new(guard(settings), CallLimits::default())
        .context("agents cannot make outgoing calls")?;
    let with_tls = UrlGuard {
        require_https: true,
        ..guard(settings)
    };
    let transport_guard = Arc::new(with_tls.clone());
    let signed = HttpCaller::new(with_tls, CallLimits::default())
        .context("transports cannot make outgoing calls")?;
    let models = ModelAccess {
        providers: operator_models(settings),
        scripts,
        breakers: Arc::new(CircuitBreakers::new(BreakerSettings::default())),
        environment: |name| std::env::var(name).ok(),
        guard: guard(settings),
        limits: CallLimits::default(),
    };
    let resources = AgentResources {
        http: Arc::new(http),
        models,
        transports: BTreeMap::from([
            (LoopbackTransport::NAME.to_owned(), loopback),
            (WEB_TRANSPORT.to_owned(), web),
        ]),
        own_transports: TransportResources {
            http: Arc::new(signed),
            guard: transport_guard,
            environment: |name| std::env::var(name).ok(),
            clock,
            links,
        },
        life_signs: LifeSigns::default(),
        recorder,
    };
    let watcher = match settings.agents.is_empty() {
        true => None,
        false => Some(
            AgentWatcher::start(Arc::clone(&registry))
                .context("the folders of agents cannot be watched")?,
        ),
    };
    let agents = FolderAgents::new(registry, resources);
    Ok(Some(ServedAgents {
        conversations: Conversations::with_strictness(
            Arc::new(agents),
            settings.test_cold,
            settings.strict_flows,
        ),
        watcher,
    }))
}

/// Where recording tools, the loopback transport and scripted models keep what they did.
fn memory(
    settings: &Settings,
    store: Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> (Arc<dyn TestRecorder>, Arc<dyn ScriptMemory>) {
    if settings.test_seams {
        let recorder = Arc::new(StoreRecorder::new(store, Arc::clone(clock)));
        return (recorder.clone(), recorder);
    }
    let clock = Arc::clone(clock);
    let scripts = LocalScripts::new(move || clock.now());
    (Arc::new(NoRecorder), Arc::new(scripts))
}
