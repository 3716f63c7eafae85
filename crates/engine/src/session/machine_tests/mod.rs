//! The session machine: given an agent, when a user, a timer or an admin acts, then these texts and
//! events follow.

mod admin_commands;
mod admins;
mod approvals;
mod bounds;
mod bursts;
mod context;
mod detached;
mod divergence;
mod effects;
mod endings;
mod escalations;
mod flows;
mod harness;
mod hooks;
mod modes;
mod people;
mod plain_agent;
mod programs;
mod questions;
mod random_days;
mod speech;
mod workflows;
