//! Calls: nodes whose work is an effect with an answer, namely models, tools and packs.
//!
//! Decides what is called and what follows from an answer. The call itself is recorded as the
//! node's work before it is made, so these modules own no state.

mod model;
mod pack;
mod tool;

pub(in crate::run) use model::{Call, call_id};
pub use model::{ModelAnswers, ModelNeed, ReplayedModelAnswer};
pub(in crate::run) use tool::tool_effect;
