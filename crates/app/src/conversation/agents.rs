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
    /// The agents the caller may know of, in order of their ids.
    pub fn list_agents(&self, caller: &Identity) -> Result<Vec<AgentView>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let mut all = self.agent_summaries();
        all.retain(|agent| caller.reaches_agent(&AgentId::from(agent.id.as_str())));
        Ok(all)
    }

    pub fn read_agent(&self, caller: &Identity, agent: &AgentId) -> Result<AgentView, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_agent_for(caller, agent)
    }

    /// What is wrong with a file may quote what its code threw.
    fn agent_summaries(&self) -> Vec<AgentView> {
        let conversations = self.runtime().conversations();
        let mut summaries = conversations.map_or_else(Vec::new, |all| all.agents().summaries());
        let errors = summaries.iter_mut().flat_map(|agent| &mut agent.errors);
        for error in errors {
            error.message = self
                .runtime()
                .redacted_text(std::mem::take(&mut error.message));
        }
        summaries
    }

    /// An agent the caller may know of. One it may not is reported like one that does not exist.
    pub(super) fn find_agent_for(
        &self,
        caller: &Identity,
        agent: &AgentId,
    ) -> Result<AgentView, AppError> {
        match caller.reaches_agent(agent) {
            true => self.find_agent(agent),
            false => Err(AppError::NotFound(ResourceKind::Agent)),
        }
    }

    fn find_agent(&self, agent: &AgentId) -> Result<AgentView, AppError> {
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
