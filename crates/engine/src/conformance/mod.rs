//! Everything that exists for conformance tests only, behind one seam.
//!
//! The machine and the definition know `Kind::Conformance` and ask it; they name no test-only kind.
//! Behind the seam are:
//! - the test-only node types ([`NODE_TYPES`]) and the hooks of `core.identity`: `kind.rs` parses and
//!   classifies them, `execute.rs` admits, prepares, performs and finishes them;
//! - the memory operations of fixtures (`memory_hook.rs`);
//! - the mock agent: its configuration (`mock_agent.rs`) and its events (`mock_agent_events.rs`);
//! - the mock providers of model calls: their scripts (`mock_provider.rs`) and the calls that follow
//!   a script (`mock_call.rs`);
//! - the settings that script a supervisor, a verifier or a conversation (`scripts.rs`);
//! - the rules by workflow id and role: where all this exists and who may use it (`rules.rs`).
//!
//! The recorded work of a model call may hold a mock provider's script, and a scripted source is one
//! of the sources of a supervisor's decisions. The machine treats both like any other work or source.

mod execute;
mod kind;
mod memory_hook;
mod mock_agent;
mod mock_agent_events;
mod mock_call;
mod mock_provider;
mod rules;
pub(crate) mod scripts;

pub(crate) use execute::admit;
pub(crate) use kind::{ConformanceKind, NODE_TYPES, identity_hook, parse};
pub(crate) use mock_call::{no_prompt_library, rebase_call};
pub use mock_provider::{KEY as MOCK_PROVIDER_KEY, MOCK_PROVIDER, MOCK_PROVIDERS};
pub(crate) use mock_provider::{Mock, read as read_mock_provider};
pub(crate) use rules::{AllowedHooks, may_omit_inputs, refused_node};
pub use rules::{ConformanceTypes, is_conformance};
