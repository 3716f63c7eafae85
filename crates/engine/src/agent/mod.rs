//! The configuration of an agent as typed data.
//!
//! Owns: every field of an agent file, its defaults and its bounds, and the rules that connect fields
//! (names of flows, tools and commands). Functions of the author stay in their realm; here is only
//! known that they exist.
//!
//! Invariants:
//! - An existing [`AgentSpec`] is valid: names resolve, schemas and the prompt compile, numbers are in
//!   range.
//! - [`AgentSpec::compile`] lists every problem with a JSON pointer, not only the first.

mod admin_auth;
mod builtin_tool;
mod command;
mod compile;
mod conduct;
mod flows;
mod hitl;
mod hours;
mod limits;
mod model;
mod names;
mod prompt;
mod router;
mod schedule;
mod scheduler;
mod settings;
mod speech;
mod targets;
mod tool;
mod web_chat;

pub use admin_auth::{AdminAuthData, AdminAuthSpec, AdminChat, AdminToken};
pub use builtin_tool::{BuiltinTool, TALK_TO_HUMAN, UPDATE_MY_PROFILE, WORKFLOW_RUN, builtin_tool};
pub use command::{AgentCommands, CommandAccess, CommandSpec};
pub use conduct::{
    AgentMode, AgentTexts, Consent, Finalization, HookFailurePolicy, Hooks, InboundWindow,
    ModalityPolicy, NewMessagePolicy, OnDivergence, TextRedaction,
};
pub use flows::{FlowSpec, FlowTool, LoadedFlow};
pub use hitl::{
    AsyncPending, AsyncPendingPolicy, ConfirmDefaults, ConfirmTimeoutBehavior, EscalationContext,
    EscalationDefaults, EscalationFallback, HitlSpec, HitlTarget, HumanOffer, NoticeTarget,
    TakeoverAdapter, TakeoverSpec, UnrecognizedReply,
};
pub use hours::OpeningHours;
pub use limits::{AgentLimits, AgentTimeouts, RetrySpec};
pub use model::{AgentModel, ScriptSource};
pub use prompt::{Prompt, PromptError, PromptTemplate};
pub use router::{FlowRouter, RouterFallback};
pub use schedule::{read_schedule, written_schedule};
pub use scheduler::SchedulerSpec;
pub use speech::{AgentSpeech, SpeechEncoding};
pub use tool::{AgentTool, AgentToolKind, ToolApproval};
pub use web_chat::{WEB_TRANSPORT, WebChatSpec};

use crate::flow::AuthorSchema;
use crate::session::Language;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::conversation::ScheduleDefinition;

/// One thing wrong with an agent's configuration.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AgentProblem {
    /// JSON pointer to the place.
    pub path: String,
    pub message: String,
}

/// An agent that was checked and compiled.
#[derive(Debug)]
pub struct AgentSpec {
    pub agent_id: String,
    /// As it was written, with markers in the place of functions.
    pub config: Value,
    pub prompt: Prompt,
    /// `context` is a function of the author.
    pub has_context: bool,
    pub output_schema: Option<AuthorSchema>,
    pub language: Language,
    pub modality: ModalityPolicy,
    pub tools: Vec<AgentTool>,
    pub commands: AgentCommands,
    pub hooks: Hooks,
    pub flows: BTreeMap<String, FlowSpec>,
    /// Users may start flows with `/flow <id>`.
    pub flow_command: bool,
    pub flow_router: Option<FlowRouter>,
    pub hitl: HitlSpec,
    /// Without it every privileged action is denied.
    pub admin_auth: Option<AdminAuthSpec>,
    /// The schedules of its file, by their keys.
    pub schedules: BTreeMap<String, ScheduleDefinition>,
    pub scheduler: SchedulerSpec,
    /// The only user who is served.
    pub single_user: Option<String>,
    pub texts: AgentTexts,
    pub limits: AgentLimits,
    pub timeouts: AgentTimeouts,
    pub retry: RetrySpec,
    pub tts_voice: String,
    /// Without it speech is neither understood nor made.
    pub speech: Option<AgentSpeech>,
    pub finalization: Finalization,
    /// Transport id to its configuration; empty means the loopback transport.
    pub transports: BTreeMap<String, Value>,
    /// Without it nobody reaches the agent without a key.
    pub web_chat: Option<WebChatSpec>,
    /// Origins that the agent's functions may call over HTTP.
    pub http_origins: Vec<String>,
    pub model: Option<AgentModel>,
    /// The model that reads answers to confirmations with a schema, if there is one.
    pub extraction_model: Option<AgentModel>,
    pub inbound: InboundWindow,
    pub agent_mode: AgentMode,
    pub on_new_message: NewMessagePolicy,
    pub on_divergence: OnDivergence,
    /// After every turn its flows are run again from their journals and compared.
    pub strict: bool,
    pub redaction: TextRedaction,
    pub consent: Option<Consent>,
    /// Workflows that its flows and its model may start; absent means all for flows, none for the
    /// model.
    pub workflows: Option<Vec<String>>,
    /// The model is offered the tool `update_my_profile`.
    pub profile_tool: bool,
}

#[cfg(test)]
mod tests;
