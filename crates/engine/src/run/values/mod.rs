//! Values: the variables, channels and artifacts of a run, and which of them come from a tool
//! server.
//!
//! Owns [`Values`]. Decides whether a write is allowed, not when it happens.

mod fold;
mod set_variable;
mod state;
mod trust;
mod write_channel;

pub(in crate::run) use fold::ChannelWritten;
pub(in crate::run) use state::Values;
