//! The JavaScript and TypeScript sandbox in which flows, hooks, tools and commands of agents run.
//!
//! Loads an agent from its folder ([`load`]), runs a flow step by step ([`FlowInstance`]) and calls the
//! functions of an agent's configuration ([`AgentRealm`]). Plain data goes in and comes out. This crate
//! knows nothing of stores, journals, HTTP or the rules of conversations: its callers perform effects and
//! host calls, record them, and decide what they mean. The interpreter and the TypeScript compiler are
//! dependencies of this crate only.
//!
//! Everything is synchronous and uses the CPU: callers use worker threads. An instance is `Send`, so any
//! thread may make the next call; one call at a time. The thread needs a stack of 1 MB.
//!
//! Invariants:
//! - No ambient authority: no clock, randomness, I/O, threads or compiler inside a realm (Z-207).
//! - A flow is a function of its source set, start and answers. [`DETERMINISM_VERSION`] is raised with
//!   every change that could break this.
//! - Every flow run has its own interpreter with its own heap (Z-208).
//! - CPU time, heap, stack and the size of every value that leaves a realm are limited (Z-209).
//! - The driver relies on no object that the author's code can change.

mod agent;
mod collect;
mod copy;
mod exception;
mod failure;
mod flow;
mod function_call;
mod generator;
mod guard;
mod host_call;
mod limits;
mod load;
mod load_error;
mod locate;
mod native;
mod package;
mod positions;
mod random;
mod realm;
mod resolve;
mod source_set;
mod strip;
mod types;
mod zone;

#[cfg(test)]
mod tests;

pub use agent::{AgentCode, AgentRealm, CallEvent, CallEventKind};
pub use failure::{ErrorData, FailureCode, ScriptFailure, SourcePosition};
pub use flow::{FlowInstance, FlowStart, FlowStep, ParkedCallStep};
pub use function_call::Argument;
pub use host_call::{CallId, HostCall};
pub use limits::ScriptLimits;
pub use load::{AgentModule, FlowModule, is_agent_folder, load};
pub use load_error::LoadError;
pub use locate::locate;
pub use realm::{LogLine, Surroundings};
pub use source_set::{DETERMINISM_VERSION, FlowLocation, ModuleSource, SourceSet};
pub use types::TYPE_DECLARATIONS;
