//! The run machine. [`create`] and [`decide`] turn a wish into facts; [`Run::evolve`] folds facts
//! into state. See `transitions.md` for the table of what each status accepts.
//!
//! Invariants, checked by the tables in `tests/`:
//! - Exactly one terminal event, and nothing after it.
//! - Timers and node effects are a function of the state ([`wants`]), so they can be rebuilt.
//! - Folding a decision's events gives the state the decision says it leads to.

mod advance;
mod agents;
mod announce;
mod ask;
mod birth;
mod budget;
mod compact;
mod decide;
mod descendants;
mod evolve;
mod finish;
mod foresee;
mod fork;
mod limits;
mod mock;
mod model;
mod nesting;
mod older_names;
mod options;
mod pack;
mod questions;
mod refusal;
mod remember;
mod remember_hooks;
mod rounds;
mod spawn;
mod start;
mod state;
mod tool;
mod triggers;
mod trust;
mod turn;
mod turn_view;
mod view;
mod wants;
mod workers;
mod write;

#[cfg(test)]
mod tests;

pub use agents::{AgentPolicy, Escalation, MAX_EVENT_ID_CHARS, REASONING_TOKEN_LIMIT};
pub use announce::wanted_announcements;
pub use birth::Birth;
pub use compact::sources_at_once;
pub use decide::{abandon, bear, create, decide};
pub use foresee::Ahead;
pub use fork::{Source, fork};
pub use limits::Limits;
pub use model::{Asked, ModelNeed, Reheard};
pub use options::check_options;
pub use questions::count_vote;
pub use refusal::{Need, Refusal, Undecided};
pub use remember::{
    MAX_ENTRY_BYTES, Memory, MemoryNeed, MemoryRead, Recall, Recalled, SIBLING_WRITES,
};
pub use state::{Run, State};
pub use turn::{Context, Decision, Definitions, Lookup};
pub use wants::{TimerWish, wanted_effects, wanted_timers};

/// Schema work allowed for a decision.
pub use tandem_schema::Meter as SchemaMeter;
