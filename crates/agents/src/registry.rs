//! The agents of a host: loads every folder, keeps the last good version of each, and takes changes over
//! while the host runs (§10.4).

use crate::agent_version::AgentVersion;
use crate::discover::{AgentPlace, Snapshot, agents, snapshot};
use crate::flow_package::FlowPackage;
use crate::loaded_agent::LoadedAgent;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_record::conversation::{AgentFileError, AgentSummary};
use tandem_record::{AgentId, Timestamp};
use tandem_runtime::Clock;
use tandem_script::{AgentModule, ScriptLimits, Surroundings};
use tokio::sync::watch;

/// Loads one agent like a host would, without serving it. `path` is its folder, or its only file.
pub fn check_agent(path: &Path, limits: ScriptLimits, now: Timestamp) -> AgentSummary {
    let place = AgentPlace::at(path);
    let module = read(&place, limits, now);
    let mut agent = LoadedAgent::new(&place);
    agent.update(&place, module, limits);
    agent.summary()
}

fn read(place: &AgentPlace, limits: ScriptLimits, now: Timestamp) -> AgentModule {
    let surroundings = Surroundings {
        now_ms: now.0,
        seed: place.id.clone().into_bytes(),
        time_zone: "UTC".to_owned(),
    };
    tandem_script::load(&place.path, limits, &surroundings)
}

pub struct AgentRegistry {
    folders: Vec<PathBuf>,
    limits: ScriptLimits,
    clock: Arc<dyn Clock>,
    agents: RwLock<BTreeMap<String, LoadedAgent>>,
    /// The files of the last load. Held while loading, so that one load runs at a time.
    loaded: Mutex<Snapshot>,
    changes: watch::Sender<u64>,
}

impl AgentRegistry {
    /// Loads every agent. Uses the CPU and the disk: called on a thread that may block.
    pub fn load(folders: Vec<PathBuf>, limits: ScriptLimits, clock: Arc<dyn Clock>) -> Self {
        let registry = Self {
            folders,
            limits,
            clock,
            agents: RwLock::default(),
            loaded: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        registry.reload();
        registry
    }

    /// Loads every agent again, changed or not. Called on a thread that may block.
    pub fn reload(&self) {
        let places = agents(&self.folders);
        let files = snapshot(&places);
        self.take_over(&places, files, |_| true);
    }

    /// The ids of all agents, broken ones included.
    pub fn ids(&self) -> Vec<AgentId> {
        let agents = self.agents.read();
        agents.keys().map(|id| AgentId::from(id.as_str())).collect()
    }

    pub fn summary(&self, agent: &AgentId) -> Option<AgentSummary> {
        let agents = self.agents.read();
        agents.get(agent.as_str()).map(LoadedAgent::summary)
    }

    /// Counts the loads that changed what new turns use.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn version(&self, agent: &AgentId) -> Option<Arc<AgentVersion>> {
        let agents = self.agents.read();
        agents.get(agent.as_str())?.current().cloned()
    }

    pub(crate) fn package(&self, agent: &AgentId, version: &str) -> Option<Arc<FlowPackage>> {
        let agents = self.agents.read();
        agents.get(agent.as_str())?.package(version).cloned()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn limits(&self) -> ScriptLimits {
        self.limits
    }

    /// The files as they are now.
    pub(crate) fn look(&self) -> Snapshot {
        snapshot(&agents(&self.folders))
    }

    pub(crate) fn is_loaded(&self, files: &Snapshot) -> bool {
        *self.loaded.lock() == *files
    }

    /// Loads the agents whose files are not as they were loaded.
    pub(crate) fn reload_changed(&self) {
        let places = agents(&self.folders);
        let files = snapshot(&places);
        let known = self.loaded.lock().clone();
        let is_changed = |place: &AgentPlace| known.get(&place.path) != files.get(&place.path);
        self.take_over(&places, files.clone(), is_changed);
    }

    fn take_over(
        &self,
        places: &[AgentPlace],
        files: Snapshot,
        is_changed: impl Fn(&AgentPlace) -> bool,
    ) {
        let mut loaded = self.loaded.lock();
        let mut has_changed = false;
        for (position, place) in places.iter().enumerate() {
            let same_id = |other: &&AgentPlace| other.id == place.id;
            let first = places[..position].iter().find(same_id);
            let is_read = is_changed(place) || places.iter().filter(same_id).any(&is_changed);
            match first {
                _ if !is_read => {}
                None => has_changed |= self.load_agent(place),
                Some(first) => self.report_second(place, first),
            }
        }
        let mut agents = self.agents.write();
        let count = agents.len();
        agents.retain(|id, _| places.iter().any(|place| place.id == *id));
        has_changed |= agents.len() != count;
        drop(agents);
        *loaded = files;
        if has_changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn load_agent(&self, place: &AgentPlace) -> bool {
        let module = read(place, self.limits, self.clock.now());
        let mut agents = self.agents.write();
        let agent = agents
            .entry(place.id.clone())
            .or_insert_with(|| LoadedAgent::new(place));
        let has_changed = agent.update(place, module, self.limits);
        let summary = agent.summary();
        drop(agents);
        for error in &summary.errors {
            tracing::warn!(
                agent = place.id,
                file = error.file,
                line = error.line,
                "{}",
                error.message
            );
        }
        if has_changed {
            tracing::info!(
                agent = place.id,
                flows = summary.flows.len(),
                "agent loaded"
            );
        }
        has_changed
    }

    fn report_second(&self, place: &AgentPlace, first: &AgentPlace) {
        let name = place.path.file_name().unwrap_or_default();
        let message = format!(
            "the agent {:?} is already defined by {}; rename one of them",
            place.id,
            first.path.display()
        );
        let error = AgentFileError::new(name.to_string_lossy(), message);
        if let Some(agent) = self.agents.write().get_mut(&place.id) {
            agent.add_error(error);
        }
    }
}
