//! Flows driven by hand, as the engine drives them.

mod failures;
mod filters;
mod fixtures;
mod results;
mod steps;
