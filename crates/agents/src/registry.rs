//! The agents of a host: loads every folder, keeps the last good version of each, and takes changes over
//! while the host runs (§10.4). Agents that a program defines in Rust stand beside them and never change.

use crate::agent_version::AgentVersion;
use crate::discover::{AgentPlace, Snapshot, agents, snapshot};
use crate::flow_package::FlowPackage;
use crate::loaded_agent::LoadedAgent;
use crate::rust_code::{RustAgentError, RustAgents, RustCode};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_flow::RustFlow;
use tandem_record::conversation::{AgentFileError, AgentSummary, FlowRunStart};
use tandem_record::{AgentId, Timestamp};
use tandem_runtime::Clock;
use tandem_script::{AgentModule, ScriptLimits, Surroundings};
use tokio::sync::watch;

/// Loads one agent like a host would, without serving it. `path` is its folder, or its only file.
pub fn check_agent(path: &Path, limits: ScriptLimits, now: Timestamp) -> AgentSummary {
    let place = AgentPlace::at(path);
    let module = read(&place, limits, now);
    let mut agent = LoadedAgent::new(&place, Arc::default());
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
    /// What a program adds to agents in folders, by their ids.
    added: BTreeMap<String, Arc<RustCode>>,
    /// Agents that the program defines.
    defined: BTreeSet<String>,
    limits: ScriptLimits,
    clock: Arc<dyn Clock>,
    agents: RwLock<BTreeMap<String, LoadedAgent>>,
    /// The files of the last load. Held while loading, so that one load runs at a time.
    loaded: Mutex<Snapshot>,
    changes: watch::Sender<u64>,
}

impl AgentRegistry {
    /// Loads every agent, and takes over what a program brings. An agent in Rust that cannot be used is an
    /// error: nobody can mend it while the host runs. Uses the CPU and the disk: called on a thread that may
    /// block.
    pub fn load(
        folders: Vec<PathBuf>,
        rust: RustAgents,
        limits: ScriptLimits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RustAgentError> {
        let rust = rust.checked()?;
        let mut agents = BTreeMap::new();
        for agent in &rust.agents {
            let loaded = LoadedAgent::define(agent, limits).map_err(|errors| {
                let problems: Vec<String> = errors.into_iter().map(|e| e.message).collect();
                RustAgentError::new(&agent.id, problems.join("; "))
            })?;
            agents.insert(agent.id.clone(), loaded);
        }
        let added = rust.added.into_iter();
        let registry = Self {
            folders,
            added: added.map(|(id, code)| (id, Arc::new(code))).collect(),
            defined: agents.keys().cloned().collect(),
            limits,
            clock,
            agents: RwLock::new(agents),
            loaded: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        registry.reload();
        let agents = registry.agents.read();
        if let Some(id) = registry.added.keys().find(|id| !agents.contains_key(*id)) {
            let problem = "flows or tools are added to it, but no folder and no program defines it";
            return Err(RustAgentError::new(id, problem));
        }
        drop(agents);
        Ok(registry)
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

    /// The code of a run in Rust (Z-215).
    pub(crate) fn rust_flow(&self, start: &FlowRunStart) -> Option<RustFlow> {
        let agents = self.agents.read();
        let rust = agents.get(start.agent_id.as_str())?.rust();
        let flow = rust.flow_of_run(start.flow_id.as_str(), &start.version);
        flow.cloned()
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
                _ if self.defined.contains(&place.id) => self.report_defined(place),
                None => has_changed |= self.load_agent(place),
                Some(first) => self.report_second(place, first),
            }
        }
        let mut agents = self.agents.write();
        let count = agents.len();
        let is_in_folder = |id: &String| places.iter().any(|place| place.id == *id);
        agents.retain(|id, _| self.defined.contains(id) || is_in_folder(id));
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
        let agent = agents.entry(place.id.clone()).or_insert_with(|| {
            let added = self.added.get(&place.id).cloned();
            LoadedAgent::new(place, added.unwrap_or_default())
        });
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
        self.report_duplicate(place, &first.path.display().to_string());
    }

    fn report_defined(&self, place: &AgentPlace) {
        self.report_duplicate(place, "this program, in Rust");
    }

    fn report_duplicate(&self, place: &AgentPlace, by: &str) {
        let name = place.path.file_name().unwrap_or_default();
        let id = &place.id;
        let message = format!("the agent {id:?} is already defined by {by}; rename one of them");
        let error = AgentFileError::new(name.to_string_lossy(), message);
        if let Some(agent) = self.agents.write().get_mut(&place.id) {
            agent.add_error(error);
        }
    }
}
