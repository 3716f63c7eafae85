//! What the runtime needs of the host's agents: their settings, the code of their flows, and the calls of
//! their functions, models, tools and transports.
//!
//! The runtime calls these after the request was committed, and records what they return before anything
//! follows from it. An implementation stores nothing that a later call relies on.

use super::media::MediaContent;
use super::network::{
    LifeSign, QuestionNotice, ShownDecision, TransportDelivery, TransportRefusal, TransportRequest,
};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::{ProgramStep, ReadKeys, Resume};
use tandem_record::conversation::{
    AdminActor, AgentSummary, CandidateOrigin, ChatAnswer, ChatMessage, CodeCall, CodeError,
    CodeOutcome, FlowFailure, FlowRecord, FlowRunStart, LedgerMessage, ModelPurpose,
    ProviderCircuitChange,
};
use tandem_record::{
    AgentId, EffectId, Object, Owner, Recorded, SessionId, TenantId, Timestamp, TraceContext,
};
use tokio::sync::watch;

/// The agents of a host.
#[async_trait]
pub trait AgentHost: Send + Sync {
    /// The version of an agent that new turns use; `None` when there is no good one.
    fn agent(&self, agent: &AgentId) -> Option<Arc<AgentSpec>>;

    /// What readers are shown of every agent, in order of their ids.
    fn summaries(&self) -> Vec<AgentSummary>;

    /// Counts the loads that changed what new turns use; `None` where nothing changes.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

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

    /// What became of the circuits of providers during the call with this key. Each change is given once.
    fn circuit_changes(&self, _key: &EffectId) -> Vec<ProviderCircuitChange> {
        Vec::new()
    }

    /// Makes text of what is said in a recording. Ends within the timeout.
    async fn transcribe(
        &self,
        recording: &MediaContent,
        timeout_ms: u64,
        context: &CallContext,
    ) -> Result<String, CodeError>;

    /// Makes speech of a text; `None` if nobody does that for the agent.
    async fn synthesize(
        &self,
        text: &str,
        context: &CallContext,
    ) -> Result<Option<MediaContent>, CodeError>;

    /// The parts in which a text is sent: the networks of some transports take only short messages. Not empty, and
    /// the same at every attempt.
    fn parts(&self, _agent: &AgentId, _transport: &str, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    /// Whether a transport sends the speech of a text. For others none is made.
    fn takes_speech(&self, _agent: &AgentId, _transport: &str) -> bool {
        true
    }

    /// Hands a message to its transport.
    async fn send(
        &self,
        message: &OutgoingMessage<'_>,
        context: &CallContext,
    ) -> Result<TakenMessage, SendError>;

    /// Tells somebody outside of a question, by a transport of an agent.
    async fn notify(
        &self,
        _agent: &AgentId,
        notice: &QuestionNotice<'_>,
        _now: Timestamp,
    ) -> Result<(), SendError> {
        let transport = notice.transport;
        Err(SendError::permanent(format!(
            "the transport {transport:?} gives no notices"
        )))
    }

    /// What a rule of the host about notices needs to know of a transport; `Err` says why it can give none.
    fn notice_place(&self, agent: &AgentId, transport: &str) -> Result<NoticePlace, String> {
        Err(format!("the agent {agent} has no transport {transport:?}"))
    }

    /// Shows on a network what became of a decision that was made there. Returns at once; nobody learns of a failure.
    fn show_decision(&self, _agent: &AgentId, _transport: &str, _shown: ShownDecision) {}

    /// Answers a network that asks whether an address is that of the transport: `query` has the parameters of its
    /// request.
    fn verify_address(
        &self,
        _agent: &AgentId,
        _transport: &str,
        _query: &BTreeMap<String, String>,
    ) -> Result<String, TransportRefusal> {
        Err(TransportRefusal::Unknown)
    }

    /// Whether a transport of an agent can be used: `Err` says what it lacks, `None` that there is none.
    fn transport_state(&self, _agent: &AgentId, _transport: &str) -> Option<Result<(), String>> {
        None
    }

    /// Shows the user a sign of life, if the transport offers it. Returns at once; nobody learns of a failure.
    fn show_life_sign(&self, agent: &AgentId, sign: LifeSign);

    /// Reads what a network delivered to a transport of an agent, after it has verified where it comes from.
    fn receive(
        &self,
        agent: &AgentId,
        transport: &str,
        request: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal>;
}

/// A transport that gives notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticePlace {
    /// Whose conversations it has.
    pub owner: Owner,
    /// Questions can be decided on the network.
    pub takes_decisions: bool,
}

/// A message on its way to a transport.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingMessage<'a> {
    pub transport: &'a str,
    pub to: &'a str,
    pub text: &'a str,
    /// The text as speech, where it is to be spoken.
    pub speech: Option<&'a MediaContent>,
    /// The same at every attempt.
    pub key: &'a EffectId,
    /// An earlier attempt may have reached the network: nobody knows how it ended.
    pub may_be_repeated: bool,
    /// What the text is for, where that is known.
    pub origin: Option<CandidateOrigin>,
    /// When the recipient last wrote; `None` where that is not known.
    pub last_received_at: Option<Timestamp>,
}

/// What a network says of a message that it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenMessage {
    /// The id that it gave the message, if it gives one.
    pub id: Option<String>,
    /// The template that was sent instead of the text.
    pub template: Option<String>,
}

/// The code of one flow run, parked at an effect. It is disposable: the journal rebuilds it.
pub trait FlowProgram: Send {
    /// Goes on to the next step. `context` has the members of `ctx` that the turn changes.
    fn resume(&mut self, with: Resume, context: &Object, now: Timestamp) -> ProgramStep;

    /// Validates a reply with the `responseSchema` of the effect at which the code waits, where that schema
    /// is code. Returns the parsed value, or what is wrong.
    fn check_reply(&mut self, value: &Value, now: Timestamp) -> Result<Value, Vec<String>>;

    /// Calls `processBeforeForward` of the effect at which the code waits. It reads the session's keys and changes
    /// nothing. Ends within the timeout as far as the code can be stopped. Code without such functions lets nothing
    /// through.
    fn filter_input(
        &mut self,
        _input: &Value,
        _keys: &ReadKeys,
        _timeout_ms: u64,
        _now: Timestamp,
    ) -> Result<Value, FilterFailure> {
        Err(FilterFailure {
            message: "the code has no filter".to_owned(),
            is_lost: false,
        })
    }

    /// Ends the code so that its `finally` blocks run. Returns the effects it still yielded, which nobody
    /// performs.
    fn close(&mut self) -> Vec<Value>;

    /// About how much memory it takes.
    fn memory_bytes(&self) -> usize;
}

/// Why a filter of a bridge gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterFailure {
    pub message: String,
    /// The program cannot go on. Its journal rebuilds it.
    pub is_lost: bool,
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
    /// The last messages of the session, oldest first.
    pub messages: Arc<[LedgerMessage]>,
    /// The admin who acts, after authorization.
    pub actor: Option<AdminActor>,
    /// The trace of the conversation, with the span of the turn: calls to the outside carry it on.
    pub trace: Option<TraceContext>,
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
    /// The transport takes nothing for now: this counts as no attempt.
    pub is_held: bool,
    /// How long the transport wants to be left alone.
    pub retry_after_ms: Option<u64>,
    /// The recipient has not written for too long (Z-240).
    pub is_window_closed: bool,
}

impl SendError {
    /// Another attempt may succeed.
    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            is_transient: true,
            ..Self::permanent(message)
        }
    }

    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_transient: false,
            is_held: false,
            retry_after_ms: None,
            is_window_closed: false,
        }
    }

    /// Nothing was attempted: too much was sent just before.
    pub fn held(message: impl Into<String>, retry_after_ms: u64) -> Self {
        Self {
            is_held: true,
            retry_after_ms: Some(retry_after_ms),
            ..Self::transient(message)
        }
    }

    pub fn window_closed() -> Self {
        Self {
            is_window_closed: true,
            ..Self::permanent("the recipient has not written for too long")
        }
    }
}
