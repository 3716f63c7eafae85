//! The rules: what a workflow document means and how a run of it behaves.
//!
//! Pure. No async, no clock, no randomness, no I/O: time and looked-up definitions are arguments,
//! ids are derived by hashing. Two functions decide everything about a run, [`run::decide`] and
//! [`run::Run::evolve`]; the rest of the crate serves them.
//!
//! The engine does not depend on the database that stores its events or on the protocol that shows
//! them.

pub mod agent;
pub mod chat_user;
mod conformance;
mod cost;
pub mod definition;
mod expression;
pub mod flow;
pub mod flow_run;
mod graph;
mod ids;
mod local_time;
pub mod machine;
pub mod model;
mod node;
mod object_reader;
pub mod pack;
pub mod run;
pub mod schedule;
pub mod session;
mod template;
pub mod tool;
mod value_kind;

pub use definition::{Definition, Problem};
pub use ids::{
    NOTE_PREFIX, child_run_id, definition_hash, logical_invocation_id, scheduled_run_id,
    workflow_schedule_id,
};
pub use node::{
    APPROVAL_ACTIONS, ASK_USER_ROUTINGS, Availability, FAN_OUT_POLICIES, JOIN_MODES, MAX_FAN_OUT,
    NodeType, advertised_types, node_type,
};

/// The version of the rules in this crate. A log written by a higher version is not folded.
pub const ENGINE_VERSION: u32 = 1;
