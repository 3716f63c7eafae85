//! The run machine. [`create`] and [`decide()`] turn a command into events; [`Run::evolve`] folds
//! events into state. See `transitions.md` for the table of what each status accepts.
//!
//! Invariants, checked by the tables in `tests/`:
//! - Exactly one terminal event, and nothing after it.
//! - Timers and node effects are a function of the state (`required_work`), so they can be
//!   rebuilt.
//! - Folding a decision's events gives the state that the decision contains.

mod advance;
mod agents;
mod announce;
mod ask;
mod budget;
mod compact;
mod decide;
mod descendants;
mod draft;
mod evolve;
mod finish;
mod fork;
mod interrupt_kind_events;
mod iteration_view;
mod limits;
mod machine;
mod memory_access;
mod memory_hooks;
mod mock;
mod model;
mod nesting;
mod new_child_run;
mod next_steps;
mod options;
mod pack;
mod questions;
mod refusal;
mod required_work;
mod rounds;
mod shared_state;
mod spawn;
mod start;
mod state;
mod tool;
mod triggers;
mod trust;
mod view;
mod work;
mod workers;
mod write;

#[cfg(test)]
mod tests;

pub use agents::{AgentPolicy, Escalation, MAX_EVENT_ID_CHARS, REASONING_TOKEN_LIMIT};
pub use announce::required_announcements;
pub use compact::compaction_batch_size;
pub use decide::{abandon, create, create_child_run, decide};
pub use draft::{Context, Decision, Definitions, Lookup};
pub use fork::{ForkSource, fork};
pub use limits::Limits;
pub use memory_access::{
    MAX_ENTRY_BYTES, Memory, MemoryNeed, MemoryQueryKind, MemoryRead, MemoryResult, SIBLING_WRITES,
};
pub use model::{ModelAnswers, ModelNeed, ReplayedModelAnswer};
pub use new_child_run::NewChildRun;
pub use next_steps::NextSteps;
pub use options::check_options;
pub use questions::count_vote;
pub use refusal::{Need, Refusal, Undecided};
pub use required_work::{required_effects, required_timers};
pub use state::{Run, State};

/// Schema work allowed for a decision.
pub use tandem_schema::Meter as WorkMeter;
pub use work::MAX_DECISION_WORK;
