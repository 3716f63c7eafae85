//! The schedule machine: given a definition, when time passes or turns end, then these events, timers and effects
//! follow.

mod campaigns;
mod claims;
mod cron;
mod definitions;
mod harness;
mod missed;
mod user_query;
mod workflows;
