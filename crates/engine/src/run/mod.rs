//! The run machine. [`create`] and [`decide()`] turn a command into events; [`Run::evolve`] folds
//! events into state. See `transitions.md` for the table of what each status accepts.
//!
//! The machine is split into slices: `lifecycle`, `scheduling`, `values`, `children`, `questions`,
//! `agents`, `memory` and `replay`. Each folder owns its part of the state (`state.rs`, changed by
//! `fold.rs`) and of a decision (`draft.rs`). `decide/` has one thin file per command.
//!
//! Invariants, checked by the tables in `tests/`:
//! - Exactly one terminal event, and nothing after it.
//! - Timers and node effects are a function of the state (`required_work`), so they can be
//!   rebuilt.
//! - Folding a decision's events gives the state that the decision contains.

mod agents;
mod calls;
mod children;
mod decide;
mod draft;
mod evolve;
mod lifecycle;
mod machine;
mod memory;
mod questions;
mod refusal;
mod replay;
mod required_work;
mod scheduling;
mod shared_state;
mod state;
mod values;
mod view;

#[cfg(test)]
mod tests;

pub use agents::{AgentPolicy, Escalation, MAX_EVENT_ID_CHARS, REASONING_TOKEN_LIMIT};
pub use calls::{ModelAnswers, ModelNeed, ReplayedModelAnswer};
pub use children::{NewChildRun, TreePlaces};
pub use decide::{abandon, create, create_child_run, decide};
pub use draft::{Context, Decision, Definitions, Lookup};
pub use lifecycle::{Limits, MAX_DECISION_WORK, check_options};
pub use memory::{
    MAX_ENTRY_BYTES, Memory, MemoryNeed, MemoryQueryKind, MemoryRead, MemoryResult, SIBLING_WRITES,
    compaction_batch_size,
};
pub use questions::{NextSteps, NoticeRule, count_vote, required_announcements, required_notices};
pub use refusal::{Need, Refusal, Undecided};
pub use replay::{ForkSource, fork};
pub use required_work::{required_effects, required_timers};
pub use state::{Run, State};

pub(crate) use draft::DecisionDraft;
pub(crate) use memory::NewMemoryEntry;
pub(crate) use scheduling::{Done, NodeOutcome};

/// Schema work allowed for a decision.
pub use tandem_schema::Meter as WorkMeter;
