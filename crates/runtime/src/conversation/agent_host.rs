//! What the runtime needs of the host's agents: their settings, the code of their flows, and the calls of
//! their functions, models, tools and transports.
//!
//! The runtime calls these after the request was committed, and records what they return before anything
//! follows from it. An implementation stores nothing that a later call relies on.

use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::conversation::{
    AdminActor, AgentSummary, ChatAnswer, ChatMessage, CodeCall, CodeError, CodeOutcome,
    FlowFailure, FlowRecord, FlowRunStart, ModelPurpose, SendRequest,
};
use tandem_record::{AgentId, EffectId, Object, Recorded, SessionId, TenantId, Timestamp};

/// The agents of a host.
#[async_trait]
pub trait AgentHost: Send + Sync {
    /// The version of an agent that new turns use; `None` when there is no good one.
    fn agent(&self, agent: &AgentId) -> Option<Arc<AgentSpec>>;

    /// What readers are shown of every agent, in order of their ids.
    fn summaries(&self) -> Vec<AgentSummary>;

    /// The code with this hash as text, to be stored with the first run that uses it; `None` for a flow in
    /// Rust, whose code cannot be stored.
    fn flow_source(&self, agent: &AgentId, version: &str) -> Option<Arc<str>>;

    /// Starts the code of a new run, up to its first step. Uses the CPU: called on a thread that may block.
    fn start_program(
        &self,
        start: &FlowRunStart,
        now: Timestamp,
    ) -> Result<(Box<dyn FlowProgram>, ProgramStep), FlowFailure>;

    /// Runs the stored code again from the journal, up to the effect at which it waits. Called on a thread
    /// that may block.
    fn rebuild_program(
        &self,
        source: Option<&str>,
        journal: &[Recorded<FlowRecord>],
    ) -> Result<Box<dyn FlowProgram>, RebuildError>;

    /// Calls a function of the agent. Ends within the call's timeout.
    async fn call_code(&self, call: &CodeCall, context: &CallContext) -> CodeOutcome;

    /// Calls a tool, with its hooks, timeout and retries. `context.key` is its idempotency key.
    async fn call_tool(&self, name: &str, args: &Value, context: &CallContext) -> CodeOutcome;

    /// Calls the agent's model. Pieces of a streamed answer go to `pieces` as they arrive.
    async fn call_model(
        &self,
        request: &ChatModelRequest,
        context: &CallContext,
        pieces: &(dyn for<'p> Fn(&'p str) + Send + Sync),
    ) -> Result<ChatAnswer, CodeError>;

    /// Makes text of what is said in a message. Ends within the timeout.
    async fn transcribe(
        &self,
        media: &Value,
        timeout_ms: u64,
        context: &CallContext,
    ) -> Result<String, CodeError>;

    /// Hands a text to its transport. `key` is the same at every attempt.
    async fn send(
        &self,
        message: &SendRequest,
        key: &EffectId,
        context: &CallContext,
    ) -> Result<Option<String>, SendError>;
}

/// The code of one flow run, parked at an effect. It is disposable: the journal rebuilds it.
pub trait FlowProgram: Send {
    /// Goes on to the next step. `context` has the members of `ctx` that the turn changes.
    fn resume(&mut self, with: Resume, context: &Object, now: Timestamp) -> ProgramStep;

    /// Validates a reply with the `responseSchema` of the effect at which the code waits, where that schema
    /// is code. Returns the parsed value, or what is wrong.
    fn check_reply(&mut self, value: &Value, now: Timestamp) -> Result<Value, Vec<String>>;

    /// Ends the code so that its `finally` blocks run. Returns the effects it still yielded, which nobody
    /// performs.
    fn close(&mut self) -> Vec<Value>;

    /// About how much memory it takes.
    fn memory_bytes(&self) -> usize;
}

/// Why a program cannot be rebuilt from its journal.
#[derive(Debug, Clone, PartialEq)]
pub enum RebuildError {
    /// The code did something else than its journal says.
    Diverged {
        step: u32,
        expected: Value,
        actual: Value,
    },
    /// The code cannot be loaded at all.
    Failed(FlowFailure),
}

/// What every call knows of the conversation it belongs to.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub tenant: TenantId,
    pub agent: AgentId,
    /// `None` for a call outside a session.
    pub session: Option<SessionId>,
    /// The identity of the call: the same at every attempt.
    pub key: EffectId,
    /// The members of `ctx` that are data: `user`, `session`, `inbound`, `replyTarget`, `turnId`, ….
    pub data: Object,
    /// The session's keys as the call sees them, reserved ones included.
    pub kv: BTreeMap<String, Value>,
    /// The admin who acts, after authorization.
    pub actor: Option<AdminActor>,
    pub now: Timestamp,
}

/// A call of the agent's model.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatModelRequest {
    pub purpose: ModelPurpose,
    /// Without the system prompt, which the host renders for chat calls.
    pub messages: Vec<ChatMessage>,
    /// Names of the tools to offer.
    pub tools: Vec<String>,
    /// Readers may see the answer while it is written.
    pub streams: bool,
}

/// Why a text was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    pub message: String,
    /// Whether another attempt may succeed.
    pub is_transient: bool,
}
