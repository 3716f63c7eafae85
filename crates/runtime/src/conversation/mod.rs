//! Conversations as machines of this runtime: sessions, flow runs and users.

mod agent_host;

pub use agent_host::{AgentHost, CallContext, FlowProgram, ModelRequest, RebuildError, SendError};
