//! What a flow may ask of the runtime, and what it gets back.
//!
//! Owns: the effects a flow yields as typed data, their validation, their fingerprint, and the errors
//! thrown into flows. Does not perform anything and does not know who may speak in a session.
//!
//! Invariants:
//! - A [`FlowEffect`] that was parsed is complete: required fields are there, numbers are in range,
//!   schemas compile.
//! - The fingerprint is computed from what the author yielded, not from the typed form, so a later
//!   version of this module cannot make old runs diverge.

mod author_schema;
pub mod effect;
mod error;
mod fingerprint;
mod parse;
mod reminder;
mod schema_source;

pub use author_schema::AuthorSchema;
pub use effect::FlowEffect;
pub use error::{BadEffect, FlowError, FlowErrorName};
pub use fingerprint::fingerprint;
pub(crate) use fingerprint::is_function;
pub use parse::not_an_effect;
pub(crate) use parse::{MAX_KEYWORDS, MAX_TIMEOUT_SECONDS};
pub use reminder::{MAX_REMINDERS, Reminder};
pub use schema_source::SchemaSource;

#[cfg(test)]
mod tests;
