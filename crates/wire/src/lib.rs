//! Shapes of the OpenWOP protocol, and the one projection from stored events to them. REST,
//! streams, bundles and exports all pass [`project`], so that masking and naming are decided in
//! one place. No I/O, no state.
//!
//! `conversation` has the shapes of this host's own surface for conversations, with a projection of its
//! own for the events of sessions.
//!
//! The next protocol major is a module beside `v1`; the two are never mixed. [`project`] chooses
//! between them by the reader.

pub mod conversation;
mod fields;
pub mod project;
pub mod v1;
