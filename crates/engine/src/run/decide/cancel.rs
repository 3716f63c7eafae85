//! Cancel. It wins every race: the run ends, whatever it waits for. A run with live children waits
//! for them first, so that no descendant keeps running after the parent has ended.

use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use tandem_record::{Event, Principal, Reply, RunId};

pub(super) fn cancel(
    draft: &mut DecisionDraft<'_>,
    reason: Option<String>,
    by: Option<Principal>,
    by_parent: Option<RunId>,
) -> Reply {
    let parent = draft.run.request().parent.as_ref();
    if by_parent.is_some() && by_parent.as_ref() != parent.map(|p| &p.run_id) {
        // The state of a fork may contain children that belong to its source.
        return Reply::Cancel {
            status: draft.run.status(),
            already_terminal: false,
        };
    }
    match draft.run.phase() {
        Phase::Completed | Phase::Failed | Phase::Cancelled => Reply::Cancel {
            status: draft.run.status(),
            already_terminal: true,
        },
        Phase::Cancelling => Reply::Cancel {
            status: draft.run.status(),
            already_terminal: false,
        },
        Phase::Pending | Phase::Running | Phase::Paused => {
            draft.cancel_children();
            if draft.has_children_to_await() {
                let event = Event::RunCancelRequested {
                    reason,
                    by,
                    by_parent,
                };
                draft.emit(event, None);
                draft.cancel_childless_nodes();
            } else {
                draft.end_cancelled(reason, by, by_parent);
            }
            Reply::Cancel {
                status: draft.run.status(),
                already_terminal: false,
            }
        }
    }
}
