//! Scheduling: which nodes run, in which order, and how each of them ends.
//!
//! Owns the state of the nodes and of the channel triggers ([`Scheduling`]), and what a decision
//! has started so far ([`SchedulingDraft`]). Does not know what a question, a worker or a memory
//! entry is: a node's kind hands over to the folder that does.
//!
//! Invariants:
//! - Only the fold of an event changes a node's state.
//! - A node that starts gets exactly one started event per attempt.

mod advance;
mod draft;
mod finish;
mod fold;
mod node_state;
mod perform;
mod prepare;
mod rounds;
mod start;
mod state;
mod triggers;

pub(in crate::run) use draft::SchedulingDraft;
pub(crate) use finish::Done;
pub(in crate::run) use finish::RUN_CANCELLED;
pub(in crate::run) use fold::NodeStart;
pub(crate) use node_state::NodeState;
pub(in crate::run) use start::NodeEntry;
pub(crate) use start::NodeOutcome;
pub(in crate::run) use state::Scheduling;
