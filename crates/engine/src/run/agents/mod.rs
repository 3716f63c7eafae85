//! Agents: who may speak in a run, the supervisor's turn, and handing work to its workers.
//!
//! Invariants, checked by the tables in `run/tests/`:
//! - `Event::Agent` is drafted in one place, [`DecisionDraft::emit_agent_event`], and only with a [`AgentEmitter`], which only
//!   the node types the protocol authorizes have.
//! - A decision is recorded before anything that follows from it.
//! - Each worker's handoff is a chain: every step names the one before as its cause, and the first
//!   names the decision.
//! - A decision below the floor is announced and asked about before anything of it happens.
//! - What a critic has to check is not merged, and does not end the run, before it passed.

mod carry_out;
mod emitter;
mod fan_out;
mod fold;
mod handoff;
mod low_confidence;
mod mock;
mod policy;
mod supervise;
mod verdict;
mod verify;

pub(in crate::run) use carry_out::{ANSWER, PROCEED};
pub use mock::REASONING_TOKEN_LIMIT;
pub use policy::{AgentPolicy, Escalation};
pub use supervise::MAX_EVENT_ID_CHARS;
pub(in crate::run) use supervise::SupervisorAnswer;
