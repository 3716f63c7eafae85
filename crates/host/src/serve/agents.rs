//! The chat agents of a server: their folders, and what they may use.

use super::open::guard;
use crate::config::Settings;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_agents::{
    AgentRegistry, AgentResources, AgentWatcher, FolderAgents, LoopbackTransport, MemoryRecorder,
    TestRecorder, Transport,
};
use tandem_nodes::{CallLimits, HttpCaller};
use tandem_runtime::Clock;
use tandem_runtime::conversation::Conversations;
use tandem_script::ScriptLimits;

/// The agents of a server, and the watch over their files.
pub(crate) struct ServedAgents {
    pub(crate) conversations: Conversations,
    /// Takes changes of files over as long as it exists.
    pub(crate) watcher: AgentWatcher,
}

/// `None` when no folder is configured.
pub(super) async fn load(
    settings: &Settings,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Option<ServedAgents>> {
    if settings.agents.is_empty() {
        return Ok(None);
    }
    let (folders, registry_clock) = (settings.agents.clone(), Arc::clone(&clock));
    // Reading and checking the code uses the processor.
    let load = move || AgentRegistry::load(folders, ScriptLimits::default(), registry_clock);
    let registry = Arc::new(tokio::task::spawn_blocking(load).await?);
    for id in registry.ids() {
        for error in registry.summary(&id).into_iter().flat_map(|s| s.errors) {
            let (file, line) = (&error.file, error.line.unwrap_or(0));
            tracing::error!(agent = %id, file, line, "{}", error.message);
        }
    }
    let recorder: Arc<dyn TestRecorder> = Arc::new(MemoryRecorder::default());
    let loopback = LoopbackTransport::new(Arc::clone(&recorder), clock);
    let loopback: Arc<dyn Transport> = Arc::new(loopback);
    let http = HttpCaller::new(guard(settings), CallLimits::default())
        .context("agents cannot make outgoing calls")?;
    let resources = AgentResources {
        http: Arc::new(http),
        transports: BTreeMap::from([("loopback".to_owned(), loopback)]),
        recorder,
    };
    let watcher = AgentWatcher::start(Arc::clone(&registry))
        .context("the folders of agents cannot be watched")?;
    let agents = FolderAgents::new(registry, resources);
    Ok(Some(ServedAgents {
        conversations: Conversations::new(Arc::new(agents), settings.test_cold),
        watcher,
    }))
}
