//! Cancel. Wins every race: whatever the run waits for, it ends. With live children it first
//! waits for them, so that nothing of the family runs on after the parent is gone.

use crate::run::state::Phase;
use crate::run::turn::Turn;
use tandem_record::{Event, Principal, Reply, RunId};

pub(super) fn cancel(
    turn: &mut Turn<'_>,
    reason: Option<String>,
    by: Option<Principal>,
    by_parent: Option<RunId>,
) -> Reply {
    match turn.run.state.phase {
        Phase::Completed | Phase::Failed | Phase::Cancelled => Reply::Cancel {
            status: turn.run.status(),
            already_terminal: true,
        },
        Phase::Cancelling => Reply::Cancel {
            status: turn.run.status(),
            already_terminal: false,
        },
        Phase::Pending | Phase::Running | Phase::Paused => {
            turn.cancel_children();
            if turn.has_children_to_await() {
                let event = Event::RunCancelRequested {
                    reason,
                    by,
                    by_parent,
                };
                turn.emit(event, None);
                turn.cancel_childless_nodes();
            } else {
                turn.end_cancelled(reason, by, by_parent);
            }
            Reply::Cancel {
                status: turn.run.status(),
                already_terminal: false,
            }
        }
    }
}
