//! Children: the runs that nodes of a run start, wait for and cancel.
//!
//! Owns the list of children and the allowance of descendants ([`Children`]), and the children that
//! a decision creates ([`ChildrenDraft`]).
//!
//! Invariants:
//! - A child is created in the commit that names it.
//! - No run gives away more descendants than it has.

mod cancel;
mod descendants;
mod draft;
mod new_child_run;
mod outcome;
mod spawn;
mod state;

pub(in crate::run) use draft::ChildrenDraft;
pub use new_child_run::NewChildRun;
pub(in crate::run) use outcome::{awaiting_node, child_ended, resume_child_mirror};
pub(in crate::run) use spawn::ChildRunSpec;
pub(in crate::run) use state::Children;
