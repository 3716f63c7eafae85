//! What a decision has used of the limits so far.

use tandem_record::{Seq, Size};

#[derive(Default)]
pub(in crate::run) struct UsageDraft {
    /// What was drafted.
    pub(super) size: Size,
    /// Drafted memory when the state was last checked; `None` before the first check.
    pub(super) state_checked_at: Option<usize>,
    /// An event over the limit.
    pub(super) oversized: Option<Seq>,
    /// An event whose value is nested too deeply to be used further.
    pub(super) too_deep: Option<Seq>,
}
