//! What the machines of conversations share, and how a host provides it.

use super::agent_host::AgentHost;
use super::programs::ProgramCache;
use super::session_machine::SessionMachine;
use super::strict_mode::StrictChecks;
use crate::machine_driver::{MachineDriver, Machines};
use std::sync::Arc;
use tandem_engine::chat_user::AgentUser;
use tandem_engine::flow_run::FlowRun;
use tandem_engine::schedule::Schedule;

/// Cached machines of each kind, and their memory.
const CACHED: usize = 1_024;
const CACHED_BYTES: usize = 64 * 1024 * 1024;

/// What sessions use.
pub struct SessionSettings {
    pub(crate) agents: Arc<dyn AgentHost>,
    pub(crate) programs: Arc<ProgramCache>,
    /// Flows of all agents are run again after every turn.
    pub(crate) is_strict: bool,
    pub(crate) strict_checks: StrictChecks,
    pub(crate) flow_runs: Arc<MachineDriver<FlowRun>>,
    pub(crate) users: Arc<MachineDriver<AgentUser>>,
    pub(crate) schedules: Arc<MachineDriver<Schedule>>,
}

/// The conversations of a host.
#[derive(Clone)]
pub struct Conversations {
    pub(crate) sessions: Arc<MachineDriver<SessionMachine>>,
    pub(crate) users: Arc<MachineDriver<AgentUser>>,
    pub(crate) schedules: Arc<MachineDriver<Schedule>>,
}

impl Conversations {
    /// `is_cold` keeps no program of a flow between turns, for tests.
    pub fn new(agents: Arc<dyn AgentHost>, is_cold: bool) -> Self {
        Self::with_strictness(agents, is_cold, false)
    }

    /// `is_strict` runs the flows of all agents again after every turn, whatever their files say.
    pub fn with_strictness(agents: Arc<dyn AgentHost>, is_cold: bool, is_strict: bool) -> Self {
        let flow_runs = MachineDriver::new(Arc::clone(&agents), CACHED, CACHED_BYTES);
        let users = MachineDriver::new((), CACHED, CACHED_BYTES);
        let schedules = schedule_driver(Some(Arc::clone(&agents)));
        let settings = SessionSettings {
            agents,
            programs: Arc::new(ProgramCache::new(is_cold)),
            is_strict,
            strict_checks: StrictChecks::default(),
            flow_runs,
            users: Arc::clone(&users),
            schedules: Arc::clone(&schedules),
        };
        Self {
            sessions: MachineDriver::new(settings, CACHED, CACHED_BYTES),
            users,
            schedules,
        }
    }

    /// The runtime drives their streams. Schedules are driven without conversations too.
    pub(crate) fn register(&self, machines: &mut Machines) {
        machines.register(Arc::clone(&self.sessions));
        machines.register(Arc::clone(&self.users));
        machines.register(Arc::clone(&self.sessions.settings.flow_runs));
    }

    pub fn agents(&self) -> &Arc<dyn AgentHost> {
        &self.sessions.settings.agents
    }
}

/// The driver of schedules; without agents they only start runs of workflows.
pub(crate) fn schedule_driver(agents: Option<Arc<dyn AgentHost>>) -> Arc<MachineDriver<Schedule>> {
    MachineDriver::new(agents, CACHED, CACHED_BYTES)
}
