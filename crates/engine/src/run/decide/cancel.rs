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
    let parent = turn.run.request().parent.as_ref();
    if by_parent.is_some() && by_parent.as_ref() != parent.map(|p| &p.run_id) {
        // A fork may remember children that are its source's, not its own.
        return Reply::Cancel {
            status: turn.run.status(),
            already_terminal: false,
        };
    }
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
