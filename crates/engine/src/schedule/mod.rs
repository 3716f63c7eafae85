//! Schedules: when occurrences take place, who has the claim of one, and what became of the turns of its users.
//!
//! Owns: the machine of one schedule (`when:<scheduleId>`), cron expressions and time zones, filters of users.
//! Does not know sessions, workflows or stores: turns and runs of workflows are work a decision requests, and their
//! outcomes come back as commands.
//!
//! Invariants:
//! - An occurrence is claimed by one event of the schedule's stream, with the next one; nobody claims it again.
//! - A run has at most as many turns under way as its limits say. Which turns may begin follows from the state.
//! - An occurrence of a workflow is over once its run began: `srun-…` names the occurrence, `run-…` the run.
//! - The state of a run has a bounded size, however many recipients it has: their list is in the log and in rows.
//! - A run belongs to whoever claimed it until it shows no sign for the time of its claim. Taking it over raises its
//!   attempt and repeats nothing that is recorded.

mod cron;
mod decide;
mod draft;
mod due;
mod evolve;
mod runs;
mod state;
mod user_query;

pub use cron::{Occurrences, parse_cron};
pub use decide::{ScheduleContext, ScheduleRefusal, ScheduleReply, occurrence_id};
pub use state::{ActiveRun, KnownSchedule, Schedule};
pub use user_query::{UserFacts, UserQuery};

#[cfg(test)]
mod tests;
