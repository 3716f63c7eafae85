//! The agents of a host as the runtime calls them.

use crate::agent_version::AgentVersion;
use crate::chat_models::ModelAccess;
use crate::circuit_notes::CircuitNotes;
use crate::flow_package::FlowPackage;
use crate::program::ScriptProgram;
use crate::rebuild::{rebuild, start_of};
use crate::registry::AgentRegistry;
use crate::rust_program::RustProgram;
use crate::test_recorder::TestRecorder;
use crate::transports::{ChatTransport, LifeSigns, OpenTransport, TransportResources};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::{AgentSpec, WEB_TRANSPORT};
use tandem_engine::session::ProgramStep;
use tandem_flow::{RustFlow, is_rust_version};
use tandem_nodes::HttpCaller;
use tandem_record::conversation::{
    AgentSummary, ChatAnswer, CodeCall, CodeError, CodeOutcome, FlowFailure, FlowRecord,
    FlowRunStart, ProviderCircuitChange,
};
use tandem_record::{AgentId, EffectId, Recorded, Timestamp};
use tandem_runtime::conversation::{
    AgentHost, CallContext, ChatModelRequest, FlowProgram, LifeSign, MediaContent, NoticePlace,
    OutgoingMessage, QuestionNotice, RebuildError, SendError, ShownDecision, TakenMessage,
    TransportDelivery, TransportRefusal, TransportRequest,
};

use tokio::sync::watch;

/// What a host gives its agents.
pub struct AgentResources {
    /// For tools and `ctx.http.fetch`.
    pub http: Arc<HttpCaller>,
    pub models: ModelAccess,
    /// Those of every host, by name.
    pub transports: BTreeMap<String, Arc<dyn ChatTransport>>,
    /// For those that agent files describe.
    pub own_transports: TransportResources,
    pub life_signs: LifeSigns,
    /// Where calls of `record` tools are noted.
    pub recorder: Arc<dyn TestRecorder>,
}

type FoundTransport = Result<Arc<OpenTransport>, String>;

/// Agents from folders, and those that a program defines in Rust.
pub struct FolderAgents {
    pub(crate) registry: Arc<AgentRegistry>,
    pub(crate) resources: AgentResources,
    pub(crate) circuits: CircuitNotes,
}

impl FolderAgents {
    pub fn new(registry: Arc<AgentRegistry>, resources: AgentResources) -> Self {
        Self {
            registry,
            resources,
            circuits: CircuitNotes::default(),
        }
    }

    pub(crate) fn version(&self, context: &CallContext) -> Result<Arc<AgentVersion>, CodeError> {
        let agent = &context.agent;
        let version = self.registry.version(agent);
        version.ok_or_else(|| error("not_found", format!("there is no agent {agent} to call")))
    }

    /// A transport by the name that agents and targets use: one of every host, or one of the agent's file, which
    /// may say more about one of every host.
    fn transport(&self, agent: &AgentId, name: &str) -> Option<FoundTransport> {
        let resources = &self.resources.own_transports;
        let builtin = self.resources.transports.get(name);
        // Whoever may use the web chat is said there; nothing is said about sending.
        let has_rules = name != WEB_TRANSPORT;
        let version = self.registry.version(agent).filter(|_| has_rules);
        let own = version.and_then(|version| version.transport(name, builtin, resources));
        own.or_else(|| {
            let clock = Arc::clone(&resources.clock);
            Some(Ok(Arc::new(OpenTransport::unlimited(
                builtin?.clone(),
                clock,
            ))))
        })
    }

    /// The transport, or why nothing can be sent by it.
    fn sending_transport(
        &self,
        agent: &AgentId,
        name: &str,
    ) -> Result<Arc<OpenTransport>, SendError> {
        match self.transport(agent, name) {
            Some(found) => found.map_err(SendError::permanent),
            None => Err(SendError::permanent(format!(
                "there is no transport {name:?}"
            ))),
        }
    }

    /// The transport, as far as a network may be told about it.
    fn receiving_transport(
        &self,
        agent: &AgentId,
        transport: &str,
    ) -> Result<Arc<OpenTransport>, TransportRefusal> {
        let found = self.transport(agent, transport);
        found.ok_or(TransportRefusal::Unknown)?.map_err(|problem| {
            tracing::warn!(%agent, transport, problem, "a transport cannot be opened");
            TransportRefusal::NotReady
        })
    }

    fn package(&self, start: &FlowRunStart) -> Result<Arc<FlowPackage>, FlowFailure> {
        let package = self.registry.package(&start.agent_id, &start.version);
        package.ok_or_else(|| not_loaded(start))
    }

    fn rust_flow(&self, start: &FlowRunStart) -> Result<RustFlow, FlowFailure> {
        let flow = self.registry.rust_flow(start);
        flow.ok_or_else(|| not_loaded(start))
    }
}

fn not_loaded(start: &FlowRunStart) -> FlowFailure {
    FlowFailure {
        code: "exception".to_owned(),
        message: format!(
            "the code of flow {} in version {} is not loaded",
            start.flow_id, start.version
        ),
        details: None,
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

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.registry.changes())
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
        if is_rust_version(&start.version) {
            let flow = self.rust_flow(start)?;
            let (program, step) = RustProgram::start(&flow, start, now, true)?;
            return Ok((Box::new(program), step));
        }
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
        let start = start_of(journal)?;
        if is_rust_version(&start.version) {
            let flow = self.rust_flow(start).map_err(RebuildError::Failed)?;
            let mut program = rebuild(journal, |start, now| {
                RustProgram::start(&flow, start, now, false)
            })?;
            program.go_live();
            return Ok(Box::new(program));
        }
        let package = match source {
            Some(text) => FlowPackage::parse(text).map(Arc::new).map_err(|problem| {
                RebuildError::Failed(FlowFailure {
                    code: "exception".to_owned(),
                    message: format!("the stored code cannot be read: {problem}"),
                    details: None,
                })
            })?,
            None => self.package(start).map_err(RebuildError::Failed)?,
        };
        let limits = self.registry.limits();
        let mut program = rebuild(journal, |start, now| {
            ScriptProgram::start(&package, limits, start, now, false)
        })?;
        program.is_live = true;
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

    fn circuit_changes(&self, key: &EffectId) -> Vec<ProviderCircuitChange> {
        self.circuits.take(key)
    }

    async fn transcribe(
        &self,
        recording: &MediaContent,
        timeout_ms: u64,
        context: &CallContext,
    ) -> Result<String, CodeError> {
        let version = self.version(context)?;
        self.transcribe_recording(&version, recording, timeout_ms, context)
            .await
    }

    async fn synthesize(
        &self,
        text: &str,
        context: &CallContext,
    ) -> Result<Option<MediaContent>, CodeError> {
        let version = self.version(context)?;
        self.synthesize_speech(&version, text, context).await
    }

    fn parts(&self, agent: &AgentId, transport: &str, text: &str) -> Vec<String> {
        match self.transport(agent, transport) {
            Some(Ok(transport)) => transport.parts(text),
            Some(Err(_)) | None => vec![text.to_owned()],
        }
    }

    fn takes_speech(&self, agent: &AgentId, transport: &str) -> bool {
        // What cannot be opened sends nothing, and says why when it is sent.
        let found = self.transport(agent, transport);
        matches!(found, Some(Ok(transport)) if transport.network.takes_speech())
    }

    async fn send(
        &self,
        message: &OutgoingMessage<'_>,
        context: &CallContext,
    ) -> Result<TakenMessage, SendError> {
        let transport = self.sending_transport(&context.agent, message.transport)?;
        transport.send(message).await
    }

    async fn notify(
        &self,
        agent: &AgentId,
        notice: &QuestionNotice<'_>,
        now: Timestamp,
    ) -> Result<(), SendError> {
        let transport = self.sending_transport(agent, notice.transport)?;
        let links = self.resources.own_transports.links.as_ref();
        let link = links.and_then(|links| links.url(notice.question, now));
        let notice = QuestionNotice {
            link: link.as_deref(),
            ..*notice
        };
        transport.notify(&notice).await
    }

    fn notice_place(&self, agent: &AgentId, transport: &str) -> Result<NoticePlace, String> {
        let version = self.registry.version(agent);
        let version = version.ok_or_else(|| format!("there is no good agent {agent}"))?;
        version.notice_place(transport)
    }

    fn show_decision(&self, agent: &AgentId, transport: &str, shown: ShownDecision) {
        if let Some(Ok(transport)) = self.transport(agent, transport) {
            tokio::spawn(async move { transport.network.show_decision(&shown).await });
        }
    }

    fn show_life_sign(&self, agent: &AgentId, sign: LifeSign) {
        let Some(Ok(transport)) = self.transport(agent, &sign.transport) else {
            return;
        };
        if transport.network.offers(&sign) {
            let network = Arc::clone(&transport.network);
            self.resources.life_signs.show(agent, network, sign);
        }
    }

    fn verify_address(
        &self,
        agent: &AgentId,
        transport: &str,
        query: &BTreeMap<String, String>,
    ) -> Result<String, TransportRefusal> {
        let transport = self.receiving_transport(agent, transport)?;
        transport.network.verify_address(query)
    }

    fn transport_state(&self, agent: &AgentId, transport: &str) -> Option<Result<(), String>> {
        Some(self.transport(agent, transport)?.map(drop))
    }

    fn receive(
        &self,
        agent: &AgentId,
        transport: &str,
        request: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal> {
        let transport = self.receiving_transport(agent, transport)?;
        transport.network.receive(request)
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
