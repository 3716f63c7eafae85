//! Lifecycle: the phase of a run from its start to its end, its times, and the limits that end it.
//!
//! Owns [`Lifecycle`], and what a decision has used of the limits ([`UsageDraft`]).
//!
//! Invariants:
//! - Exactly one terminal event, and nothing after it.
//! - A run that exceeds a limit fails; it is never cut short silently.

mod budget;
mod draft;
mod end;
mod fold;
mod limits;
mod nesting;
mod options;
mod state;
mod work;

pub(in crate::run) use budget::StateSize;
pub(in crate::run) use draft::UsageDraft;
pub use limits::Limits;
pub use options::check_options;
pub(in crate::run) use state::{Lifecycle, Phase};
pub use work::MAX_DECISION_WORK;
pub(in crate::run) use work::{
    CONTINUE_AFTER_WORK, charge_event, charge_state_copy, too_much_to_check, work_exceeded,
};
