//! Values: the variables, channels and artifacts of a run, and which of them come from a tool
//! server.
//!
//! Owns [`Values`]. Decides whether a write is allowed, not when it happens.

mod set_variable;
mod trust;
mod write_channel;
