//! The session machine: given an agent, when a user, a timer or an admin acts, then these texts and
//! events follow.

mod context;
mod escalations;
mod flows;
mod harness;
mod hooks;
mod plain_agent;
