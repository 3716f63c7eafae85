//! What the machines of conversations share, and how a host provides it.

use super::agent_host::AgentHost;
use super::programs::ProgramCache;
use super::session_machine::SessionMachine;
use crate::machine_driver::{MachineDriver, Machines};
use std::sync::Arc;
use tandem_engine::chat_user::AgentUser;
use tandem_engine::flow_run::FlowRun;

/// Cached machines of each kind, and their memory.
const CACHED: usize = 2_048;
const CACHED_BYTES: usize = 64 * 1024 * 1024;

/// What sessions use.
pub struct SessionSettings {
    pub(crate) agents: Arc<dyn AgentHost>,
    pub(crate) programs: ProgramCache,
    pub(crate) flow_runs: Arc<MachineDriver<FlowRun>>,
    pub(crate) users: Arc<MachineDriver<AgentUser>>,
}

/// The conversations of a host.
#[derive(Clone)]
pub struct Conversations {
    pub(crate) sessions: Arc<MachineDriver<SessionMachine>>,
    pub(crate) users: Arc<MachineDriver<AgentUser>>,
}

impl Conversations {
    /// `is_cold` keeps no program of a flow between turns, for tests.
    pub fn new(agents: Arc<dyn AgentHost>, is_cold: bool) -> Self {
        let flow_runs = MachineDriver::new(Arc::clone(&agents), CACHED, CACHED_BYTES);
        let users = MachineDriver::new((), CACHED, CACHED_BYTES);
        let settings = SessionSettings {
            agents,
            programs: ProgramCache::new(is_cold),
            flow_runs,
            users: Arc::clone(&users),
        };
        Self {
            sessions: MachineDriver::new(settings, CACHED, CACHED_BYTES),
            users,
        }
    }

    /// The runtime drives their streams.
    pub(crate) fn register(&self, machines: &mut Machines) {
        machines.register(Arc::clone(&self.sessions));
        machines.register(Arc::clone(&self.users));
        machines.register(Arc::clone(&self.sessions.settings.flow_runs));
    }

    pub fn agents(&self) -> &Arc<dyn AgentHost> {
        &self.sessions.settings.agents
    }
}
