//! What a decision has to know about the question that the run waited for before.

use crate::run::state::Run;
use tandem_record::InterruptId;

pub(in crate::run) struct QuestionsDraft {
    /// The interrupt the run waited for when the decision began.
    pub(super) waited_for: Option<InterruptId>,
}

impl QuestionsDraft {
    pub(in crate::run) fn begin(run: &Run) -> Self {
        Self {
            waited_for: run.awaited_interrupt(),
        }
    }
}
