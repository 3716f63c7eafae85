//! The agents of a host, loaded from folders or defined in Rust: what the runtime calls through
//! [`AgentHost`](tandem_runtime::conversation::AgentHost).
//!
//! Owns: finding, loading and watching agents ([`AgentRegistry`], [`AgentWatcher`]), the programs of flow
//! runs, and the calls of an agent's functions, tools, model and transports ([`FolderAgents`]). Stores
//! nothing and decides nothing about a conversation: the runtime records what a call returns before anything
//! follows from it.
//!
//! Invariants:
//! - A version of an agent never changes. A call keeps the version it began with.
//! - A broken file leaves its last good content in use.
//! - What the code of a flow sees comes from its stored package and its journal, so that it can be run again.
//! - Every call of an author's function is bounded in CPU time and in wall time.

mod agent_version;
mod call_session;
mod chat_models;
mod circuit_notes;
mod code_call;
mod discover;
mod flow_package;
mod host;
mod http_access;
mod loaded_agent;
mod model_call;
mod model_scripts;
mod program;
mod realm_thread;
mod rebuild;
mod registry;
mod rust_code;
mod rust_program;
mod rust_tool;
mod speech;
mod summary;
mod system_prompt;
mod test_recorder;
mod tool_call;
mod transports;
mod watch;

#[cfg(test)]
mod tests;

pub use chat_models::{ModelAccess, OperatorModel};
pub use host::{AgentResources, FolderAgents};
pub use registry::{AgentRegistry, check_agent};
pub use rust_code::{RustAgent, RustAgentError, RustAgents};
pub use rust_tool::{RustTool, ToolContext};
pub use test_recorder::{
    LoopbackFaults, LoopbackMessage, LoopbackReply, MemoryRecorder, RecordedToolCall,
    RecorderFault, TestRecorder,
};
pub use transports::{
    ChatTransport, LifeSigns, LoopbackTransport, MessageTemplate, NoticeLinks, TransportResources,
    WebChatTransport,
};
pub use watch::AgentWatcher;
