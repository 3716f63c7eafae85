//! Flows driven by hand, as the engine drives them.

mod failures;
mod fixtures;
mod results;
mod steps;
