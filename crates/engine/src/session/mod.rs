//! What a message means in a conversation, as far as it follows from text and configuration alone.
//!
//! Owns: reading answers to confirmations, commands, the rights of admins, rates of senders. Does not
//! know the state of a session.
//!
//! Invariants:
//! - The work for one message is bounded: only its first characters are looked at.
//! - Authorization fails closed: what is not known is denied.

pub mod admin_auth;
mod command_args;
pub mod command_line;
pub mod confirm;
mod keywords;
mod language;
mod normalize;
mod rate;
mod scalar;

pub use keywords::{KeywordList, KeywordMatch, Keywords};
pub use language::Language;
pub use rate::{RateWindow, SenderRates};

#[cfg(test)]
mod tests;
