//! The run of a flow as a run: its journal, and the generic events that follow from it, so that
//! clients of runs and the inbox see a flow like any other run.
//!
//! The session decides what a flow does. This machine only stores the journal and derives the rest:
//! it requests no effects and has no timers. Effects of the flow are its nodes, named `s<step>`.
//!
//! Invariants:
//! - Every record of the journal is an [`Event::Flow`] of the run's log, in order.
//! - The generic events of a record follow from the record and the state before it, and are in the
//!   same commit.
//! - A refusal or a timeout is a result of a node, not its failure.
//!
//! [`Event::Flow`]: tandem_record::Event::Flow

mod derive;
mod fold;
mod machine;
mod question;
mod resolution;
mod state;
mod view;

pub use machine::{FlowRunCommand, FlowRunContext, FlowRunRefusal, NoFlowRunEffect};
pub(crate) use state::workflow_id_of;
pub use state::{FlowRun, FlowRunState};

#[cfg(test)]
mod tests;
