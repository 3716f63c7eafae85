//! The agents of this host, as they are loaded. They are not of a tenant: their conversations are.

use crate::app::App;
use crate::error::{AppError, ResourceKind};
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::AgentId;
use tandem_record::conversation::{AgentStatus, AgentSummary};
use tandem_runtime::conversation::AgentSpec;

/// An agent as a reader sees it.
pub type AgentView = AgentSummary;

impl App {
    /// All agents, in order of their ids.
    pub fn list_agents(&self, caller: &Identity) -> Result<Vec<AgentView>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        Ok(self.agent_summaries())
    }

    pub fn read_agent(&self, caller: &Identity, agent: &AgentId) -> Result<AgentView, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_agent(agent)
    }

    fn agent_summaries(&self) -> Vec<AgentView> {
        let conversations = self.runtime().conversations();
        conversations.map_or_else(Vec::new, |all| all.agents().summaries())
    }

    pub(super) fn find_agent(&self, agent: &AgentId) -> Result<AgentView, AppError> {
        let mut all = self.agent_summaries().into_iter();
        let found = all.find(|summary| summary.id == agent.as_str());
        found.ok_or(AppError::NotFound(ResourceKind::Agent))
    }

    /// The version of an agent that takes messages.
    pub(super) fn ready_agent(&self, agent: &AgentId) -> Result<Arc<AgentSpec>, AppError> {
        let summary = self.find_agent(agent)?;
        match (summary.status, self.agent_spec(agent)) {
            (AgentStatus::Ready, Some(spec)) => Ok(spec),
            _ => Err(AppError::AgentInvalid),
        }
    }
}
