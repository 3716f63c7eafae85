//! Resume: a paused run continues where it was.

use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::refusal::Refusal;
use tandem_record::{Event, Reply};

pub(super) fn resume(
    draft: &mut DecisionDraft<'_>,
    reason: Option<String>,
) -> Result<Reply, Refusal> {
    if draft.run.phase() != Phase::Paused {
        return Err(Refusal::NotPaused {
            status: draft.run.status(),
        });
    }
    draft.emit(Event::RunResumed { reason }, None);
    draft.advance();
    Ok(Reply::Resumed { at: draft.now })
}
