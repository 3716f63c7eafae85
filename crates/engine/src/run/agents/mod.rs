//! Agents: which nodes may emit agent events, the supervisor's iteration, and handing work to
//! workers.
//!
//! Owns [`Agents`]: decisions, verdicts, the workers of dispatch nodes and what waits for a verifier.
//!
//! Invariants, checked by the tables in `run/tests/`:
//! - `Event::Agent` is drafted in one place, `DecisionDraft::emit_agent_event_with_cause`, and only
//!   with an `AgentEmitter`. Only the node types that the protocol authorizes have one.
//! - A decision is recorded before anything that follows from it.
//! - The handoff of each worker is a chain: every step names the previous step as its cause, and
//!   the first step names the decision.
//! - A decision below the confidence floor is recorded as such and put to a person before any of it
//!   is carried out.
//! - What a verifier has to check is not merged, and does not end the run, before it passed.

mod carry_out;
mod emitter;
mod fan_out;
mod fold;
mod handoff;
mod held_decision;
mod low_confidence;
mod policy;
mod reasoning;
mod state;
mod supervise;
mod verdict;
mod verify;
mod workers;

pub(in crate::run) use carry_out::{ANSWER, PROCEED};
pub(in crate::run) use held_decision::{resolve_at_dispatch, resolve_low_confidence};
pub use policy::{AgentPolicy, Escalation};
pub use reasoning::REASONING_TOKEN_LIMIT;
pub(in crate::run) use state::{Agents, PublishedDecision};
pub use supervise::MAX_EVENT_ID_CHARS;
pub(in crate::run) use supervise::SupervisorAnswer;
pub(crate) use workers::{WorkerState, WorkerStep};
