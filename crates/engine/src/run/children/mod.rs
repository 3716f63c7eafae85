//! Children: the runs that nodes of a run start, wait for and cancel.
//!
//! Owns the list of children ([`Children`]), and the children that a decision creates
//! ([`ChildrenDraft`]).
//!
//! Invariants:
//! - A child is created in the commit that names it.
//! - A decision starts no more runs than it has places for.

mod cancel;
mod descendants;
mod draft;
mod flow;
mod new_child_run;
mod outcome;
mod spawn;
mod state;

pub use descendants::TreePlaces;
pub(in crate::run) use draft::ChildrenDraft;
pub(in crate::run) use flow::{flow_results, reported as flow_reported};
pub use new_child_run::NewChildRun;
pub(in crate::run) use outcome::{awaiting_node, child_ended, resume_child_mirror};
pub(in crate::run) use spawn::ChildRunSpec;
pub(in crate::run) use state::Children;
