//! Calls of an agent's model.

use crate::agent_version::AgentVersion;
use crate::host::{FolderAgents, error};
use tandem_record::conversation::{ChatAnswer, CodeError};
use tandem_runtime::conversation::{CallContext, ModelRequest};

impl FolderAgents {
    pub(crate) async fn ask_model(
        &self,
        _version: &AgentVersion,
        _request: &ModelRequest,
        _context: &CallContext,
        _pieces: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ChatAnswer, CodeError> {
        Err(error("failed", "the agent has no model"))
    }
}
