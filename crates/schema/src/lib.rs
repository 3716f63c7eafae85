//! JSON Schemas from untrusted authors, made safe to compile and to evaluate.
//!
//! Owns: the limits of a schema, the estimate of what an evaluation costs, and the only use of the
//! validator crate for schemas that authors, callers or packs supply.
//!
//! Does not depend on workflows, runs or time. Nothing here reads a clock, so the same schema and
//! value always give the same answer, on every host and in every replay.
//!
//! Invariants:
//! - A [`Schema`] compiles only if the work for any single value is bounded: linear-time patterns,
//!   no reference cycle that stays at the same value, no exponential nesting.
//! - The work of an evaluation is computed from the schema and the shape of the value before the
//!   evaluation starts. Above [`MAX_WORK`] the value is refused without being evaluated.
//! - A unit of work is about one nanosecond of an optimised build.

mod cost;
mod graph;
mod known_keys;
mod limits;
mod measure;
mod meter;
mod pattern;
mod refusal;
mod schema;

pub use jsonschema::ValidationError;
pub use jsonschema::error::ValidationErrorKind;
pub use known_keys::UnknownKey;
pub use limits::{Budget, MAX_PATTERNS, MAX_WORK};
pub use meter::Meter;
pub use pattern::Pattern;
pub use refusal::SchemaRefusal;
pub use schema::{Schema, ValidationFailure, short_message};

#[cfg(test)]
mod tests;
