//! Resume: a paused run goes on where it stood.

use crate::run::refusal::Refusal;
use crate::run::state::Phase;
use crate::run::turn::Turn;
use tandem_record::{Event, Reply};

pub(super) fn resume(turn: &mut Turn<'_>, reason: Option<String>) -> Result<Reply, Refusal> {
    if turn.run.state.phase != Phase::Paused {
        return Err(Refusal::NotPaused {
            status: turn.run.status(),
        });
    }
    turn.emit(Event::RunResumed { reason }, None);
    turn.advance();
    Ok(Reply::Resumed { at: turn.now })
}
