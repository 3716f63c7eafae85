//! The agents of a host as the runtime calls them.

use crate::agent_version::AgentVersion;
use crate::chat_models::ModelAccess;
use crate::flow_package::FlowPackage;
use crate::program::ScriptProgram;
use crate::rebuild::{rebuild, start_of};
use crate::registry::AgentRegistry;
use crate::test_recorder::TestRecorder;
use crate::transport::ChatTransport;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::ProgramStep;
use tandem_nodes::HttpCaller;
use tandem_record::conversation::{
    AgentSummary, ChatAnswer, CodeCall, CodeError, CodeOutcome, FlowFailure, FlowRecord,
    FlowRunStart, SendRequest,
};
use tandem_record::{AgentId, EffectId, Recorded, Timestamp};
use tandem_runtime::conversation::{
    AgentHost, CallContext, ChatModelRequest, FlowProgram, RebuildError, SendError,
};

/// What a host gives its agents.
pub struct AgentResources {
    /// For tools and `ctx.http.fetch`.
    pub http: Arc<HttpCaller>,
    pub models: ModelAccess,
    /// By the name that agents and targets use.
    pub transports: BTreeMap<String, Arc<dyn ChatTransport>>,
    /// Where calls of `record` tools are noted.
    pub recorder: Arc<dyn TestRecorder>,
}

/// Agents from folders.
pub struct FolderAgents {
    pub(crate) registry: Arc<AgentRegistry>,
    pub(crate) resources: AgentResources,
}

impl FolderAgents {
    pub fn new(registry: Arc<AgentRegistry>, resources: AgentResources) -> Self {
        Self {
            registry,
            resources,
        }
    }

    pub(crate) fn version(&self, context: &CallContext) -> Result<Arc<AgentVersion>, CodeError> {
        let agent = &context.agent;
        let version = self.registry.version(agent);
        version.ok_or_else(|| error("not_found", format!("there is no agent {agent} to call")))
    }

    fn package(&self, start: &FlowRunStart) -> Result<Arc<FlowPackage>, FlowFailure> {
        let package = self.registry.package(&start.agent_id, &start.version);
        package.ok_or_else(|| FlowFailure {
            code: "exception".to_owned(),
            message: format!(
                "the code of flow {} in version {} is not loaded",
                start.flow_id, start.version
            ),
            details: None,
        })
    }
}

#[async_trait]
impl AgentHost for FolderAgents {
    fn agent(&self, agent: &AgentId) -> Option<Arc<AgentSpec>> {
        let version = self.registry.version(agent)?;
        Some(version.spec.clone())
    }

    fn summaries(&self) -> Vec<AgentSummary> {
        let ids = self.registry.ids();
        let found = ids.iter().filter_map(|id| self.registry.summary(id));
        found.collect()
    }

    fn flow_source(&self, agent: &AgentId, version: &str) -> Option<Arc<str>> {
        let package = self.registry.package(agent, version)?;
        Some(package.to_text())
    }

    fn start_program(
        &self,
        start: &FlowRunStart,
        now: Timestamp,
    ) -> Result<(Box<dyn FlowProgram>, ProgramStep), FlowFailure> {
        let package = self.package(start)?;
        let limits = self.registry.limits();
        let (program, step) = ScriptProgram::start(&package, limits, start, now, true)?;
        Ok((Box::new(program), step))
    }

    fn rebuild_program(
        &self,
        source: Option<&str>,
        journal: &[Recorded<FlowRecord>],
    ) -> Result<Box<dyn FlowProgram>, RebuildError> {
        let package = match source {
            Some(text) => FlowPackage::parse(text).map(Arc::new).map_err(|problem| {
                RebuildError::Failed(FlowFailure {
                    code: "exception".to_owned(),
                    message: format!("the stored code cannot be read: {problem}"),
                    details: None,
                })
            })?,
            None => self
                .package(start_of(journal)?)
                .map_err(RebuildError::Failed)?,
        };
        let program = rebuild(&package, self.registry.limits(), journal)?;
        Ok(Box::new(program))
    }

    async fn call_code(&self, call: &CodeCall, context: &CallContext) -> CodeOutcome {
        match self.version(context) {
            Ok(version) => self.call_function(&version, call, context).await,
            Err(error) => failed(error),
        }
    }

    async fn call_tool(&self, name: &str, args: &Value, context: &CallContext) -> CodeOutcome {
        match self.version(context) {
            Ok(version) => self.run_tool(&version, name, args, context).await,
            Err(error) => failed(error),
        }
    }

    async fn call_model(
        &self,
        request: &ChatModelRequest,
        context: &CallContext,
        pieces: &(dyn for<'p> Fn(&'p str) + Send + Sync),
    ) -> Result<ChatAnswer, CodeError> {
        let version = self.version(context)?;
        self.ask_model(&version, request, context, pieces).await
    }

    async fn transcribe(
        &self,
        _media: &Value,
        _timeout_ms: u64,
        context: &CallContext,
    ) -> Result<String, CodeError> {
        let message = format!("agent {} has no provider of speech", context.agent);
        Err(error("not_found", message))
    }

    async fn send(
        &self,
        message: &SendRequest,
        key: &EffectId,
        _context: &CallContext,
    ) -> Result<Option<String>, SendError> {
        let Some(transport) = self.resources.transports.get(&message.transport) else {
            return Err(SendError {
                message: format!("there is no transport {:?}", message.transport),
                is_transient: false,
            });
        };
        transport.send(&message.to, &message.text, key).await
    }
}

pub(crate) fn error(code: &str, message: impl Into<String>) -> CodeError {
    CodeError {
        code: code.to_owned(),
        message: message.into(),
    }
}

pub(crate) fn failed(error: CodeError) -> CodeOutcome {
    CodeOutcome {
        error: Some(error),
        ..CodeOutcome::default()
    }
}
